/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* opensm/service, view, publisher: on a fake subnet and a real state directory. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "opensm/bindings/publisher.h"
#include "opensm/bindings/service.h"
#include "tests/unit/tree.h"

#define PORT_A UINT64_C(0x0002c90300000a01)
#define PORT_B UINT64_C(0x0002c90300000b01)
#define GUID_1 UINT64_C(0x02c9ab0000000001)
/* As OpenSM has them: in the order of GUIDs in network order. */
#define CROWD(i) (UINT64_C(0x02c9cd0000000000) + __builtin_bswap32(i))

/* ---- the fake subnet ---- */

struct fake {
	struct vhca_osm_status status;
	struct vhca_osm_port_info ports[2]; /* of PORT_A and PORT_B */
	bool alias_known;
	struct vhca_osm_alias alias; /* of GUID_1 */
	uint16_t pkeys[4];	     /* of any port's table */
	uint32_t crowd;		     /* ports with one key beside these */
	int sweeps;
	bool applies; /* without a sweep */
	bool sweeping;
	int applied;
	size_t unanswered;
};

static bool fake_busy(void *ctx)
{
	(void)ctx;
	return false;
}

static void fake_status(void *ctx, struct vhca_osm_status *ret)
{
	*ret = ((struct fake *)ctx)->status;
}

static bool fake_port(void *ctx, uint64_t guid, struct vhca_osm_port_info *ret)
{
	struct fake *f = ctx;

	if (guid != PORT_A && guid != PORT_B)
		return false;
	*ret = f->ports[guid == PORT_B];
	return true;
}

static bool fake_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	struct fake *f = ctx;

	*ret = f->alias;
	return guid == GUID_1 && f->alias_known;
}

static bool fake_physical(void *ctx, uint64_t guid)
{
	(void)ctx;
	(void)guid;
	return false;
}

static bool fake_has_pkey(void *ctx, uint64_t port, uint16_t pkey)
{
	struct fake *f = ctx;

	(void)port;
	for (size_t i = 0; i < 4; i++)
		if (f->pkeys[i] == pkey)
			return true;
	return false;
}

static void fake_each_port(void *ctx, vhca_osm_port_fn fn, void *arg)
{
	struct fake *f = ctx;

	fn(arg, PORT_A, f->pkeys, 4);
	fn(arg, PORT_B, f->pkeys, 1);
	for (uint32_t i = 0; i < f->crowd; i++)
		fn(arg, CROWD(i), f->pkeys, 1);
}

static int fake_apply(void *ctx)
{
	struct fake *f = ctx;

	if (f->sweeping)
		return -EBUSY;
	f->applied += f->applies;
	return f->applies ? 0 : -EAGAIN;
}

static size_t fake_unanswered(void *ctx)
{
	return ((struct fake *)ctx)->unanswered;
}

static void fake_sweep(void *ctx)
{
	((struct fake *)ctx)->sweeps++;
}

static const struct vhca_osm_subnet_ops fake_ops = {
	.is_busy = fake_busy,
	.status = fake_status,
	.find_port = fake_port,
	.find_alias = fake_alias,
	.is_physical = fake_physical,
	.has_pkey = fake_has_pkey,
	.each_port = fake_each_port,
	.apply = fake_apply,
	.unanswered = fake_unanswered,
	.sweep = fake_sweep,
};

/* ---- fixture ---- */

struct world {
	struct tree tree;
	struct fake fake;
	struct vhca_osm_conf conf;
	struct vhca_osm_service *service;
	uint64_t skew; /* ms that the test's clock is ahead */
};

static int start(struct world *w, struct vhca_error *err)
{
	return vhca_osm_service_new(&w->conf, &fake_ops, &w->fake, &w->service, err);
}

static void stop(struct world *w)
{
	w->service = vhca_osm_service_free(w->service);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	tree_init(&w->tree);
	w->fake.status = (struct vhca_osm_status){
		.sm_state = "master", .master = true, .ready = true, .version = "fake"};
	w->fake.ports[0] = (struct vhca_osm_port_info){5, VHCA_OSM_PORT_ACTIVE, 128};
	w->fake.ports[1] = (struct vhca_osm_port_info){6, VHCA_OSM_PORT_ACTIVE, 32};
	vhca_osm_conf_set_defaults(&w->conf);
	(void)snprintf(w->conf.state_dir, sizeof(w->conf.state_dir), "%s/state", w->tree.root);
	assert_int_equal(start(w, NULL), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	stop(w);
	tree_done(&w->tree);
	free(w);
	return 0;
}

static void set_base(struct world *w, const char *name)
{
	(void)snprintf(w->conf.base_file, sizeof(w->conf.base_file), "%s/%s", w->tree.root, name);
}

static const char *put(struct world *w, uint64_t epoch, uint64_t port, uint16_t pkey)
{
	static struct vhca_error err;
	struct vhca_osm_eviction ev;
	struct vhca_osm_binding b = {.vguid = GUID_1,
				     .epoch = epoch,
				     .port_guid = port,
				     .gid_index = 3,
				     .n_pkeys = 1,
				     .pkeys = &pkey};

	err = (struct vhca_error)VHCA_ERROR_INIT;
	return vhca_osm_service_put(w->service, &b, 0, &ev, &err) < 0 ? err.code : "";
}

static void commit(struct world *w)
{
	assert_int_equal(vhca_osm_service_commit(w->service, NULL), 0);
}

static void at(struct world *w, uint64_t ms_later)
{
	w->skew += ms_later;
	vhca_osm_service_publish(w->service, vhca_now_ms() + w->skew);
}

/* Lets the time of a burst pass. */
static void settle(struct world *w)
{
	at(w, VHCA_OSM_BURST_MS);
}

static bool shown(struct world *w, const char *text)
{
	VHCA_AUTO_FREE char *file = NULL;
	size_t len;

	assert_int_equal(
		vhca_read_file(vhca_osm_service_partition_file(w->service), 1 << 20, &file, &len),
		0);
	return strstr(file, text) != NULL;
}

/* ---- publication ---- */

static void a_report_reaches_file_and_sweep(void **state)
{
	struct world *w = *state;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	assert_false(shown(w, "0x0001"));
	assert_true(vhca_osm_service_deadline(w->service) <= vhca_now_ms() + VHCA_OSM_QUIET_MS);
	assert_int_equal(w->fake.sweeps, 0);
	settle(w);
	assert_true(shown(w, "vhca_0001=0x0001,ipoib:0x0002c90300000a01=full;"));
	assert_int_equal(w->fake.sweeps, 1);
}

static void unchanged_needs_cost_no_sweep(void **state)
{
	struct world *w = *state;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	settle(w);
	assert_string_equal(put(w, 2, PORT_A, 0x8001), ""); /* new epoch, same key */
	commit(w);
	settle(w);
	assert_int_equal(w->fake.sweeps, 1);
	/* There and back between two writes. */
	assert_string_equal(put(w, 3, PORT_B, 0x8001), "");
	commit(w);
	assert_string_equal(put(w, 4, PORT_A, 0x8001), "");
	commit(w);
	settle(w);
	assert_int_equal(w->fake.sweeps, 1);
}

static void a_sweep_that_is_about_to_read_is_enough(void **state)
{
	struct world *w = *state;

	vhca_osm_service_on_sweep_start(w->service);
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	settle(w);
	assert_true(shown(w, "0x0001"));
	assert_int_equal(w->fake.sweeps, 0);
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_on_subnet_up(w->service);
	assert_int_equal(vhca_osm_service_deadline(w->service), UINT64_MAX);
}

static void a_lost_sweep_is_asked_for_again(void **state)
{
	struct world *w = *state;
	uint64_t now;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	now = vhca_now_ms() + VHCA_OSM_BURST_MS;
	vhca_osm_service_publish(w->service, now);
	assert_int_equal(w->fake.sweeps, 1);
	vhca_osm_service_publish(w->service, now + VHCA_OSM_RESWEEP_MS - 1);
	assert_int_equal(w->fake.sweeps, 1);
	vhca_osm_service_publish(w->service, now + VHCA_OSM_RESWEEP_MS);
	assert_int_equal(w->fake.sweeps, 2);
	/* A sweep that has read the file gets its time. */
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_publish(w->service, now + 3 * VHCA_OSM_RESWEEP_MS);
	assert_int_equal(w->fake.sweeps, 2);
	vhca_osm_service_publish(w->service, now + VHCA_OSM_RESWEEP_MS + VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(w->fake.sweeps, 3);
}

/* Without a sweep, to a port that does not answer yet. */
static void send_a_key(struct world *w)
{
	w->fake.applies = true;
	w->fake.unanswered = 1;
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	settle(w);
}

static void where_it_can_be_a_key_costs_no_sweep(void **state)
{
	struct world *w = *state;

	send_a_key(w);
	assert_int_equal(w->fake.applied, 1);
	assert_false(vhca_osm_service_in_effect(w->service)); /* one port has not answered */
	w->fake.unanswered = 0;
	at(w, VHCA_OSM_LOOK_MS);
	assert_true(vhca_osm_service_in_effect(w->service));
	assert_string_equal(put(w, 2, PORT_A, 0x8002), "");
	commit(w);
	settle(w);
	assert_true(vhca_osm_service_in_effect(w->service));
	assert_int_equal(w->fake.applied, 2);
	at(w, VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(w->fake.sweeps, 0);
}

/* One that has lost it, or has gone. */
static void who_does_not_answer_is_left_to_a_sweep(void **state)
{
	struct world *w = *state;

	send_a_key(w);
	at(w, VHCA_OSM_ANSWER_MS / 2);
	assert_int_equal(w->fake.sweeps, 0);
	at(w, VHCA_OSM_ANSWER_MS / 2);
	assert_int_equal(w->fake.sweeps, 1);
	w->fake.unanswered = 0; /* of what the sweep sends, the sweep knows */
	at(w, 1);
	assert_false(vhca_osm_service_in_effect(w->service));
	at(w, VHCA_OSM_RESWEEP_MS); /* that sweep came to nothing */
	assert_int_equal(w->fake.sweeps, 2);
	vhca_osm_service_on_sweep_start(w->service);
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_on_subnet_up(w->service);
	assert_true(vhca_osm_service_in_effect(w->service));
	at(w, VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(w->fake.sweeps, 2);
}

/* One that has read the file before is no reason for another: it is applied when that is over. */
static void a_key_that_comes_late_in_a_sweep_waits_for_its_end(void **state)
{
	struct world *w = *state;

	w->fake.applies = w->fake.sweeping = true;
	vhca_osm_service_on_sweep_start(w->service);
	vhca_osm_service_on_discovered(w->service);
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	settle(w);
	at(w, VHCA_OSM_RESWEEP_MS);
	assert_int_equal(w->fake.sweeps, 0);
	vhca_osm_service_on_subnet_up(w->service);
	at(w, 1);
	assert_int_equal(w->fake.applied, 0); /* it is not over yet */
	w->fake.sweeping = false;
	vhca_osm_service_on_sweep_over(w->service);
	at(w, 1);
	assert_int_equal(w->fake.applied, 1);
	at(w, VHCA_OSM_LOOK_MS);
	assert_true(vhca_osm_service_in_effect(w->service));
	vhca_osm_service_on_sweep_over(w->service);
	at(w, 1);
	assert_int_equal(w->fake.applied, 1);
	assert_int_equal(w->fake.sweeps, 0);
}

/* It left early, without a word. */
static void a_key_does_not_wait_for_a_sweep_for_ever(void **state)
{
	struct world *w = *state;

	w->fake.applies = w->fake.sweeping = true;
	vhca_osm_service_on_sweep_start(w->service);
	vhca_osm_service_on_discovered(w->service);
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	settle(w);
	at(w, VHCA_OSM_SWEEP_MAX_MS);
	assert_int_equal(w->fake.sweeps, 1);
}

static void a_standby_does_not_sweep(void **state)
{
	struct world *w = *state;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	w->fake.status.master = false;
	settle(w);
	assert_true(shown(w, "0x0001"));
	assert_int_equal(w->fake.sweeps, 0);
}

/* ---- whose newest keys OpenSM has read ---- */

static bool has_shown(const struct world *w)
{
	bool a = vhca_osm_service_has_shown(w->service, PORT_A);

	assert_true(vhca_osm_service_has_shown(w->service,
					       PORT_B)); /* one port waits for itself only */
	return a;
}

static void a_report(struct world *w, uint64_t epoch, uint16_t pkey)
{
	assert_string_equal(put(w, epoch, PORT_A, pkey), "");
	commit(w);
	assert_false(has_shown(w));
}

static void keys_that_are_sent_are_shown(void **state)
{
	struct world *w = *state;

	w->fake.applies = true;
	w->fake.unanswered = 1; /* whose, others know */
	assert_true(has_shown(w));
	a_report(w, 1, 0x8001);
	settle(w);
	assert_true(has_shown(w));
	assert_string_equal(put(w, 2, PORT_A, 0x8001), ""); /* the same ones */
	assert_true(has_shown(w));
	assert_int_equal(vhca_osm_service_withdraw(w->service, GUID_1, 2, PORT_A, NULL), 0);
	commit(w);
	assert_false(has_shown(w)); /* it still has them */
	settle(w);
	assert_true(has_shown(w));
}

/* In the time of a burst to others, and back to what the file says. */
static void keys_that_are_those_of_the_file_again_are_shown(void **state)
{
	struct world *w = *state;

	w->fake.applies = true;
	a_report(w, 1, 0x8001);
	settle(w);
	a_report(w, 2, 0x8002);
	a_report(w, 3, 0x8001);
	settle(w);
	assert_int_equal(w->fake.applied, 1);
	assert_true(has_shown(w));
}

static void keys_that_a_sweep_has_not_read_are_not_shown(void **state)
{
	struct world *w = *state;

	a_report(w, 1, 0x8001);
	vhca_osm_service_on_sweep_start(w->service);
	settle(w);
	vhca_osm_service_on_discovered(w->service); /* the first are read, ... */
	a_report(w, 2, 0x8002);
	settle(w); /* ... the second come too late */
	vhca_osm_service_on_subnet_up(w->service);
	at(w, 1);
	assert_false(has_shown(w));
	vhca_osm_service_on_sweep_start(w->service);
	vhca_osm_service_on_discovered(w->service);
	at(w, 1);
	assert_false(has_shown(w)); /* that one may end early */
	vhca_osm_service_on_subnet_up(w->service);
	at(w, 1);
	assert_true(has_shown(w));
}

static void keys_that_cannot_be_written_are_not_shown(void **state)
{
	struct world *w = *state;

	w->fake.applies = true;
	a_report(w, 1, 0x8001);
	tree_remove(&w->tree, "state");
	settle(w);
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_on_subnet_up(w->service);
	at(w, 1);
	assert_false(has_shown(w));
	tree_mkdir(&w->tree, "state");
	at(w, VHCA_OSM_REWRITE_MS);
	assert_true(has_shown(w));
}

static void what_was_known_at_the_start_is_shown(void **state)
{
	struct world *w = *state;

	a_report(w, 1, 0x8001);
	stop(w);
	assert_int_equal(start(w, NULL), 0);
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_on_subnet_up(w->service);
	at(w, 0);
	assert_true(has_shown(w));
}

/* A missing directory stands for any failing write, also for root. */
static void state_that_cannot_be_saved_has_no_effect(void **state)
{
	struct world *w = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t retry;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	tree_remove(&w->tree, "state");
	assert_true(vhca_osm_service_commit(w->service, &err) < 0);
	assert_string_equal(err.code, "state_not_saved");
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	assert_non_null(strstr(vhca_osm_service_problem(w->service), "bindings"));
	/* No busy loop, nothing published, and a new attempt although nobody reports again. */
	retry = vhca_osm_service_deadline(w->service);
	assert_true(retry > vhca_now_ms() && retry <= vhca_now_ms() + VHCA_OSM_REWRITE_MS);
	tree_mkdir(&w->tree, "state");
	vhca_osm_service_publish(w->service, retry - 1);
	assert_false(tree_has(&w->tree, "state/partitions.conf"));
	assert_false(tree_has(&w->tree, "state/bindings"));
	vhca_osm_service_publish(w->service, retry);
	assert_true(tree_has(&w->tree, "state/bindings"));
	assert_string_equal(vhca_osm_service_problem(w->service), "");
}

static void a_partition_file_that_cannot_be_written_is_retried(void **state)
{
	struct world *w = *state;
	uint64_t now;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	tree_remove(&w->tree, "state");
	now = vhca_now_ms() + VHCA_OSM_BURST_MS;
	vhca_osm_service_publish(w->service, now);
	assert_non_null(strstr(vhca_osm_service_problem(w->service), "partitions.conf"));
	assert_int_equal(w->fake.sweeps, 0);
	assert_int_equal(vhca_osm_service_deadline(w->service), now + VHCA_OSM_REWRITE_MS);
	tree_mkdir(&w->tree, "state");
	vhca_osm_service_publish(w->service, now + VHCA_OSM_REWRITE_MS);
	assert_string_equal(vhca_osm_service_problem(w->service), "");
	assert_true(shown(w, "0x0001"));
	assert_int_equal(w->fake.sweeps, 1);
}

/* What failed may have replaced it, and the text before is wanted again. */
static void a_partition_file_that_may_be_another_is_written(void **state)
{
	struct world *w = *state;

	a_report(w, 1, 0x8001);
	settle(w);
	a_report(w, 2, 0x8002);
	tree_remove(&w->tree, "state");
	settle(w);
	tree_mkdir(&w->tree, "state");
	a_report(w, 3, 0x8001);
	at(w, VHCA_OSM_REWRITE_MS);
	assert_true(tree_has(&w->tree, "state/partitions.conf"));
	assert_false(has_shown(w)); /* OpenSM may have read the other one */
	assert_int_equal(w->fake.sweeps, 2);
}

static void a_key_that_is_left_out_is_named(void **state)
{
	struct world *w = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const uint16_t default_key = VHCA_PKEY_DEFAULT;

	assert_int_equal(vhca_osm_service_check_keys(w->service, PORT_A, &err), 0);
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	assert_int_equal(vhca_osm_service_declare(w->service, PORT_A, &default_key, 1, NULL), 0);
	memset(w->fake.pkeys, 0, sizeof(w->fake.pkeys));
	assert_true(vhca_osm_service_check_keys(w->service, PORT_A, &err) < 0);
	assert_string_equal(err.code, "keys_on_the_way");
	assert_non_null(strstr(err.msg, "0x8001"));
	w->fake.pkeys[3] = 0x8001; /* and the other form of the default one */
	assert_int_equal(vhca_osm_service_check_keys(w->service, PORT_A, &err), 0);
}

static void base_file_changes_are_merged(void **state)
{
	struct world *w = *state;

	stop(w);
	tree_put(&w->tree, "base", "A=0x0100:ALL;\n");
	set_base(w, "base");
	assert_int_equal(start(w, NULL), 0);
	assert_true(shown(w, "A=0x0100:ALL;"));
	vhca_osm_service_on_sweep_start(w->service);
	settle(w);
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_on_subnet_up(w->service);
	tree_put(&w->tree, "base", "A=0x0100 ALL;\n"); /* no colon */
	vhca_osm_service_on_sweep_start(w->service);
	settle(w);
	assert_true(shown(w, "A=0x0100:ALL;"));
	assert_non_null(strstr(vhca_osm_service_problem(w->service), "base:1:"));
	assert_true(has_shown(w));
	tree_put(&w->tree, "base", "B=0x0200:ALL;\n");
	vhca_osm_service_on_sweep_start(w->service);
	settle(w);
	settle(w);
	assert_string_equal(vhca_osm_service_problem(w->service), "");
	assert_true(shown(w, "B=0x0200:ALL;"));
	/* Which ports this is about, nobody knows. */
	assert_false(vhca_osm_service_has_shown(w->service, PORT_A));
	assert_false(vhca_osm_service_has_shown(w->service, PORT_B));
	vhca_osm_service_on_discovered(w->service);
	vhca_osm_service_on_subnet_up(w->service);
	settle(w);
	assert_true(has_shown(w));
}

/* ---- durability ---- */

static void everything_is_back_after_a_restart(void **state)
{
	struct world *w = *state;
	const uint16_t declared[] = {0x8005};

	assert_string_equal(put(w, 7, PORT_A, 0x8001), "");
	assert_int_equal(vhca_osm_service_declare(w->service, PORT_B, declared, 1, NULL), 0);
	commit(w);
	stop(w); /* the partition file was not written: the start has to */
	assert_int_equal(start(w, NULL), 0);
	assert_true(shown(w, "0x0001,ipoib:0x0002c90300000a01=full;"));
	assert_true(shown(w, "0x0005,ipoib:0x0002c90300000b01=full;"));
	assert_string_equal(put(w, 6, PORT_A, 0x8001), "superseded");
	assert_int_equal(vhca_osm_service_deadline(w->service), UINT64_MAX);
}

static void refused_starts_leave_no_service(void **state)
{
	struct world *w = *state;
	struct vhca_osm_service *second = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(vhca_osm_service_new(&w->conf, &fake_ops, &w->fake, &second, &err) < 0);
	assert_non_null(strstr(err.msg, "in use"));
	assert_null(second);
	stop(w);
	tree_put(&w->tree, "state/bindings", "vhcasm-state 2\nend 1\n");
	assert_true(start(w, &err) < 0);
	assert_string_equal(err.code, "state_damaged");
	tree_remove(&w->tree, "state/bindings");
	set_base(w, "no-such-base");
	assert_true(start(w, &err) < 0);
	assert_string_equal(err.code, "bad_base_file");
}

static void an_option_that_is_off_again_is_no_damage(void **state)
{
	struct world *w = *state;
	const uint16_t both[] = {0x8001, 0x0001};
	struct vhca_error err = VHCA_ERROR_INIT;

	stop(w);
	w->conf.policy.both_memberships = true;
	assert_int_equal(start(w, NULL), 0);
	assert_int_equal(vhca_osm_service_declare(w->service, PORT_A, both, 2, NULL), 0);
	commit(w);
	stop(w);
	w->conf.policy.both_memberships = false;
	assert_true(start(w, &err) < 0);
	assert_string_equal(err.code, "both_memberships");
	assert_non_null(strstr(err.msg, "state/bindings: line 2: port 0x0002c90300000a01 needs"));
	assert_non_null(strstr(err.hint, "allow_both_pkeys"));
	assert_null(strstr(err.hint, "move it away"));
	w->conf.policy.both_memberships = true;
	assert_int_equal(start(w, NULL), 0);
}

/* ---- checks ---- */

static void reports_are_checked_against_the_subnet(void **state)
{
	struct world *w = *state;
	uint16_t many[32];

	assert_string_equal(put(w, 1, 0x1234, 0x8001), "unknown_port");
	w->fake.status.master = false;
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "not_master");
	assert_true(vhca_osm_service_withdraw(w->service, GUID_1, 1, 0, NULL) < 0);
	w->fake.status.master = true;
	for (uint16_t i = 0; i < 32; i++)
		many[i] = (uint16_t)(0x8001 + i);
	assert_int_equal(vhca_osm_service_declare(w->service, PORT_B, many, 31, NULL), 0);
	/* 32 entries, one of them for the default partition. */
	assert_true(vhca_osm_service_declare(w->service, PORT_B, many, 32, NULL) < 0);
	many[31] = VHCA_PKEY_DEFAULT | VHCA_PKEY_FULL; /* that one */
	assert_int_equal(vhca_osm_service_declare(w->service, PORT_B, many, 32, NULL), 0);
	assert_int_equal(vhca_osm_service_declare(w->service, 0x1234, NULL, 0, NULL), 0);
}

static void a_table_that_the_default_partition_fills_has_no_room(void **state)
{
	struct world *w = *state;

	stop(w);
	w->fake.ports[1].pkey_cap = 1;
	w->conf.policy.both_memberships = true; /* of the default partition */
	assert_int_equal(start(w, NULL), 0);
	assert_string_equal(put(w, 1, PORT_B, 0x8001), "table_full");
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
}

static void policy_is_enforced(void **state)
{
	struct world *w = *state;

	stop(w);
	assert_int_equal(vhca_osm_policy_parse_allowed(&w->conf.policy, "0x10", NULL), 0);
	assert_int_equal(start(w, NULL), 0);
	assert_string_equal(put(w, 1, PORT_A, 0x8011), "unknown_partition");
	assert_string_equal(put(w, 1, PORT_A, 0x8010), "");
	assert_string_equal(put(w, 1, PORT_A, 0xffff),
			    ""); /* named, but nothing is written for it */
	commit(w);
	settle(w);
	assert_false(shown(w, "vhca_7fff"));
}

/* ---- taking over ---- */

static void keys_found_on_ports_stay_for_a_while(void **state)
{
	struct world *w = *state;
	uint64_t end;

	assert_true(vhca_osm_service_is_new(w->service));
	assert_false(vhca_osm_service_is_rebuilding(w->service));
	stop(w);
	tree_put(&w->tree, "base", "D=0x7fff:ALL=full;A=0x0100:SELF;\n");
	set_base(w, "base");
	assert_int_equal(vhca_osm_policy_parse_allowed(&w->conf.policy, "0x1-0x1ff", NULL), 0);
	assert_int_equal(start(w, NULL), 0);
	/* The default partition, the base file's, one that is not allowed, one to keep. */
	memcpy(w->fake.pkeys, (uint16_t[]){0x8001, 0x8100, 0x8200, 0xffff}, sizeof(w->fake.pkeys));
	vhca_osm_service_inherit(w->service, vhca_now_ms());
	assert_false(vhca_osm_service_is_new(w->service));
	assert_true(vhca_osm_service_is_rebuilding(w->service));
	assert_true(shown(w, "vhca_0001=0x0001,ipoib:0x0002c90300000a01=full,"
			     "0x0002c90300000b01=full;"));
	assert_false(shown(w, "0x0200"));
	assert_false(shown(w, "vhca_0100"));
	/* Also over a restart. */
	commit(w);
	stop(w);
	assert_int_equal(start(w, NULL), 0);
	assert_false(vhca_osm_service_is_new(w->service));
	assert_true(vhca_osm_service_is_rebuilding(w->service));
	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	end = vhca_osm_service_deadline(w->service);
	assert_true(end > vhca_now_ms() + 590000 && end <= vhca_now_ms() + 600000);
	vhca_osm_service_publish(w->service, end);
	vhca_osm_service_publish(w->service, end + VHCA_OSM_BURST_MS);
	assert_true(shown(w, "vhca_0001=0x0001,ipoib:0x0002c90300000a01=full;"));
	assert_false(shown(w, "0x0002c90300000b01"));
	assert_false(vhca_osm_service_is_rebuilding(w->service));
}

/* 2,891 hypervisors with 16 VFs each, all with ports of their own, are 49,147. */
static void no_port_is_too_many(void **state)
{
	struct world *w = *state;
	uint64_t before, took;

	w->fake.crowd = 65536;
	w->fake.pkeys[0] = 0x8001;
	before = vhca_now_ms();
	vhca_osm_service_inherit(w->service, before);
	took = vhca_now_ms() - before;
	print_message("# keys of %u ports kept in %" PRIu64 " ms\n", w->fake.crowd, took);
	assert_true(took < 5000); /* OpenSM's sweeper waits no longer */
	assert_int_equal(vhca_osm_table_inherited(vhca_osm_service_table(w->service)),
			 w->fake.crowd + 2);
	commit(w);
	stop(w);
	assert_int_equal(start(w, NULL), 0);
	assert_int_equal(vhca_osm_table_inherited(vhca_osm_service_table(w->service)),
			 w->fake.crowd + 2);
}

/* One port more than the table holds: nobody may take the keys of any for known. */
static void an_incomplete_inheritance_is_none(void **state)
{
	struct world *w = *state;

	w->fake.crowd = VHCA_OSM_PORTS_MAX - 2;
	w->fake.pkeys[0] = 0x8001;
	assert_int_equal(vhca_osm_service_inherit(w->service, 1000), 0);
	assert_string_equal(vhca_osm_service_problem(w->service), "");
	w->fake.crowd++;
	assert_int_equal(vhca_osm_service_inherit(w->service, 2000), -EAGAIN);
	assert_non_null(strstr(vhca_osm_service_problem(w->service), "the keys of 1 ports"));
}

static void an_inheritance_that_is_not_written_is_none(void **state)
{
	struct world *w = *state;
	char away[sizeof(w->conf.state_dir) + 8];

	(void)snprintf(away, sizeof(away), "%s.away", w->conf.state_dir);
	w->fake.pkeys[0] = 0x8001;
	assert_int_equal(rename(w->conf.state_dir, away), 0);
	assert_int_equal(vhca_osm_service_inherit(w->service, 1000), -EAGAIN);
	assert_int_equal(rename(away, w->conf.state_dir), 0);
	assert_int_equal(vhca_osm_service_inherit(w->service, 2000), 0);
	assert_string_equal(vhca_osm_service_problem(w->service), "");
}

static void the_last_state_is_no_inheritance(void **state)
{
	struct world *w = *state;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	commit(w);
	assert_false(vhca_osm_service_is_new(w->service));
	stop(w);
	assert_int_equal(start(w, NULL), 0);
	assert_false(vhca_osm_service_is_new(w->service));
	assert_int_equal(vhca_osm_service_deadline(w->service), UINT64_MAX);
}

/* ---- view ---- */

static const struct vhca_osm_view *view(struct world *w)
{
	static struct vhca_osm_view v;

	vhca_osm_service_view(w->service,
			      vhca_osm_table_find(vhca_osm_service_table(w->service), GUID_1), &v);
	return &v;
}

static void state_follows_the_sa(void **state)
{
	struct world *w = *state;

	assert_string_equal(put(w, 1, PORT_A, 0x8001), "");
	w->fake.pkeys[0] = 0x8001;
	assert_int_equal(view(w)->state, VHCA_OSM_PENDING);
	assert_int_equal(view(w)->n_findings, 0);
	w->fake.alias_known = true;
	w->fake.alias = (struct vhca_osm_alias){PORT_A, 3};
	assert_int_equal(view(w)->state, VHCA_OSM_GRANTED);
	assert_int_equal(view(w)->n_findings, 0);
	w->fake.alias = (struct vhca_osm_alias){PORT_A, 4};
	assert_int_equal(view(w)->state, VHCA_OSM_PENDING);
	assert_non_null(strstr(view(w)->findings[0], "at index 4"));
	w->fake.alias = (struct vhca_osm_alias){PORT_B, 3};
	assert_int_equal(view(w)->state, VHCA_OSM_ELSEWHERE);
	assert_non_null(strstr(view(w)->findings[0], "0x0002c90300000b01"));
	w->fake.alias = (struct vhca_osm_alias){PORT_B, -1};
	assert_non_null(strstr(view(w)->findings[0], "at no index"));
	assert_int_equal(vhca_osm_service_withdraw(w->service, GUID_1, 1, 0, NULL), 0);
	assert_int_equal(view(w)->state, VHCA_OSM_WITHDRAWN);
	assert_int_equal(view(w)->n_findings, 0);
}

static void findings_name_what_differs(void **state)
{
	struct world *w = *state;
	struct vhca_osm_eviction ev;
	uint16_t pkeys[] = {0x8001, 0x8002, 0x0003};
	struct vhca_osm_binding b = {.vguid = GUID_1,
				     .epoch = 1,
				     .port_guid = PORT_A,
				     .lid = 9,
				     .n_pkeys = 3,
				     .pkeys = pkeys};

	assert_int_equal(vhca_osm_service_put(w->service, &b, 0, &ev, NULL), 0);
	w->fake.ports[0].state = 2;
	w->fake.pkeys[0] = 0x8002;
	assert_int_equal(view(w)->lid, 5);
	assert_int_equal(view(w)->n_findings, 3);
	assert_non_null(strstr(view(w)->findings[0], "reported LID 9"));
	assert_non_null(strstr(view(w)->findings[1], "Initialize, not Active"));
	assert_non_null(strstr(view(w)->findings[2], ": 0x8001 0x0003."));
	w->fake.ports[0] = (struct vhca_osm_port_info){0};
	assert_int_equal(view(w)->lid, 0);
	assert_non_null(strstr(view(w)->findings[1], "unknown state"));
}

static void a_port_that_left_is_named(void **state)
{
	struct world *w = *state;
	struct vhca_osm_binding gone = {.vguid = GUID_1, .epoch = 1, .port_guid = 0x4711};
	struct vhca_osm_view v;

	vhca_osm_view_get(&fake_ops, &w->fake, &gone, &v);
	assert_int_equal(v.n_findings, 1);
	assert_non_null(strstr(v.findings[0], "not in the subnet"));
}

/* ---- publisher ---- */

static void bursts_end(void **state)
{
	struct vhca_osm_publisher p = {0};
	uint64_t now = 1000;

	(void)state;
	for (; now < 1000 + VHCA_OSM_BURST_MS; now += VHCA_OSM_QUIET_MS / 2) {
		assert_false(vhca_osm_publisher_write_due(&p, now));
		vhca_osm_publisher_changed(&p, now);
	}
	assert_true(vhca_osm_publisher_write_due(&p, now)); /* although it never was quiet */
	assert_true(vhca_osm_publisher_written(&p, false, true, now));
	assert_false(vhca_osm_publisher_settled(&p));
	vhca_osm_publisher_changed(&p, now);
	assert_int_equal(vhca_osm_publisher_deadline(&p), now + VHCA_OSM_QUIET_MS);
	assert_false(vhca_osm_publisher_written(&p, false, false, now)); /* same text */
	vhca_osm_publisher_on_discovered(&p);
	vhca_osm_publisher_on_subnet_up(&p);
	assert_true(vhca_osm_publisher_settled(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_report_reaches_file_and_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(unchanged_needs_cost_no_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sweep_that_is_about_to_read_is_enough, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_lost_sweep_is_asked_for_again, setup, teardown),
		cmocka_unit_test_setup_teardown(where_it_can_be_a_key_costs_no_sweep, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_does_not_answer_is_left_to_a_sweep, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_key_that_comes_late_in_a_sweep_waits_for_its_end,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_key_does_not_wait_for_a_sweep_for_ever, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_standby_does_not_sweep, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_that_are_sent_are_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_that_are_those_of_the_file_again_are_shown,
						setup, teardown),
		cmocka_unit_test_setup_teardown(keys_that_a_sweep_has_not_read_are_not_shown, setup,
						teardown),
		cmocka_unit_test_setup_teardown(keys_that_cannot_be_written_are_not_shown, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_was_known_at_the_start_is_shown, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_table_that_the_default_partition_fills_has_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(state_that_cannot_be_saved_has_no_effect, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_partition_file_that_cannot_be_written_is_retried,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_partition_file_that_may_be_another_is_written,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_key_that_is_left_out_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(base_file_changes_are_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_is_back_after_a_restart, setup,
						teardown),
		cmocka_unit_test_setup_teardown(refused_starts_leave_no_service, setup, teardown),
		cmocka_unit_test_setup_teardown(an_option_that_is_off_again_is_no_damage, setup,
						teardown),
		cmocka_unit_test_setup_teardown(reports_are_checked_against_the_subnet, setup,
						teardown),
		cmocka_unit_test_setup_teardown(policy_is_enforced, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_found_on_ports_stay_for_a_while, setup,
						teardown),
		cmocka_unit_test_setup_teardown(no_port_is_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(an_incomplete_inheritance_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(an_inheritance_that_is_not_written_is_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_last_state_is_no_inheritance, setup, teardown),
		cmocka_unit_test_setup_teardown(state_follows_the_sa, setup, teardown),
		cmocka_unit_test_setup_teardown(findings_name_what_differs, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_that_left_is_named, setup, teardown),
		cmocka_unit_test(bursts_end),
	};

	return cmocka_run_group_tests_name("osm_service", tests, NULL, NULL);
}
