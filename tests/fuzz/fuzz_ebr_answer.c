/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ebrctl makes of an answer: a member is one line, and fits. */
#include <string.h>

#include "ctl/ebr/http.h"
#include "tests/fuzz/fuzz.h"

#define GUARD 0x5a

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"device", "code", "detail", "hint"};
	static struct ebr_answer answer;
	char member[16];

	if (size >= sizeof(answer.text))
		size = sizeof(answer.text) - 1;
	if (size)
		memcpy(answer.text, data, size);
	answer.text[size] = '\0';
	if (ebr_parse_answer(&answer) < 0) {
		fuzz_verdict(false);
		return 0;
	}
	fuzz_verdict(true);
	FUZZ_ASSERT(answer.status <= 999 && answer.body <= answer.text + size);
	for (unsigned int i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		bool is_there;

		memset(member, GUARD, sizeof(member));
		is_there = ebr_read_member(&answer, keys[i], member, sizeof(member) - 1);
		FUZZ_ASSERT(member[sizeof(member) - 1] == GUARD && !strchr(member, '\n'));
		FUZZ_ASSERT(strlen(member) < sizeof(member) - 1 && (is_there || !member[0]));
	}
	return 0;
}
