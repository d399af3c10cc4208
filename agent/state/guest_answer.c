/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/guest_answer.h"

#include <stddef.h>

#include "common/base/cleanup.h"

const char *vhca_qga_outcome(int exit_code)
{
	static const struct {
		int code;
		const char *text;
	} outcomes[] = {
		{0, "the slot is powered off"},
		{VHCA_QGA_NO_SLOT, "no hot-plug slot of its kernel has the VF (pciehp, acpiphp)"},
		{VHCA_QGA_SLOT_SHARED, "the slot of the VF holds something else, too"},
		{VHCA_QGA_NO_POWER_OFF, "its kernel did not power the slot off"},
		{VHCA_QGA_NOT_EJECTED, "the slot was powered off, but the VF was not ejected"},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(outcomes); i++)
		if (outcomes[i].code == exit_code)
			return outcomes[i].text;
	return "its shell failed";
}
