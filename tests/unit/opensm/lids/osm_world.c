/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/opensm/lids/osm_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t leaf_of(uint64_t port_guid)
{
	return (size_t)(port_guid / 16);
}

static int refuse(struct vhca_error *err, const char *code)
{
	return vhca_error_set(err, VHCA_ERR_CONFLICT, code, 0, "fake");
}

/* Its PF is away, and has no LID. */
static int resolve_freed(const struct world *w, const struct vhca_osm_lid_want *want,
			 struct vhca_osm_lid_pair *ret)
{
	*ret = (struct vhca_osm_lid_pair){.guid = {want->vguid}, .dynamic = want->dynamic};
	if (w->owner[want->lid] != want->vguid)
		return 1;
	ret->guid[1] = want->port_guid;
	ret->lid[0] = want->lid;
	return 0;
}

uint16_t world_lid_of(const struct world *w, uint64_t vguid)
{
	for (uint16_t lid = 1; lid < WORLD_LIDS; lid++)
		if (w->owner[lid] == vguid)
			return lid;
	return 0;
}

static size_t count_given(const struct world *w)
{
	size_t n = 0;

	for (size_t lid = 1; lid < WORLD_LIDS; lid++)
		n += w->pf[lid] != 0;
	return n;
}

static int resolve_given(const struct world *w, const struct vhca_osm_lid_want *want,
			 const struct vhca_osm_lids_promised *promised,
			 struct vhca_osm_lid_pair *ret, struct vhca_error *err)
{
	uint16_t lid = world_lid_of(w, want->vguid);

	*ret = (struct vhca_osm_lid_pair){.guid = {want->vguid, want->port_guid},
					  .lid = {lid, world_lid_of(w, want->port_guid)},
					  .dynamic = want->dynamic,
					  .old_pf = w->pf[lid]};
	if (lid)
		return w->pf[lid] == want->port_guid;
	if (w->limit && count_given(w) + (promised ? promised->n + promised->ahead : 0) >= w->limit)
		return refuse(err, "no_free_lid");
	for (lid = 1; lid < WORLD_LIDS - 1; lid++)
		if (!w->owner[lid] && !(promised && vhca_osm_lid_set_has(&promised->lids, lid)))
			break;
	ret->lid[0] = lid;
	return 0;
}

static int fake_resolve(void *ctx, const struct vhca_osm_lid_want *want,
			const struct vhca_osm_lids_promised *promised,
			struct vhca_osm_lid_pair *ret, struct vhca_error *err)
{
	struct world *w = ctx;
	uint16_t lid = want->lid;
	uint64_t port_guid = want->port_guid;

	w->resolved++;
	if (w->standby)
		return refuse(err, "not_master");
	if (want->dynamic == VHCA_OSM_LID_FREED)
		return resolve_freed(w, want, ret);
	if (want->dynamic == VHCA_OSM_LID_GIVEN)
		return resolve_given(w, want, promised, ret, err);
	if (!w->owner[lid])
		return refuse(err, "unknown_lid");
	for (uint16_t l = 1; l < WORLD_LIDS; l++)
		if (w->owner[l] == port_guid) {
			*ret = (struct vhca_osm_lid_pair){.guid = {w->owner[lid], port_guid},
							  .lid = {lid, l}};
			return lid == l;
		}
	return refuse(err, "unknown_port");
}

static void plan_everywhere(struct vhca_osm_switch_set *at)
{
	assert_int_equal(vhca_osm_switch_set_init(at, LEAVES + 1), 0);
	for (uint64_t leaf = 0; leaf < LEAVES; leaf++)
		vhca_osm_switch_set_add(at, leaf + 1);
	vhca_osm_switch_set_add(at, SPINE);
}

static int fake_plan(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		     struct vhca_osm_lid_plan *ret, struct vhca_osm_lid_cost *ret_cost,
		     struct vhca_error *err)
{
	struct world *w = ctx;
	size_t a = leaf_of(pair->guid[0]), b = leaf_of(pair->guid[1]);
	struct vhca_osm_switch_set *at = &ret->switches;

	(void)err;
	w->plans++;
	*ret = (struct vhca_osm_lid_plan){.mode = mode, .tables = pair->guid[0] ^ pair->guid[1]};
	*ret_cost = (struct vhca_osm_lid_cost){
		.mode = mode, .switches = 3, .lft_smps = 4, .port_smps = 2};
	if (pair->dynamic == VHCA_OSM_LID_GIVEN) {
		plan_everywhere(at);
		return 0;
	}
	assert_int_equal(vhca_osm_switch_set_init(at, 3), 0);
	vhca_osm_switch_set_add(at, b + 1); /* 0 is no GUID */
	if (a != b) {
		vhca_osm_switch_set_add(at, a + 1);
		vhca_osm_switch_set_add(at, SPINE);
	}
	vhca_osm_switch_set_sort(at);
	return 0;
}

static int fake_remember(void *ctx, const struct vhca_osm_lid_pair *pairs, size_t n, bool undo)
{
	struct world *w = ctx;

	if (w->refuse_remember && !undo)
		return -EIO;
	w->saved++;
	w->clock_ms += w->disk_ms;
	vhca_osm_mover_stats(w->m, &w->saving);
	for (size_t p = 0; p < n; p++) {
		w->remembered++;
		if (pairs[p].dynamic == VHCA_OSM_LID_GIVEN) {
			w->file[pairs[p].lid[0]] = undo && !pairs[p].old_pf ? 0 : pairs[p].guid[0];
			continue;
		}
		for (int i = 0; i < 2; i++)
			w->file[pairs[p].lid[i]] = pairs[p].guid[undo ? i : 1 - i];
	}
	return 0;
}

/* Nobody else is where this move goes; or, when it ends, was. */
static void occupy(struct world *w, const struct vhca_osm_lid_pair *pair, bool begins)
{
	size_t a = leaf_of(pair->guid[0]), b = leaf_of(pair->guid[1]);

	assert_int_not_equal(w->busy[a], begins);
	assert_int_not_equal(w->busy[b], begins);
	w->busy[a] = w->busy[b] = begins;
	if (a != b) {
		assert_int_not_equal(w->spine_busy, begins);
		w->spine_busy = begins;
	}
}

static size_t fake_drain(void *ctx, const struct vhca_osm_lid_pair *pair,
			 const struct vhca_osm_switch_set *at, bool send)
{
	struct world *w = ctx;
	size_t undrained = w->undrained;

	assert_true(vhca_osm_switch_set_has(at, leaf_of(pair->guid[0]) + 1));
	assert_int_equal(w->file[pair->lid[0]], pair->guid[1]);	 /* durable before that, too */
	assert_int_equal(w->owner[pair->lid[0]], pair->guid[0]); /* and before the change */
	if (send && undrained)
		w->drained++;
	if (w->drains_at_once)
		w->undrained = 0;
	return undrained;
}

static int fake_send(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		     const struct vhca_osm_lid_plan *plan, struct vhca_osm_lid_cost *ret,
		     struct vhca_error *err)
{
	struct world *w = ctx;
	const struct vhca_osm_switch_set *at = &plan->switches;

	(void)ret;
	assert_int_equal(plan->mode, mode); /* it is this move's plan */
	assert_int_equal(plan->tables, pair->guid[0] ^ pair->guid[1]);
	assert_int_equal(w->file[pair->lid[0]],
			 pair->guid[1]); /* durable before the first effect */
	assert_false(vhca_osm_gate_is_sweeping(&w->gate));
	assert_int_equal(w->owner[pair->lid[0]], pair->guid[0]);
	assert_true(!pair->lid[1] || w->owner[pair->lid[1]] == pair->guid[1]);
	assert_true(vhca_osm_switch_set_has(at, leaf_of(pair->guid[0]) + 1));
	assert_true(vhca_osm_switch_set_has(at, leaf_of(pair->guid[1]) + 1));
	if (w->refuse_send || w->refuse_send_to == pair->guid[1])
		return refuse(err, "changed_meanwhile");
	w->sent++;
	w->keys_lack = true;
	occupy(w, pair, true);
	for (int i = 0; i < 2; i++)
		w->owner[pair->lid[i]] = pair->guid[1 - i];
	return 0;
}

/* Nobody is at any switch but those who are given one at the same time. */
static int give(struct world *w, const struct vhca_osm_lid_pair *pair, struct vhca_error *err)
{
	uint16_t lid = pair->lid[0];

	assert_int_equal(w->file[lid], pair->guid[0]); /* durable before the first effect */
	assert_false(vhca_osm_gate_is_sweeping(&w->gate));
	assert_int_equal(w->owner[lid], pair->old_pf ? pair->guid[0] : 0);
	for (size_t leaf = 0; leaf < LEAVES; leaf++)
		assert_false(w->busy[leaf]);
	if (w->refuse_send || w->refuse_send_to == pair->guid[0])
		return refuse(err, "changed_meanwhile");
	w->sent++;
	w->owner[lid] = pair->guid[0];
	w->pf[lid] = pair->guid[1];
	return 0;
}

static size_t fake_missing(void *ctx, const struct vhca_osm_lid_pair *pair,
			   const struct vhca_osm_switch_set *at, bool resend)
{
	struct world *w = ctx;
	bool given = pair->dynamic == VHCA_OSM_LID_GIVEN;
	size_t *lost =
		given ? &w->lost_blocks[pair->lid[0] / 64] : &w->lost[leaf_of(pair->guid[0])];
	size_t missing = w->missing + *lost;

	(void)at;
	if (resend) {
		w->resent++;
		w->undone += w->owner[pair->lid[0]] == pair->guid[0];
		if (w->resend_helps)
			w->missing = *lost = 0;
	}
	return missing;
}

static size_t fake_missing_together(void *ctx, struct vhca_osm_lid_part *parts, size_t n)
{
	struct world *w = ctx;
	size_t most = 0;

	for (size_t i = 0; i < n; i++) {
		parts[i].blocks = fake_missing(w, parts[i].pair, NULL, parts[i].resend);
		parts[i].ports = w->lost_ports;
		most = parts[i].blocks > most ? parts[i].blocks : most;
	}
	return most;
}

/* As many SMPs as blocks; a switch more or less is not this one's business. */
static size_t fake_send_together(void *ctx, struct vhca_osm_lid_part *parts, size_t n)
{
	struct world *w = ctx;
	bool sent[WORLD_LIDS / 64 + 1] = {false};
	size_t blocks = 0;

	w->together++;
	w->parts = n;
	for (size_t i = 0; i < n; i++) {
		const struct vhca_osm_lid_pair *pair = parts[i].pair;
		bool *block = &sent[pair->lid[0] / 64];

		if (pair->dynamic == VHCA_OSM_LID_GIVEN)
			parts[i].refused = give(w, pair, &parts[i].err);
		else
			parts[i].refused = fake_send(w, pair, parts[i].plan->mode, parts[i].plan,
						     parts[i].cost, &parts[i].err);
		if (parts[i].refused < 0)
			continue;
		blocks += !*block;
		*block = true;
	}
	(void)fake_missing_together(w, parts, n);
	return blocks;
}

static void fake_send_keys(void *ctx)
{
	struct world *w = ctx;

	w->keys_sent += w->keys_lack;
	w->keys_lack = false;
}

static int fake_check_done(void *ctx, const struct vhca_osm_lid_pair *pair, struct vhca_error *err)
{
	const struct world *w = ctx;

	(void)pair;
	return w->keys_missing ? refuse(err, "keys_on_the_way") : 0;
}

static uint64_t fake_now(void *ctx)
{
	const struct world *w = ctx;

	return w->clock_ms;
}

static unsigned int fake_timeout(void *ctx)
{
	(void)ctx;
	return TIMEOUT;
}

static void fake_sweep(void *ctx)
{
	struct world *w = ctx;

	w->sweeps++;
}

static bool fake_is_master(void *ctx)
{
	const struct world *w = ctx;

	return !w->standby;
}

static const struct vhca_osm_lid_ops ops = {.resolve = fake_resolve,
					    .plan = fake_plan,
					    .remember = fake_remember,
					    .drain = fake_drain,
					    .send = fake_send,
					    .send_together = fake_send_together,
					    .missing_together = fake_missing_together,
					    .send_keys = fake_send_keys,
					    .missing = fake_missing,
					    .check_done = fake_check_done,
					    .is_master = fake_is_master,
					    .now_ms = fake_now,
					    .timeout_ms = fake_timeout,
					    .sweep = fake_sweep};

static void on_answer(void *arg, const struct vhca_osm_lid_move *move, const struct vhca_error *err)
{
	struct world *w = arg;

	w->answers++;
	w->got = *move;
	(void)snprintf(w->code, sizeof(w->code), "%s", err ? err->code : "");
	w->hinted = err && err->hint[0];
	if (move->changes && move->want.dynamic != VHCA_OSM_LID_GIVEN &&
	    (!err || w->keys_missing)) {
		assert_false(w->keys_lack);
		occupy(w, &move->pair, false);
	}
}

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	for (size_t leaf = 0; leaf < LEAVES; leaf++)
		for (size_t n = 0; n < 3; n++)
			w->owner[LID(leaf, n)] = w->file[LID(leaf, n)] = PORT(leaf, n);
	*state = w;
	return vhca_osm_gate_init(&w->gate) == 0 &&
			       vhca_osm_mover_new(&ops, w, &w->gate, &w->m) == 0
		       ? 0
		       : -1;
}

int world_teardown(void **state)
{
	struct world *w = *state;

	(void)vhca_osm_mover_free(w->m);
	vhca_osm_gate_done(&w->gate);
	free(w);
	return 0;
}

void world_submit_freed(struct world *w, uint16_t lid, uint64_t vguid)
{
	const struct vhca_osm_lid_move want = {.want = {.lid = lid,
							.vguid = vguid,
							.port_guid = PORT_B,
							.dynamic = VHCA_OSM_LID_FREED}};

	assert_int_equal(vhca_osm_mover_submit(w->m, &want, on_answer, w, NULL), 0);
}

void world_submit_given(struct world *w, uint64_t vguid, uint64_t pf)
{
	const struct vhca_osm_lid_move want = {
		.want = {.vguid = vguid, .port_guid = pf, .dynamic = VHCA_OSM_LID_GIVEN}};

	assert_int_equal(vhca_osm_mover_submit(w->m, &want, on_answer, w, NULL), 0);
}

void world_submit(struct world *w, uint16_t lid, uint64_t port)
{
	world_submit_from(w, lid, 0, port);
}

void world_submit_from(struct world *w, uint16_t lid, uint64_t from, uint64_t port)
{
	const struct vhca_osm_lid_move want = {
		.want = {.lid = lid, .from_port = from, .port_guid = port},
		.mode = VHCA_OSM_SKYLINE};

	assert_int_equal(vhca_osm_mover_submit(w->m, &want, on_answer, w, NULL), 0);
}

void world_check_and_queue(struct world *w, uint16_t lid, uint64_t port)
{
	struct vhca_osm_lid_move move = {.want = {.lid = lid, .port_guid = port},
					 .mode = VHCA_OSM_SKYLINE};

	assert_int_equal(vhca_osm_mover_check(w->m, &move, 0, NULL), 0);
	assert_int_equal(vhca_osm_mover_queue(w->m, &move, on_answer, w, NULL), 0);
}

struct vhca_osm_mover_stats world_stats(const struct world *w)
{
	struct vhca_osm_mover_stats s;

	vhca_osm_mover_stats(w->m, &s);
	return s;
}

static void *sweep(void *arg)
{
	struct world_sweeper *s = arg;

	s->alone = vhca_osm_gate_sweep_begin(s->gate);
	atomic_store(&s->begun, true);
	return NULL;
}

void world_sweep_begin(struct world *w, struct world_sweeper *ret)
{
	*ret = (struct world_sweeper){.gate = &w->gate};
	assert_int_equal(pthread_create(&ret->thread, NULL, sweep, ret), 0);
	unit_until(vhca_osm_gate_is_sweeping(&w->gate), assert_false(atomic_load(&ret->begun)));
}
