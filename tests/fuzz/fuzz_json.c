/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A body from the network: whatever is accepted obeys the limits, whatever is refused says so in an
 * error.
 */
#include <string.h>

#include "common/base/text.h"
#include "common/http/json.h"
#include "tests/fuzz/fuzz.h"

#define PKEYS_MAX 8

/* Each getter either succeeds or sets an error of the caller's kind. */
static void check_outcome(int r, const struct vhca_error *err)
{
	FUZZ_ASSERT(r >= 0 || (err->kind == VHCA_ERR_INVALID && *err->code && err->msg[0]));
}

static void check_pkeys(struct json_object *body)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	uint16_t pkeys[PKEYS_MAX];
	size_t n = 0;
	int r = vhca_json_get_pkeys(body, "pkeys", pkeys, PKEYS_MAX, &n, &err);

	check_outcome(r, &err);
	FUZZ_ASSERT(n <= PKEYS_MAX);
	for (size_t i = 0; r >= 0 && i < n; i++)
		FUZZ_ASSERT(vhca_pkey_base(pkeys[i]) != 0);
}

static void check_members(struct json_object *body)
{
	static const char *const allowed[] = {"epoch", "port_guid", "name", "pkeys", NULL};
	struct vhca_error err = VHCA_ERROR_INIT;
	const char *name = NULL;
	uint64_t number = 0;
	int r;

	check_outcome(vhca_json_check_members(body, allowed, &err), &err);
	r = vhca_json_get_u64(body, "epoch", 1000, &number, &err);
	check_outcome(r, &err);
	FUZZ_ASSERT(r < 0 || number <= 1000);
	check_outcome(vhca_json_get_guid(body, "port_guid", &number, &err), &err);
	r = vhca_json_get_string(body, "name", &name, &err);
	check_outcome(r, &err);
	FUZZ_ASSERT(r < 0 || name);
	check_pkeys(body);
}

/* What was accepted can be passed on: written again, it is accepted again. */
static void check_round_trip(struct json_object *body)
{
	const char *text = json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN);
	struct json_object *again = NULL;

	FUZZ_ASSERT(text && vhca_json_parse(text, strlen(text), &again, NULL) == 0);
	(void)json_object_put(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhca_error err = VHCA_ERROR_INIT, problem = VHCA_ERROR_INIT;
	struct json_object *body = NULL;

	if (vhca_json_parse((const char *)data, size, &body, &err) < 0) {
		fuzz_verdict(false);
		check_outcome(-1, &err);
		return 0;
	}
	if (json_object_is_type(body, json_type_object))
		check_members(body);
	fuzz_verdict(true);
	check_round_trip(body);
	vhca_json_problem_to_error(body, 409, &problem);
	FUZZ_ASSERT(problem.kind != VHCA_ERR_NONE && *problem.code);
	FUZZ_ASSERT(memchr(problem.msg, '\0', sizeof(problem.msg)));
	(void)json_object_put(body);
	return 0;
}
