// SPDX-License-Identifier: LGPL-2.1-or-later
#include "agent/events.h"

#include "tests/unit/unit.h"

#include <stdbool.h>

#include "common/base/log.h"

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

static struct json_object *list_of(struct json_object *doc)
{
	struct json_object *list = NULL;

	assert_true(json_object_object_get_ex(doc, "events", &list));
	return list;
}

static bool lost(struct json_object *doc)
{
	struct json_object *o = NULL;

	assert_true(json_object_object_get_ex(doc, "lost", &o));
	return json_object_get_boolean(o);
}

static void test_cursor_gives_what_is_new(void **state)
{
	struct vhca_events *ev = *state;
	struct json_object *doc;

	assert_int_equal(vhca_events_cursor(ev), 0);
	vhca_events_add(ev, "vf", "0000:01:00.1", "%s", "first");
	vhca_events_add(ev, "vf", "0000:01:00.1", "second");
	doc = vhca_events_to_json(ev, 1);
	assert_int_equal(json_object_array_length(list_of(doc)), 1);
	assert_false(lost(doc));
	json_object_put(doc);
	doc = vhca_events_to_json(ev, 2);
	assert_int_equal(json_object_array_length(list_of(doc)), 0);
	json_object_put(doc);
}

static void test_slow_reader_is_told_that_it_lost_some(void **state)
{
	struct vhca_events *ev = *state;
	struct json_object *doc;

	for (int i = 0; i < VHCA_EVENTS_MAX + 10; i++)
		vhca_events_add(ev, "vf", "x", "%d", i);
	doc = vhca_events_to_json(ev, 5);
	assert_int_equal(json_object_array_length(list_of(doc)), VHCA_EVENTS_MAX);
	assert_true(lost(doc));
	json_object_put(doc);
	doc = vhca_events_to_json(ev, 10);
	assert_false(lost(doc));
	json_object_put(doc);
}

static void test_cursor_of_an_earlier_life_starts_anew(void **state)
{
	struct vhca_events *ev = *state;
	struct json_object *doc;

	vhca_events_add(ev, "vf", "x", "one");
	doc = vhca_events_to_json(ev, 4711);
	assert_int_equal(json_object_array_length(list_of(doc)), 1);
	json_object_put(doc);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cursor_gives_what_is_new, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader_is_told_that_it_lost_some, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_cursor_of_an_earlier_life_starts_anew, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_listener_hears_each, setup, teardown),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
