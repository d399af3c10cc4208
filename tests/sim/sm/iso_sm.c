/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A subnet manager that gives each port (mlx4: the host's; mlx5: the vport that shows the address)
 * the keys of the bindings at it (sim_sm.h), takes away what no binding needs any more, and in its
 * bad hours writes the table in another order. Reports reach it when they are durable, late, and
 * again after a restart.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "sm/outbox.h"
#include "tests/sim/host/iso.h"
#include "tests/sim/host/vtime.h"

#define PORT_GUID 0x0002c90300000011u

static struct iso *of(struct vhca_outbox *ob)
{
	return (struct iso *)(void *)ob; /* see iso_start() */
}

/* ---- the port ---- */

struct port_news {
	struct iso *it;
	enum vhca_port_event event;
	struct vhca_port_state state;
};

static void on_port_news(void *arg)
{
	struct port_news *news = arg;
	struct vhca_bdf pf;

	(void)vhca_bdf_parse(HW_PF, &pf);
	vhca_engine_port(news->it->engine, pf, news->event, &news->state);
	free(news);
}

/* The port's table as the agent hears of it, late. */
static void tell_port(struct iso *it, enum vhca_port_event event)
{
	struct port_news *news = calloc(1, sizeof(*news));

	assert(news);
	*news = (struct port_news){
		.it = it,
		.event = event,
		.state = {.port = 1,
			  .state = 4,
			  .phys_state = 5,
			  .is_ib = true,
			  .lid = 7,
			  .sm_lid = 1,
			  .port_guid = PORT_GUID,
			  .n_pkeys = (uint16_t)it->truth.hw.n_keys},
	};
	memcpy(news->state.pkeys,
	       it->broken == ISO_REORDER_IGNORED ? it->shown : it->truth.hw.pkeys[0],
	       it->truth.hw.n_keys * sizeof(it->shown[0]));
	/*
	 * In the order in which they were read: the strand of the PF reads and posts one after the
	 * other.
	 */
	vtime_after(VTIME_AGENT, 5, on_port_news, news, free);
}

static void table_changed(struct iso *it)
{
	if (!it->engine)
		return;
	/*
	 * An event may be lost (cache.c drops them when memory is short): then the slow poll sees
	 * it.
	 */
	if (iso_random(it, 10))
		tell_port(it, VHCA_PORT_PKEYS);
}

/* ---- the table ---- */

/* The i-th vGUID that it heard of, if it is bound. */
static const struct vhca_osm_binding *bound(const struct iso *it, unsigned int i)
{
	const struct vhca_osm_binding *b = sim_sm_find(&it->sm, it->known[i]);

	return b && !b->withdrawn ? b : NULL;
}

static bool needed(const struct iso *it, uint16_t key)
{
	const struct vhca_osm_binding *b;

	for (unsigned int i = 0; i < it->n_known; i++) {
		b = bound(it, i);
		for (unsigned int k = 0; b && k < b->n_pkeys; k++)
			if (b->pkeys[k] == key)
				return true;
	}
	return false;
}

static bool has(const uint16_t *table, uint16_t key)
{
	for (unsigned int i = 0; i < HW_KEYS; i++) /* empty beyond the port's size */
		if (table[i] == key)
			return true;
	return false;
}

static void put_key(struct iso *it, uint16_t key)
{
	uint16_t *table = it->truth.hw.pkeys[0];
	unsigned int size = it->truth.hw.n_keys, i = iso_random(it, size);

	for (unsigned int n = 0; n < size; n++, i = (i + 1) % size) {
		if (table[i])
			continue;
		table[i] = it->shown[i] = key;
		return;
	}
	assert(!"what does not fit is not accepted");
}

static bool is_fixed(uint16_t key)
{
	return key == 0xffff || (key & 0xff00) == ISO_STRANGER;
}

/* Does the VF, or a QP of its guest, refer to this entry? */
static bool refers(const struct hw *hw, unsigned int v, int16_t phys)
{
	const struct hw_vf *vf = &hw->vfs[v];

	for (unsigned int k = 0; k < hw->n_keys; k++)
		if (vf->map[0][k] == phys)
			return true;
	for (unsigned int q = 0; q < HW_QPS; q++)
		if (vf->qps[q].live && vf->qps[q].port == 0 && vf->qps[q].phys == phys)
			return true;
	return false;
}

/*
 * The SM has not taken the report of VF v's claim, and the agent knows it: it was away, or has no
 * room for its keys.
 */
static bool is_not_accepted(const struct iso *it, unsigned int v)
{
	const struct iso_report *r;

	TAILQ_FOREACH (r, &it->reports, link)
		if (r->turned_away && r->binding.bound &&
		    r->binding.vguid == it->truth.rows[v].guid)
			return true;
	return false;
}

/* Entries that VFs or their guests refer to have got another meaning. */
static void taint_changed(struct iso *it, const uint16_t *before,
			  bool (*is_excused)(const struct iso *it, unsigned int v))
{
	const struct hw *hw = &it->truth.hw;

	for (int16_t i = 0; i < (int16_t)hw->n_keys; i++)
		for (unsigned int v = 0; v < HW_VFS && hw->pkeys[0][i] != before[i]; v++)
			if (refers(hw, v, i) && (!is_excused || is_excused(it, v)))
				truth_taint(&it->truth, v);
}

/* Those of a binding, or of NULL, that the table lacks; false: it has them all. */
static bool add_keys(struct iso *it, const struct vhca_osm_binding *b)
{
	bool changed = false;

	for (unsigned int k = 0; b && k < b->n_pkeys; k++) {
		if (has(it->truth.hw.pkeys[0], b->pkeys[k]))
			continue;
		put_key(it, b->pkeys[k]);
		changed = true;
	}
	return changed;
}

/*
 * A key goes with the last binding that was accepted, although another VF may have found it on the
 * port and mapped it.
 */
static void update_table(struct iso *it)
{
	uint16_t *table = it->truth.hw.pkeys[0], before[HW_KEYS];
	bool changed = false;

	memcpy(before, table, sizeof(before));
	for (unsigned int i = 0; i < it->truth.hw.n_keys; i++) {
		if (!table[i] || is_fixed(table[i]) || needed(it, table[i]))
			continue;
		table[i] = it->shown[i] = 0;
		changed = true;
	}
	for (unsigned int b = 0; b < it->n_known; b++)
		changed |= add_keys(it, bound(it, b));
	taint_changed(it, before, is_not_accepted);
	if (changed)
		table_changed(it);
}

void iso_sm_reorder(struct iso *it)
{
	unsigned int size = it->truth.hw.n_keys;
	uint16_t *table = it->truth.hw.pkeys[0], before[HW_KEYS];

	memcpy(before, table, sizeof(before));
	for (unsigned int n = 1 + iso_random(it, 3); n; n--) {
		unsigned int a = iso_random(it, size), b = iso_random(it, size);
		uint16_t key = table[a];

		table[a] = table[b];
		table[b] = key;
	}
	taint_changed(it, before, NULL);
	vhca_log_debug("world: the SM writes another table");
	it->stats.reorders++;
	table_changed(it);
}

/* ---- ports of vports: each has a table of its own, by the address that it shows ---- */

static void update_vport(struct iso *it, unsigned int v)
{
	struct hw *hw = &it->truth.hw;
	const struct vhca_osm_binding *b = sim_sm_find(&it->sm, hw->vports[v].port);

	if (b && !b->withdrawn)
		hw_vport_give(hw, v, b->pkeys, b->n_pkeys);
	else
		hw_vport_give(hw, v, NULL, 0);
}

/* ---- reports ---- */

static void on_write(struct iso *it, unsigned int v)
{
	(void)v;
	it->sm_writing = false;
	if (it->truth.hw.card == HW_MLX4) {
		update_table(it);
		return;
	}
	for (v = 0; v < HW_VFS; v++)
		if (hw_vport_is_up(&it->truth.hw, v))
			update_vport(it, v);
}

/* The SM waits for more before it writes. */
static void write_soon(struct iso *it)
{
	if (!it->sm_writing)
		iso_later(it, false, 30, on_write, 0);
	it->sm_writing = true;
}

void iso_sm_vports(struct iso *it)
{
	if (it->truth.hw.card != HW_MLX4)
		write_soon(it);
}

static void on_bound(struct iso *it, const struct vhca_sm_binding *b)
{
	unsigned int i = 0;

	while (i < it->n_known && it->known[i] != b->vguid)
		i++;
	assert(i < VHCA_ARRAY_SIZE(it->known));
	it->known[i] = b->vguid;
	it->n_known += i == it->n_known;
	vhca_log_debug("world: the SM %s %s at epoch %llu", b->bound ? "binds" : "withdraws",
		       VHCA_GUID_STR(b->vguid), (unsigned long long)b->epoch);
	truth_member(&it->truth, b->vguid, b->bound);
	write_soon(it);
}

struct answer {
	struct iso *it;
	struct iso_report *report; /* NULL: nobody sent it */
	struct vhca_sm_binding binding;
	enum vhca_sm_answer answer;
};

/* Another durable report of the same address. */
static struct iso_report *twin_of(struct iso *it, const struct iso_report *of, bool in_flight)
{
	struct iso_report *r;

	TAILQ_FOREACH (r, &it->reports, link)
		if (r != of && !r->txn && r->in_flight == in_flight &&
		    r->binding.vguid == of->binding.vguid)
			return r;
	return NULL;
}

static void drop(struct iso *it, struct iso_report *r)
{
	TAILQ_REMOVE(&it->reports, r, link);
	free(r);
}

/*
 * As the outbox does: what was replaced meanwhile is told to nobody, and stays only if the SM has
 * not taken it.
 */
static bool lands(struct iso *it, struct iso_report *r, enum vhca_sm_answer answer)
{
	bool is_newest = !twin_of(it, r, false);

	r->in_flight = false;
	r->turned_away = true;
	if (answer == VHCA_SM_ACCEPTED || !is_newest)
		drop(it, r);
	return is_newest;
}

static void on_answer(void *arg)
{
	struct answer *a = arg;

	if (!a->report || lands(a->it, a->report, a->answer))
		vhca_engine_sm_answer(a->it->engine, &a->binding, a->answer, "", NULL);
	free(a);
}

static void answer(struct iso *it, const struct vhca_sm_binding *b, struct iso_report *report,
		   enum vhca_sm_answer what)
{
	struct answer *a = malloc(sizeof(*a));

	assert(a);
	*a = (struct answer){it, report, *b, what};
	vtime_after(VTIME_AGENT, 1 + iso_random(it, 5), on_answer, a, free);
}

static void send_after(struct iso *it, uint64_t ms);

/*
 * An agent may use an epoch again whose withdrawal it does not remember. The plugin would say what
 * it knows, and get the next one; this SM has forgotten.
 */
static void forget_tombstone(struct iso *it, const struct vhca_sm_binding *b)
{
	const struct vhca_osm_binding *old = sim_sm_find(&it->sm, b->vguid);

	if (old && old->withdrawn && b->bound && old->epoch == b->epoch)
		(void)vhca_osm_table_forget(it->sm.table, b->vguid, NULL);
}

static enum vhca_sm_answer take(struct iso *it, struct iso_report *r)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (it->sm_up && sim_sm_take(&it->sm, &r->binding, &err) == 0)
		return VHCA_SM_ACCEPTED;
	if (err.kind == VHCA_ERR_CONFLICT)
		return VHCA_SM_SUPERSEDED;
	r->not_before = vtime_now() + 2000;
	return VHCA_SM_RETRY;
}

/* The oldest durable report goes out; one for which there was no room waits for itself. */
static void on_send(struct iso *it, unsigned int v)
{
	struct iso_report *r;
	enum vhca_sm_answer told;

	(void)v;
	it->sm_sending = false;
	TAILQ_FOREACH (r, &it->reports, link)
		if (!r->txn && !r->in_flight && r->not_before <= vtime_now() &&
		    !twin_of(it, r, true))
			break;
	if (!r) {
		if (!TAILQ_EMPTY(&it->reports))
			send_after(it, 500);
		return;
	}
	forget_tombstone(it, &r->binding);
	told = take(it, r);
	r->in_flight = true;
	answer(it, &r->binding, r, told);
	if (told == VHCA_SM_ACCEPTED)
		on_bound(it, &r->binding);
	send_after(it, it->sm_up ? 1 : 2000);
}

static void send_after(struct iso *it, uint64_t ms)
{
	if (!it->sm_sending)
		iso_later(it, true, ms, on_send, 0);
	it->sm_sending = true;
}

static void on_poll(struct iso *it, unsigned int v)
{
	(void)v;
	tell_port(it, VHCA_PORT_CHANGED);
	iso_later(it, true, it->conf.poll_ms, on_poll, 0);
}

void iso_sm_init(struct iso *it)
{
	const struct hw *hw = &it->truth.hw;

	sim_sm_init(&it->sm, true);
	/* The port's own table is what has to hold all keys; those of vports hold any guest's. */
	if (hw->card == HW_MLX4)
		it->sm.port_keys = hw->n_keys;
	for (unsigned int i = 0; hw->card == HW_MLX4 && i < hw->n_keys; i++)
		it->sm.port_keys -= is_fixed(hw->pkeys[0][i]);
}

void iso_sm_start(struct iso *it)
{
	it->sm_sending = false;
	send_after(it, 2);
	on_poll(it, 0);
}

/* One report per vGUID: the newest, beside one that is on its way. */
static void drop_replaced(struct iso *it)
{
	struct iso_report *r, *next, *newer;

	for (r = TAILQ_FIRST(&it->reports); r; r = next) {
		next = TAILQ_NEXT(r, link);
		for (newer = next; newer; newer = TAILQ_NEXT(newer, link))
			if (!newer->txn && newer->binding.vguid == r->binding.vguid)
				break;
		if (!newer || r->txn)
			continue;
		if (newer->binding.bound)
			newer->turned_away |= r->turned_away && r->binding.bound;
		if (!r->in_flight)
			drop(it, r);
	}
}

void iso_sm_commit(struct iso *it, const struct vhca_txn *txn, bool durable)
{
	struct iso_report *r, *next;

	for (r = TAILQ_FIRST(&it->reports); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->txn != txn)
			continue;
		r->txn = NULL;
		if (!durable) {
			drop(it, r);
		} else if (it->broken == ISO_SM_NOT_AWAITED) {
			answer(it, &r->binding, NULL, VHCA_SM_ACCEPTED);
		}
	}
	if (!durable)
		return;
	drop_replaced(it);
	/* Who does not wait must meet an SM that takes its time. */
	send_after(it, it->broken == ISO_SM_NOT_AWAITED ? 30000 : 2);
}

void iso_sm_forget(struct iso *it, bool all)
{
	struct iso_report *r, *next;

	for (r = TAILQ_FIRST(&it->reports); r; r = next) {
		next = TAILQ_NEXT(r, link);
		/* nobody hears the answer: the row is there still, and goes out again */
		r->in_flight = false;
		if (r->txn || all)
			drop(it, r);
	}
	drop_replaced(it);
}

/* ---- the outbox, as the engine sees it ---- */

uint64_t __wrap_vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
				const struct vhca_sm_binding *binding);
uint64_t __wrap_vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
				const struct vhca_sm_binding *binding)
{
	struct iso_report *r;

	if (of(ob)->broken == ISO_WITHDRAWAL_LEFT && !binding->bound)
		return 0;
	r = calloc(1, sizeof(*r));
	assert(r);
	*r = (struct iso_report){.txn = txn, .binding = *binding};
	TAILQ_INSERT_TAIL(&of(ob)->reports, r, link);
	return 1;
}

uint64_t __wrap_vhca_outbox_put_members(struct vhca_outbox *ob, struct vhca_txn *txn,
					uint64_t port_guid, const uint16_t *pkeys, size_t n);
uint64_t __wrap_vhca_outbox_put_members(struct vhca_outbox *ob, struct vhca_txn *txn,
					uint64_t port_guid, const uint16_t *pkeys, size_t n)
{
	(void)ob;
	(void)txn;
	(void)port_guid;
	(void)pkeys;
	(void)n;
	return 0;
}

void __wrap_vhca_outbox_release(struct vhca_outbox *ob, uint64_t ticket, bool durable);
void __wrap_vhca_outbox_release(struct vhca_outbox *ob, uint64_t ticket, bool durable)
{
	(void)ob;
	(void)ticket;
	(void)durable;
}

static struct iso_report *find_bound(struct vhca_outbox *ob, uint64_t vguid)
{
	struct iso_report *r;

	TAILQ_FOREACH (r, &of(ob)->reports, link)
		if (!r->txn && r->binding.bound && r->binding.vguid == vguid)
			return r;
	return NULL;
}

bool __wrap_vhca_outbox_has_bound(struct vhca_outbox *ob, uint64_t vguid);
bool __wrap_vhca_outbox_has_bound(struct vhca_outbox *ob, uint64_t vguid)
{
	return find_bound(ob, vguid) != NULL;
}

void __wrap_vhca_outbox_drop_bound(struct vhca_outbox *ob, uint64_t vguid);
void __wrap_vhca_outbox_drop_bound(struct vhca_outbox *ob, uint64_t vguid)
{
	struct iso_report *r;

	while ((r = find_bound(ob, vguid)))
		drop(of(ob), r);
}

/* Nobody hands anything over here: there are no tickets. */
void __wrap_vhca_outbox_drop_proof(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t vguid);
void __wrap_vhca_outbox_drop_proof(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t vguid)
{
	(void)ob, (void)txn, (void)vguid;
}

uint64_t __wrap_vhca_outbox_unneeded_proof(const struct vhca_outbox *ob,
					   bool (*needs)(void *arg, uint64_t vguid), void *arg);
uint64_t __wrap_vhca_outbox_unneeded_proof(const struct vhca_outbox *ob,
					   bool (*needs)(void *arg, uint64_t vguid), void *arg)
{
	(void)ob, (void)needs, (void)arg;
	return 0;
}

void __wrap_vhca_outbox_kick(struct vhca_outbox *ob);
void __wrap_vhca_outbox_kick(struct vhca_outbox *ob)
{
	send_after(of(ob), 2);
}
