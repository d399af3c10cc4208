// SPDX-License-Identifier: LGPL-2.1-or-later
/* Between libvirt and the engine: what is looked at again though no event says so. libvirt is
 * the test. */
#include <errno.h>
#include <stdlib.h>

#include "agent/domains.h"
#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

static const struct vhca_error fine = VHCA_ERROR_INIT;

/* What the adapter was asked. */
static struct {
	vhca_virt_event_fn fn;
	void *arg;
	vhca_virt_list_fn list;
	void *list_arg;
	vhca_virt_info_fn info;
	void *info_arg;
	struct vhca_uuid uuid;
	unsigned int looks;
} asked;

int __wrap_vhca_virt_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
			 struct vhca_virt **ret);
int __wrap_vhca_virt_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
			 struct vhca_virt **ret)
{
	(void)loop;
	(void)uri;
	asked.fn = fn;
	asked.arg = arg;
	*ret = NULL;
	return 0;
}

void __wrap_vhca_virt_list(struct vhca_virt *virt, vhca_virt_list_fn done, void *arg);
void __wrap_vhca_virt_list(struct vhca_virt *virt, vhca_virt_list_fn done, void *arg)
{
	(void)virt;
	asked.list = done;
	asked.list_arg = arg;
}

void __wrap_vhca_virt_info(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			   vhca_virt_info_fn done, void *arg);
void __wrap_vhca_virt_info(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			   vhca_virt_info_fn done, void *arg)
{
	(void)virt;
	asked.info = done;
	asked.info_arg = arg;
	asked.uuid = *uuid;
	asked.looks++;
}

static struct {
	bool set, autostart;
} marker;

void __wrap_vhca_virt_set_marker(struct vhca_virt *virt, const struct vhca_uuid *uuid,
				 const struct vhca_uuid *migration, bool autostart,
				 vhca_virt_done_fn done, void *arg);
void __wrap_vhca_virt_set_marker(struct vhca_virt *virt, const struct vhca_uuid *uuid,
				 const struct vhca_uuid *migration, bool autostart,
				 vhca_virt_done_fn done, void *arg)
{
	(void)virt;
	(void)uuid;
	(void)done;
	marker.set = migration != NULL;
	marker.autostart = autostart;
	free(arg); /* it is never answered */
}

void __wrap_vhca_virt_expect_migration(struct vhca_virt *virt, const struct vhca_uuid *uuid,
				       bool expected);
void __wrap_vhca_virt_expect_migration(struct vhca_virt *virt, const struct vhca_uuid *uuid,
				       bool expected)
{
	(void)virt;
	(void)uuid;
	(void)expected;
}

static bool looked(const struct world *w, const void *arg)
{
	(void)w;
	return asked.looks == *(const unsigned int *)arg;
}

static void answer(const struct vhca_dom_info *info)
{
	asked.info(asked.info_arg, 0, info, &fine, &fine);
}

static void test_unreadable_domain_is_looked_at_until_it_is_read(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1}, bad = good;
	struct vhca_dom_info *list[] = {&bad};
	struct vhca_error err;
	struct vhca_domains *d;
	uint64_t start;

	world_start(w);
	(void)vhca_error_set(&bad.unreadable, VHCA_ERR_INVALID, "bad_domain_xml", 0, "too large");
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	start = vhca_now_ms();
	asked.list(asked.list_arg, 0, list, 1, &fine);
	assert_int_equal(asked.looks, 0);
	assert_true(world_until(w, looked, &(unsigned int){1}));
	assert_in_range(vhca_now_ms() - start, 900, 15000);
	assert_true(vhca_uuid_equal(&asked.uuid, &good.uuid));
	answer(&bad);
	assert_true(vhca_engine_has_unreadable(w->engine));
	assert_true(world_until(w, looked, &(unsigned int){2}));
	assert_in_range(vhca_now_ms() - start, 2700, 30000); /* at growing intervals */
	answer(&good);
	assert_false(vhca_engine_has_unreadable(w->engine));
	assert_true(world_told(w, "can be read again"));
	(void)vhca_domains_free(d);
}

static void test_domain_that_becomes_unreadable_is_looked_at_again(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1}, bad = good;
	struct vhca_dom_info *list[] = {&good};
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	(void)vhca_error_set(&bad.unreadable, VHCA_ERR_INVALID, "bad_domain_xml", 0, "too large");
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	asked.list(asked.list_arg, 0, list, 1, &fine);
	asked.looks = 0;
	vhca_domains_refresh(d, &good.uuid);
	answer(&bad);
	assert_true(world_until(w, looked, &(unsigned int){2}));
	answer(&good);
	(void)vhca_domains_free(d);
}

/* No event tells of it again. */
static void test_look_that_fails_is_repeated(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1};
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	asked.looks = 0;
	vhca_domains_refresh(d, &good.uuid);
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "job_held", EBUSY, "busy");
	asked.info(asked.info_arg, -EBUSY, NULL, &fine, &err);
	assert_true(world_until(w, looked, &(unsigned int){2}));
	asked.info(asked.info_arg, -EBUSY, NULL, &fine, &err);
	/* An event does not wait for the timer. */
	vhca_domains_refresh(d, &good.uuid);
	assert_int_equal(asked.looks, 3);
	answer(&good);
	assert_non_null(vhca_model_domain(vhca_engine_model(w->engine), &good.uuid));
	(void)vhca_domains_free(d);
}

static bool is_known; /* by the last word that somebody waited for */

static void on_looked(void *arg, bool known)
{
	++*(unsigned int *)arg;
	is_known = known;
}

/* Whoever asks is not told what libvirt said before. */
static void test_who_looks_hears_what_is_so_then(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1};
	unsigned int first = 0, second = 0;
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	vhca_domains_look(d, &good.uuid, on_looked, &first);
	assert_int_equal(first, 1); /* there is no connection to ask at */
	assert_false(is_known);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	asked.looks = 0;
	vhca_domains_look(d, &good.uuid, on_looked, &first);
	vhca_domains_look(d, &good.uuid, on_looked, &second);
	assert_int_equal(asked.looks, 1);
	answer(&good); /* it may have been read before the second has asked */
	assert_int_equal(first, 2);
	assert_int_equal(second, 0);
	assert_true(is_known);
	assert_non_null(vhca_model_domain(vhca_engine_model(w->engine), &good.uuid));
	assert_int_equal(asked.looks, 2);
	asked.info(asked.info_arg, -ENOENT, NULL, &fine, &fine);
	assert_int_equal(second, 1);
	assert_null(vhca_model_domain(vhca_engine_model(w->engine), &good.uuid));
	(void)vhca_domains_free(d);
}

static void test_who_looks_is_told_whatever_happens(void **state)
{
	struct world *w = *state;
	struct vhca_uuid vm = {{7}};
	unsigned int n = 0;
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	asked.looks = 0;
	vhca_domains_look(d, &vm, on_looked, &n);
	/* What an event tells meanwhile is newer than what is being read. */
	asked.fn(asked.arg,
		 &(struct vhca_virt_event_data){.event = VHCA_VIRT_SUSPENDED, .uuid = vm});
	asked.info(asked.info_arg, -ENOENT, NULL, &fine, &fine);
	assert_int_equal(n, 0);
	assert_int_equal(asked.looks, 2);
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "job_held", EBUSY, "busy");
	asked.info(asked.info_arg, -EBUSY, NULL, &fine, &err);
	assert_int_equal(n, 1);
	assert_false(is_known);
	vhca_domains_look(d, &vm, on_looked, &n);
	assert_int_equal(asked.looks, 3); /* what has failed is not waited for */
	(void)vhca_domains_free(d);
	assert_int_equal(n, 2);
}

static bool was_told(const struct world *w, const void *arg)
{
	(void)w;
	return *(const unsigned int *)arg > 0;
}

/* libvirtd hangs: he is told that, and the look goes on. */
static void test_who_looks_does_not_wait_for_ever(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1};
	uint64_t start = vhca_now_ms();
	unsigned int n = 0;
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	vhca_domains_look(d, &good.uuid, on_looked, &n);
	assert_true(world_until(w, was_told, &n));
	assert_false(is_known);
	assert_in_range(vhca_now_ms() - start, 2900, 60000);
	answer(&good);
	assert_int_equal(n, 1);
	assert_non_null(vhca_model_domain(vhca_engine_model(w->engine), &good.uuid));
	(void)vhca_domains_free(d);
}

/* What an event tells is older than a look that is begun by it. */
static void test_event_behind_a_failed_look_begins_a_good_one(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1};
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	vhca_domains_refresh(d, &good.uuid);
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "job_held", EBUSY, "busy");
	asked.info(asked.info_arg, -EBUSY, NULL, &fine, &err);
	asked.fn(asked.arg,
		 &(struct vhca_virt_event_data){.event = VHCA_VIRT_RESUMED, .uuid = good.uuid});
	answer(&good);
	assert_non_null(vhca_model_domain(vhca_engine_model(w->engine), &good.uuid));
	(void)vhca_domains_free(d);
}

static void test_list_that_was_overtaken_is_asked_for_again(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info good = {.uuid = {{7}}, .name = "vm7", .id = 1};
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	asked.fn(asked.arg, &(struct vhca_virt_event_data){.event = VHCA_VIRT_CONNECTED});
	asked.list(asked.list_arg, 0, NULL, 0, &fine);
	/* A later list, in which a domain is missing that was looked at meanwhile. */
	vhca_domains_refresh(d, &good.uuid);
	answer(&good);
	asked.list(asked.list_arg, 0, NULL, 0, &fine);
	assert_non_null(vhca_model_domain(vhca_engine_model(w->engine), &good.uuid));
	(void)vhca_domains_free(d);
}

/* What libvirt does not know at all is another answer than what does not run. */
static void test_domain_that_is_not_defined(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info vm = {.uuid = {{7}}, .name = "vm7", .id = 1};
	struct vhca_claim_request req = {.origin = VHCA_ORIGIN_CLAIM,
					 .domain = vm.uuid,
					 .domain_name = "vm7",
					 .vf = {.numa = -1, .name = "ib0", .fabric = "default"},
					 .lease_s = 3600};
	struct vhca_error gone;
	struct vhca_domains *d;
	struct answer a = {0};

	(void)vhca_strcpy(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	(void)vhca_error_set(&gone, VHCA_ERR_NOT_FOUND, "domain_gone", 0, "vm7");
	world_start(w);
	settle_free(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &gone), 0);
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	vhca_domains_refresh(d, &vm.uuid);
	asked.info(asked.info_arg, -ESRCH, NULL, &fine, &gone);
	assert_true(first_claim(w)->lease_until_ms > 0);
	vhca_domains_refresh(d, &vm.uuid);
	asked.info(asked.info_arg, -ENOENT, NULL, &fine, &gone);
	assert_int_equal(first_claim(w)->lease_until_ms, 0);
	vhca_domains_refresh(d, &vm.uuid);
	answer(&vm);
	assert_int_equal(first_claim(w)->lease_until_ms, 0);
	vhca_domains_refresh(d, &vm.uuid);
	asked.info(asked.info_arg, -ESRCH, NULL, &fine, &gone);
	assert_null(vhca_model_domain(vhca_engine_model(w->engine), &vm.uuid));
	assert_true(first_claim(w)->lease_until_ms > 0);
	(void)vhca_domains_free(d);
}

/* Only a managed migration takes it along, and only the destination of that very one is told. */
static void test_autostart_goes_along(void **state)
{
	struct world *w = *state;
	struct vhca_dom_info info = {.uuid = {{7}}, .name = "vm7", .id = 1};
	struct vhca_mig m = {.id = {{1}}, .domain = {{7}}, .mode = VHCA_MIG_MODE_MANAGED};
	struct vhca_error err;
	struct vhca_domains *d;

	world_start(w);
	assert_int_equal(vhca_domains_new(w->loop, "", w->engine, &d, &err), 0);
	m.source = true;
	vhca_domains_migration(d, &w->conf, &m, VHCA_MIG_EFFECT_MARK);
	assert_true(marker.set && marker.autostart);
	m.mode = VHCA_MIG_MODE_EXTERNAL;
	vhca_domains_migration(d, &w->conf, &m, VHCA_MIG_EFFECT_MARK);
	assert_true(marker.set && !marker.autostart);

	info.has_away = info.away_autostart = true;
	info.away = m.id;
	vhca_engine_domain(w->engine, &info.uuid, &info);
	vhca_domains_migration(d, &w->conf, &m, VHCA_MIG_EFFECT_UNMARK);
	assert_true(!marker.set && !marker.autostart); /* it stays where it was */
	m.source = false;
	vhca_domains_migration(d, &w->conf, &m, VHCA_MIG_EFFECT_UNMARK);
	assert_true(!marker.set && marker.autostart);
	info.away.b[0]++;
	vhca_engine_domain(w->engine, &info.uuid, &info);
	vhca_domains_migration(d, &w->conf, &m, VHCA_MIG_EFFECT_UNMARK);
	assert_true(!marker.set && !marker.autostart);
	(void)vhca_domains_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unreadable_domain_is_looked_at_until_it_is_read),
		TEST(test_domain_that_becomes_unreadable_is_looked_at_again),
		TEST(test_look_that_fails_is_repeated),
		TEST(test_who_looks_hears_what_is_so_then),
		TEST(test_who_looks_is_told_whatever_happens),
		TEST(test_who_looks_does_not_wait_for_ever),
		TEST(test_event_behind_a_failed_look_begins_a_good_one),
		TEST(test_list_that_was_overtaken_is_asked_for_again),
		TEST(test_domain_that_is_not_defined),
		TEST(test_autostart_goes_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
