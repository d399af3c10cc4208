/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whatever a guest's agent answers is either refused with a message, or says no more than it may.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/libvirt/qga.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct vhca_qga_ask *ask, const char *text)
{
	struct vhca_qga_answer answer = {.pid = 0};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_qga_read(ask, text, &answer, &err) < 0) {
		fuzz_verdict(false);
		FUZZ_ASSERT(!answer.pid && *err.code && err.msg[0]);
		return;
	}
	fuzz_verdict(true);
	FUZZ_ASSERT(answer.pid && answer.exit_code >= -1 && answer.exit_code <= 255);
	FUZZ_ASSERT(!ask->pid || answer.pid == ask->pid);
	FUZZ_ASSERT(ask->pid || !answer.exited);
	FUZZ_ASSERT(vhca_qga_outcome(answer.exit_code)[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vhca_qga_ask begin = {.path = {.n = 1}}, status = {.pid = 7};
	char *text = malloc(size + 1);

	FUZZ_ASSERT(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check(&begin, text);
	check(&status, text);
	free(text);
	return 0;
}
