/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sriov/pci_error.h"

#include <errno.h>

#include "common/base/cleanup.h"

int vhca_pci_error_parse(const char *device, const char *event, struct vhca_bdf *ret_bdf,
			 enum vhca_pci_error *ret)
{
	/* From REPORTED on. */
	static const char *const events[] = {"BEGIN_RECOVERY", "SUCCESSFUL_RECOVERY",
					     "FAILED_RECOVERY"};
	int i = event ? vhca_word_find(events, VHCA_ARRAY_SIZE(events), event) : -EINVAL;

	if (i < 0 || !device || vhca_bdf_parse(device, ret_bdf) < 0)
		return -EINVAL;
	*ret = (enum vhca_pci_error)(VHCA_PCI_ERROR_REPORTED + i);
	return 0;
}

const char *vhca_pci_error_to_string(enum vhca_pci_error error)
{
	static const char *const words[] = {
		[VHCA_PCI_ERROR_NONE] = NULL,
		[VHCA_PCI_ERROR_REPORTED] = "reported",
		[VHCA_PCI_ERROR_RECOVERED] = "recovered",
		[VHCA_PCI_ERROR_FAILED] = "failed",
	};

	return words[error];
}
