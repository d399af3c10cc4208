/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What answers at an SM's URL, the status in the first line: a report is done, or thrown away, only
 * on the plugin's own word. Everything else, a proxy, another server, half a document, means that
 * it is sent again.
 */
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "sm/sm.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"

static const char *member(struct json_object *body, const char *key)
{
	struct json_object *o = NULL;

	if (!json_object_is_type(body, json_type_object) ||
	    !json_object_object_get_ex(body, key, &o) || !json_object_is_type(o, json_type_string))
		return "";
	return json_object_get_string(o);
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

static void check_answer(enum vhca_sm_answer answer, int status, struct json_object *body)
{
	static const char *const superseded[] = {"superseded", "epoch_tie", "not_the_owner", NULL};
	static const char *const waits[] = {
		"unknown_port", "not_master",	    "table_full", "rebuilding",
		"unauthorized", "ticket_not_valid", "",		  NULL};
	const char *code = member(body, "code");
	bool good = status >= 200 && status <= 299;

	FUZZ_ASSERT(answer <= VHCA_SM_RETRY);
	FUZZ_ASSERT(good || answer != VHCA_SM_ACCEPTED);
	if (answer == VHCA_SM_SUPERSEDED)
		FUZZ_ASSERT(!good && status && is_one_of(code, superseded));
	if (answer == VHCA_SM_REFUSED)
		FUZZ_ASSERT(!good && status && !is_one_of(code, waits));
}

static void check_all(int status, struct json_object *body)
{
	const struct vhca_sm_ops *ops = &vhca_sm_vhcasm;
	enum vhca_sm_answer binding = ops->binding_answer(status, body, NULL),
			    commit = ops->commit_answer(status, body),
			    prepare = ops->prepare_answer(status, body),
			    members = ops->members_answer(status, body);

	check_answer(binding, status, body);
	check_answer(commit, status, body);
	check_answer(prepare, status, body);
	check_answer(members, status, body);
	fuzz_verdict(binding == VHCA_SM_ACCEPTED || commit == VHCA_SM_ACCEPTED ||
		     members == VHCA_SM_ACCEPTED);
	FUZZ_ASSERT(binding != VHCA_SM_ACCEPTED || json_object_object_get(body, "vguid"));
	FUZZ_ASSERT(members != VHCA_SM_ACCEPTED || json_object_object_get(body, "port_guid"));
	FUZZ_ASSERT((prepare == VHCA_SM_ACCEPTED) ==
		    (status >= 200 && status <= 299 && !strcmp(member(body, "state"), "prepared")));
	FUZZ_ASSERT((commit == VHCA_SM_ACCEPTED) == (status >= 200 && status <= 299 &&
						     !strcmp(member(body, "state"), "committed")));
	if (ops->commit_unknown(status, body))
		FUZZ_ASSERT(commit != VHCA_SM_ACCEPTED && (status == 404 || status == 405));
	if (ops->wants_snapshot(status, body))
		FUZZ_ASSERT(binding == VHCA_SM_RETRY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup(size ? (const char *)data : "", size);
	char *rest = text, *line = input_line(&rest);
	struct json_object *body = NULL;
	uint32_t status = 0;

	if (vhca_parse_u32(line, 10, 999, &status) < 0)
		return 0;
	if (rest && vhca_json_parse(rest, strlen(rest), &body, NULL) < 0)
		body = NULL;
	check_all((int)status, body);
	(void)json_object_put(body);
	return 0;
}
