// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a guest's memory asks of a host, and what the host says of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/host/memory.h"
#include "agent/state/guest_memory.h"
#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#define GIB (UINT64_C(1024) * 1024)

static const struct vhca_guest_memory ordinary = {.kib = 64 * GIB};
static const struct vhca_guest_memory huge = {
	.kib = 64 * GIB, .pages = VHCA_PAGES_HUGE, .page_kib = GIB};

/* ---- figures ---- */

static void deadlines_grow_with_the_memory(void **state)
{
	(void)state;
	assert_int_equal(vhca_guest_memory_ms(0), 0);
	assert_int_equal(vhca_guest_memory_ms(1), 1000);
	assert_int_equal(vhca_guest_memory_ms(GIB), 1000);
	assert_int_equal(vhca_guest_memory_ms(1024 * GIB + 1), 1025000);
	assert_true(vhca_guest_memory_ms(UINT64_MAX / 1024) > 0); /* no overflow */
}

static void limit_below_the_memory_is_refused(void **state)
{
	struct vhca_guest_memory m = {.kib = 16 * GIB, .hard_limit_kib = 16 * GIB - 1};
	const struct vhca_uuid uuid = {.b = {1}};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_guest_memory_check_limit(&m, "vm1", &uuid, &err), -ENOMEM);
	assert_string_equal(err.code, "hard_limit");
	assert_int_equal(err.kind, VHCA_ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "domain vm1: its <hard_limit> of 15 GiB"));
	assert_non_null(strstr(err.msg, "memory of 16 GiB"));
	assert_non_null(strstr(err.hint, "virsh memtune vm1"));
	m.hard_limit_kib++;
	assert_int_equal(vhca_guest_memory_check_limit(&m, "vm1", &uuid, &err), 0);
	m.hard_limit_kib = 0;
	assert_int_equal(vhca_guest_memory_check_limit(&m, "vm1", &uuid, &err), 0);
}

static void room_is_told_in_figures(void **state)
{
	struct vhca_memory_room room = {.kib = 64 * GIB};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_guest_memory_check_room(&ordinary, "vm1", &room, 0, &err), 0);
	room.kib = 32 * GIB - 1;
	assert_int_equal(vhca_guest_memory_check_room(&ordinary, "vm1", &room, 0, &err), -ENOMEM);
	assert_string_equal(err.code, "guest_memory");
	assert_int_equal(err.kind, VHCA_ERR_EXHAUSTED);
	assert_string_equal(err.msg, "guest vm1 needs 64 GiB of memory, all of which its VFs pin; "
				     "31 GiB available");
	assert_non_null(strstr(err.hint, "another host"));
}

static void those_that_are_coming_count(void **state)
{
	const struct vhca_memory_room room = {.kib = 100 * GIB};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_guest_memory_check_room(&ordinary, "vm1", &room, 36 * GIB, &err), 0);
	assert_int_equal(vhca_guest_memory_check_room(&ordinary, "vm1", &room, 36 * GIB + 1, &err),
			 -ENOMEM);
	assert_non_null(strstr(err.msg, "100 GiB available, 37 GiB of it for guests"));
	assert_int_equal(vhca_guest_memory_check_room(&ordinary, "vm1", &room, 200 * GIB, &err),
			 -ENOMEM);
}

static void huge_pages_are_named(void **state)
{
	struct vhca_memory_room room = {.kib = 2 * GIB, .page_kib = GIB};
	struct vhca_guest_memory mixed = huge;
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_guest_memory_check_room(&huge, "vm1", &room, 0, &err), -ENOMEM);
	assert_non_null(strstr(err.msg, "64 GiB of huge pages of 1048576 KiB"));
	assert_non_null(strstr(err.msg, "2048 MiB available"));
	assert_non_null(strstr(err.hint, "vm.nr_hugepages"));
	room = (struct vhca_memory_room){.page_kib = GIB, .no_such_pages = true};
	assert_int_equal(vhca_guest_memory_check_room(&huge, "vm1", &room, 0, &err), -ENOMEM);
	assert_non_null(strstr(err.msg, "none of that size is available"));
	mixed.pages = VHCA_PAGES_MIXED; /* nobody knows how much of which */
	assert_int_equal(vhca_guest_memory_check_room(&mixed, "vm1", &room, 0, &err), 0);
}

/* ---- between agents ---- */

static void goes_to_the_peer_and_back(void **state)
{
	const struct vhca_guest_memory in = {.kib = 64 * GIB,
					     .hard_limit_kib = 70 * GIB,
					     .pages = VHCA_PAGES_HUGE,
					     .page_kib = 2048};
	struct json_object *o = vhca_guest_memory_to_json(&in);
	struct vhca_guest_memory out = {0};

	(void)state;
	assert_int_equal(vhca_guest_memory_parse(o, &out, NULL), 0);
	assert_int_equal(out.kib, in.kib);
	assert_int_equal(out.hard_limit_kib, in.hard_limit_kib);
	assert_int_equal(out.pages, in.pages);
	assert_int_equal(out.page_kib, in.page_kib);
	json_object_put(o);
}

static int parse(const char *text, struct vhca_guest_memory *ret, struct vhca_error *err)
{
	struct json_object *o = NULL;
	int r;

	assert_int_equal(vhca_json_parse(text, strlen(text), &o, NULL), 0);
	r = vhca_guest_memory_parse(o, ret, err);
	json_object_put(o);
	return r;
}

static void older_and_newer_agents_are_understood(void **state)
{
	struct vhca_guest_memory m = {0};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_guest_memory_parse(NULL, &m, &err), 0); /* says nothing */
	assert_int_equal(m.kib, 0);
	assert_int_equal(parse("{\"kib\": 1024}", &m, &err), 0);
	assert_int_equal(m.kib, 1024);
	assert_int_equal(m.pages, VHCA_PAGES_ORDINARY);
	assert_int_equal(parse("{\"kib\": 1, \"pages\": \"folded\"}", &m, &err), 0);
	assert_int_equal(m.pages, VHCA_PAGES_MIXED);
	assert_int_equal(parse("{}", &m, &err), -EINVAL);
	assert_int_equal(parse("{\"kib\": 36028797018963968}", &m, &err), -EINVAL);
	assert_int_equal(parse("{\"kib\": 1, \"page_kib\": \"2M\"}", &m, &err), -EINVAL);
	assert_int_equal(parse("7", &m, &err), -EINVAL);
	assert_string_equal(err.code, "bad_request");
	assert_int_equal(m.kib, 1); /* left alone */
}

/* ---- the host ---- */

struct host {
	struct tree tree;
	struct vhca_sysfs *sys;
	char meminfo[TREE_PATH_MAX];
	struct vhca_loop *loop;
};

#define POOL "kernel/mm/hugepages/hugepages-2048kB/"

static int setup(void **state)
{
	static struct host h;

	tree_init(&h.tree);
	tree_put(&h.tree, "meminfo",
		 "MemTotal:       65536000 kB\nMemFree:         1000 kB\nMemAvailable:   32505856 "
		 "kB\nHugepagesize:       2048 kB\n");
	tree_put(&h.tree, POOL "free_hugepages", "1000\n");
	tree_put(&h.tree, POOL "nr_overcommit_hugepages", "24\n");
	tree_put(&h.tree, POOL "resv_hugepages", "300\n");
	tree_put(&h.tree, POOL "surplus_hugepages", "12\n");
	assert_int_equal(vhca_sysfs_open(h.tree.root, &h.sys), 0);
	(void)tree_path(&h.tree, "meminfo", h.meminfo);
	assert_int_equal(vhca_loop_new(&h.loop), 0);
	*state = &h;
	return 0;
}

static int teardown(void **state)
{
	struct host *h = *state;

	vhca_loop_free(h->loop);
	vhca_sysfs_close(h->sys);
	tree_done(&h->tree);
	return 0;
}

static int read_room(const struct host *h, const struct vhca_guest_memory *guest,
		     struct vhca_memory_room *ret, struct vhca_error *err)
{
	*ret = (struct vhca_memory_room){.kib = 7};
	return vhca_host_memory_read(h->sys, h->meminfo, guest, ret, err);
}

static void ordinary_memory_is_what_is_available(void **state)
{
	struct vhca_memory_room room;

	assert_int_equal(read_room(*state, &ordinary, &room, NULL), 0);
	assert_int_equal(room.kib, 31 * GIB);
	assert_int_equal(room.page_kib, 0);
	assert_false(room.no_such_pages);
}

static void huge_pages_of_others_do_not_count(void **state)
{
	struct vhca_guest_memory guest = {.kib = GIB, .pages = VHCA_PAGES_HUGE};
	const struct host *h = *state;
	struct vhca_memory_room room;

	for (guest.page_kib = 0; guest.page_kib <= 2048; guest.page_kib += 2048) {
		assert_int_equal(read_room(h, &guest, &room, NULL), 0);
		assert_int_equal(room.page_kib, 2048); /* the default size, too */
		assert_int_equal(room.kib, (1000 + 24 - 300 - 12) * 2048);
	}
	tree_put(&h->tree, POOL "resv_hugepages", "5000\n");
	guest.page_kib = 2048;
	assert_int_equal(read_room(h, &guest, &room, NULL), 0);
	assert_int_equal(room.kib, 0);
	assert_false(room.no_such_pages);
	guest.page_kib = GIB;
	assert_int_equal(read_room(h, &guest, &room, NULL), 0);
	assert_int_equal(room.kib, 0);
	assert_true(room.no_such_pages);
}

static void unreadable_figures_are_errors(void **state)
{
	const struct vhca_guest_memory of_pool = {.pages = VHCA_PAGES_HUGE, .page_kib = 2048};
	const struct host *h = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_memory_room room;

	tree_put(&h->tree, POOL "free_hugepages", "many\n");
	assert_true(read_room(h, &of_pool, &room, &err) < 0);
	assert_string_equal(err.code, "hugepages");
	tree_put(&h->tree, "meminfo", "MemTotal: 1 kB\nMemAvailable: 12\n");
	assert_true(read_room(h, &ordinary, &room, &err) < 0);
	assert_string_equal(err.code, "meminfo");
	tree_put(&h->tree, "meminfo", "MemTotal: 1 kB\n");
	assert_true(read_room(h, &ordinary, &room, &err) < 0);
	tree_remove(&h->tree, "meminfo");
	assert_true(read_room(h, &ordinary, &room, &err) < 0);
}

struct told {
	unsigned int times;
	uint64_t kib;
	char code[VHCA_ERROR_CODE_MAX];
};

static void on_room(void *arg, const struct vhca_memory_room *room, const struct vhca_error *err)
{
	struct told *told = arg;

	told->times++;
	told->kib = room->kib;
	(void)snprintf(told->code, sizeof(told->code), "%s", err ? err->code : "");
}

static void is_read_on_a_worker(void **state)
{
	struct host *h = *state;
	struct vhca_host_memory *hm = NULL;
	struct told told = {0};

	assert_int_equal(vhca_host_memory_new(h->loop, h->sys, h->meminfo, &hm), 0);
	assert_int_equal(vhca_host_memory_ask(hm, &ordinary, on_room, &told), 0);
	assert_int_equal(told.times, 0); /* never from inside */
	for (unsigned int i = 0; i < 100 && !told.times; i++)
		(void)vhca_loop_once(h->loop, 100);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.kib, 31 * GIB);
	assert_string_equal(told.code, "");
	assert_null(vhca_host_memory_free(hm));
}

static void who_waits_at_the_end_is_told_once(void **state)
{
	struct host *h = *state;
	struct vhca_host_memory *hm = NULL;
	struct told told[8] = {0};

	assert_int_equal(vhca_host_memory_new(h->loop, h->sys, h->meminfo, &hm), 0);
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(told); i++)
		assert_int_equal(vhca_host_memory_ask(hm, &ordinary, on_room, &told[i]), 0);
	assert_null(vhca_host_memory_free(hm));
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(told); i++) {
		assert_int_equal(told[i].times, 1);
		assert_true(!told[i].code[0] || !strcmp(told[i].code, "shutting_down"));
	}
}

#define ON_HOST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines_grow_with_the_memory),
		cmocka_unit_test(limit_below_the_memory_is_refused),
		cmocka_unit_test(room_is_told_in_figures),
		cmocka_unit_test(those_that_are_coming_count),
		cmocka_unit_test(huge_pages_are_named),
		cmocka_unit_test(goes_to_the_peer_and_back),
		cmocka_unit_test(older_and_newer_agents_are_understood),
		ON_HOST(ordinary_memory_is_what_is_available),
		ON_HOST(huge_pages_of_others_do_not_count),
		ON_HOST(unreadable_figures_are_errors),
		ON_HOST(is_read_on_a_worker),
		ON_HOST(who_waits_at_the_end_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
