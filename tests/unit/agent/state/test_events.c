// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/state/events.h"
#include "agent/state/model.h"
#include "common/base/log.h"
#include "common/http/json.h"
#include "tests/unit/unit.h"

static int setup(void **state)
{
	vhca_log_set_level(VHCA_LOG_ERROR);
	return vhca_events_new((struct vhca_events **)state);
}

static int teardown(void **state)
{
	vhca_events_free(*state);
	return 0;
}

static const char *cursor_of(struct json_object *doc)
{
	return json_object_get_string(json_object_object_get(doc, "cursor"));
}

/* How many events stand behind a cursor, or a negative errno; then err says why. */
static int count_after(struct vhca_events *ev, const char *since, struct vhca_error *err)
{
	struct json_object *doc;
	uint64_t n = 0;
	int r = vhca_events_find(ev, since, &n, err);

	if (r < 0)
		return r;
	doc = vhca_events_to_json(ev, n, err);
	assert_non_null(doc);
	r = (int)json_object_array_length(json_object_object_get(doc, "events"));
	json_object_put(doc);
	return r;
}

/* The cursor behind the newest event. */
static void read_cursor(struct vhca_events *ev, char buf[static 80])
{
	struct json_object *doc = vhca_events_to_json(ev, vhca_events_newest(ev), NULL);

	(void)snprintf(buf, 80, "%s", cursor_of(doc));
	json_object_put(doc);
}

static void test_cursor_gives_what_is_new(void **state)
{
	struct vhca_events *ev = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *doc, *first;
	char cursor[80];

	read_cursor(ev, cursor);
	assert_int_equal(count_after(ev, cursor, &err), 0);
	vhca_events_add(ev, "vf", "0000:01:00.1", "%s", "first");
	vhca_events_add(ev, "vf", "0000:01:00.1", "second");
	assert_int_equal(count_after(ev, cursor, &err), 2);
	assert_int_equal(count_after(ev, "oldest", &err), 2);
	assert_int_equal(count_after(ev, "now", &err), 0);
	doc = vhca_events_to_json(ev, 0, NULL);
	first = json_object_array_get_idx(json_object_object_get(doc, "events"), 0);
	assert_int_equal(count_after(ev, cursor_of(first), &err), 1);
	assert_int_equal(count_after(ev, cursor_of(doc), &err), 0);
	json_object_put(doc);
}

static void test_slow_reader_is_told_that_it_lost_some(void **state)
{
	struct vhca_events *ev = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	char cursor[80];

	read_cursor(ev, cursor);
	for (int i = 0; i < VHCA_EVENTS_MAX; i++)
		vhca_events_add(ev, "vf", "x", "%d", i);
	assert_int_equal(count_after(ev, cursor, &err), VHCA_EVENTS_MAX);
	vhca_events_add(ev, "vf", "x", "one more");
	assert_int_equal(count_after(ev, cursor, &err), -ENOENT);
	assert_string_equal(err.code, "cursor_gone");
	assert_int_equal(vhca_json_problem_status(&err), 410);
	assert_null(vhca_events_to_json(ev, 0, &err)); /* who waited meanwhile */
	assert_int_equal(count_after(ev, "oldest", &err), VHCA_EVENTS_MAX);
}

static void test_cursor_of_an_earlier_life_is_gone(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_events *ev = *state, *next;
	char cursor[80], *digit;

	vhca_events_add(ev, "vf", "x", "one");
	read_cursor(ev, cursor);
	assert_int_equal(vhca_events_new(&next), 0);
	vhca_events_add(next, "vf", "x", "one as well");
	assert_int_equal(count_after(next, cursor, &err), -ENOENT);
	assert_string_equal(err.code, "cursor_gone");
	vhca_events_free(next);
	digit = strchr(cursor, '.') + 1;
	*digit = '2'; /* has not happened */
	assert_int_equal(count_after(ev, cursor, &err), -ENOENT);
}

static void test_other_words_are_refused(void **state)
{
	static const char *const words[] = {"", "0", "1", ".1", "x.1", "Now", "oldest "};
	struct vhca_error err = VHCA_ERROR_INIT;
	char cursor[80];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		assert_int_equal(count_after(*state, words[i], &err), -EIO);
		assert_string_equal(err.code, "bad_request");
	}
	read_cursor(*state, cursor);
	strchr(cursor, '.')[1] = '\0';
	assert_int_equal(count_after(*state, cursor, &err), -EIO);
}

static void on_event(void *arg)
{
	++*(int *)arg;
}

static void test_listener_hears_each(void **state)
{
	struct vhca_events *ev = *state;
	int heard = 0;

	vhca_events_listen(ev, on_event, &heard);
	vhca_events_add(ev, "vf", "x", "one");
	vhca_events_add(ev, "vf", "x", "two");
	vhca_events_listen(ev, NULL, NULL);
	vhca_events_add(ev, "vf", "x", "three");
	assert_int_equal(heard, 2);
}

static void test_event_of_a_claim_says_whose(void **state)
{
	struct vhca_vf vf = {.bdf = {.bus = 1, .fn = 2}};
	struct vhca_claim claim = {.vf = &vf, .identity.guid = 0xfa163e0000123456};
	struct vhca_events *ev = *state;
	struct json_object *doc, *list;
	const char *text;

	(void)snprintf(claim.domain_name, sizeof(claim.domain_name), "vm1");
	(void)snprintf(claim.name, sizeof(claim.name), "ib0");
	(void)snprintf(claim.fabric, sizeof(claim.fabric), "blue");
	claim.domain.b[0] = 0xd0;
	vhca_events_add_claim(ev, "claim", &claim, "has partitions %s", "0x8001");
	memset(&claim, 0, sizeof(claim)); /* is gone when it is read */
	vhca_events_add(ev, "vf", "x", "one");
	doc = vhca_events_to_json(ev, 0, NULL);
	list = json_object_object_get(doc, "events");
	text = json_object_to_json_string_ext(json_object_array_get_idx(list, 0),
					      JSON_C_TO_STRING_PLAIN);
	assert_non_null(strstr(text, "\"subject\":\"vm1\\/ib0\",\"text\":\"has partitions 0x8001\","
				     "\"vf\":\"0000:01:00.2\",\"claim\":\"00000000-"));
	assert_non_null(strstr(text,
			       "\"domain\":\"d0000000-0000-0000-0000-000000000000\",\"name\":"
			       "\"ib0\",\"fabric\":\"blue\",\"guid\":\"0xfa163e0000123456\""));
	text = json_object_to_json_string_ext(json_object_array_get_idx(list, 1),
					      JSON_C_TO_STRING_PLAIN);
	assert_non_null(strstr(text, "\"vf\":null,\"claim\":null,\"domain\":null,\"name\":null,"
				     "\"fabric\":null,\"guid\":null}"));
	json_object_put(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cursor_gives_what_is_new, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader_is_told_that_it_lost_some, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_cursor_of_an_earlier_life_is_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_other_words_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listener_hears_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_event_of_a_claim_says_whose, setup, teardown),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
