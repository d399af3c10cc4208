/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A subnet manager that gives each port the keys of the bindings at it, takes away what no binding needs any more, and in its bad hours
 * writes the table in another order. Reports reach it when they are durable, late, and again after a restart. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "sm/outbox.h"
#include "tests/sim/iso.h"
#include "tests/sim/vtime.h"

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

void iso_tell_port(struct iso *it, enum vhca_port_event event)
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
			  .n_pkeys = HW_KEYS},
	};
	memcpy(news->state.pkeys,
	       it->broken == ISO_REORDER_IGNORED ? it->shown : it->truth.hw.pkeys[0],
	       sizeof(it->shown));
	/* In the order in which they were read: the strand of the PF reads and posts one after the other. */
	vtime_after(VTIME_AGENT, 5, on_port_news, news, free);
}

static void table_changed(struct iso *it)
{
	if (!it->engine)
		return;
	/* An event may be lost (cache.c drops them when memory is short): then the slow poll sees it. */
	if (iso_random(it, 10))
		iso_tell_port(it, VHCA_PORT_PKEYS);
}

/* ---- the table ---- */

static bool needed(const struct iso *it, uint16_t key)
{
	for (unsigned int b = 0; b < it->n_bindings; b++)
		for (unsigned int k = 0; it->bindings[b].bound && k < it->bindings[b].n_pkeys; k++)
			if (it->bindings[b].pkeys[k] == key)
				return true;
	return false;
}

static bool has(const uint16_t *table, uint16_t key)
{
	for (unsigned int i = 0; i < HW_KEYS; i++)
		if (table[i] == key)
			return true;
	return false;
}

static void put_key(struct iso *it, uint16_t key)
{
	uint16_t *table = it->truth.hw.pkeys[0];
	unsigned int i = iso_random(it, HW_KEYS);

	for (unsigned int n = 0; n < HW_KEYS; n++, i = (i + 1) % HW_KEYS) {
		if (table[i])
			continue;
		table[i] = it->shown[i] = key;
		return;
	}
	assert(!"the table is large enough for all tenants");
}

static void update_table(struct iso *it)
{
	uint16_t *table = it->truth.hw.pkeys[0];
	bool changed = false;

	for (unsigned int i = 1; i < HW_KEYS; i++) {
		if (!table[i] || table[i] == 0xffff || needed(it, table[i]))
			continue;
		table[i] = it->shown[i] = 0;
		changed = true;
	}
	for (unsigned int b = 0; b < it->n_bindings; b++)
		for (unsigned int k = 0; it->bindings[b].bound && k < it->bindings[b].n_pkeys;
		     k++) {
			if (has(table, it->bindings[b].pkeys[k]))
				continue;
			put_key(it, it->bindings[b].pkeys[k]);
			changed = true;
		}
	if (changed)
		table_changed(it);
}

/* Does the VF, or a QP of its guest, refer to this entry? */
static bool refers(const struct hw_vf *vf, int16_t phys)
{
	for (unsigned int k = 0; k < HW_KEYS; k++)
		if (vf->map[0][k] == phys)
			return true;
	for (unsigned int q = 0; q < HW_QPS; q++)
		if (vf->qps[q].live && vf->qps[q].port == 0 && vf->qps[q].phys == phys)
			return true;
	return false;
}

void iso_sm_reorder(struct iso *it)
{
	uint16_t *table = it->truth.hw.pkeys[0], before[HW_KEYS];

	memcpy(before, table, sizeof(before));
	for (unsigned int n = 1 + iso_random(it, 3); n; n--) {
		unsigned int a = iso_random(it, HW_KEYS), b = iso_random(it, HW_KEYS);
		uint16_t key = table[a];

		table[a] = table[b];
		table[b] = key;
	}
	for (int16_t i = 0; i < HW_KEYS; i++)
		for (unsigned int v = 0; v < HW_VFS && table[i] != before[i]; v++)
			if (refers(&it->truth.hw.vfs[v], i))
				truth_taint(&it->truth, v);
	vhca_log_debug("world: the SM writes another table");
	it->stats.reorders++;
	table_changed(it);
}

/* ---- reports ---- */

static void on_write(struct iso *it, unsigned int v)
{
	(void)v;
	it->sm_writing = false;
	update_table(it);
}

static void bind(struct iso *it, const struct vhca_sm_binding *b)
{
	unsigned int i = 0;

	while (i < it->n_bindings && it->bindings[i].vguid != b->vguid)
		i++;
	if (i == it->n_bindings) {
		assert(it->n_bindings < sizeof(it->bindings) / sizeof(it->bindings[0]));
		it->n_bindings++;
	} else if (b->epoch < it->bindings[i].epoch) {
		return;
	}
	it->bindings[i] = *b;
	/* The plugin waits for more reports before it has a table written. */
	if (!it->sm_writing)
		iso_later(it, false, 30, on_write, 0);
	it->sm_writing = true;
}

struct answer {
	struct iso *it;
	struct vhca_sm_binding binding;
	enum vhca_sm_answer answer;
};

static void on_answer(void *arg)
{
	struct answer *a = arg;

	vhca_engine_sm_answer(a->it->engine, &a->binding, a->answer, "", NULL);
	free(a);
}

static void answer(struct iso *it, const struct vhca_sm_binding *b, enum vhca_sm_answer what)
{
	struct answer *a = malloc(sizeof(*a));

	assert(a);
	*a = (struct answer){it, *b, what};
	vtime_after(VTIME_AGENT, 1 + iso_random(it, 5), on_answer, a, free);
}

static void send_after(struct iso *it, uint64_t ms);

/* The oldest durable report goes out. */
static void on_send(struct iso *it, unsigned int v)
{
	struct iso_report *r;

	(void)v;
	it->sm_sending = false;
	TAILQ_FOREACH (r, &it->reports, link)
		if (!r->txn)
			break;
	if (!r)
		return;
	answer(it, &r->binding, it->sm_up ? VHCA_SM_ACCEPTED : VHCA_SM_RETRY);
	if (it->sm_up) {
		bind(it, &r->binding);
		TAILQ_REMOVE(&it->reports, r, link);
		free(r);
	}
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
	iso_tell_port(it, VHCA_PORT_CHANGED);
	iso_later(it, true, it->conf.poll_ms, on_poll, 0);
}

void iso_sm_start(struct iso *it)
{
	it->sm_sending = false;
	send_after(it, 2);
	on_poll(it, 0);
}

/* One report per vGUID: the newest. */
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
		TAILQ_REMOVE(&it->reports, r, link);
		free(r);
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
			TAILQ_REMOVE(&it->reports, r, link);
			free(r);
		}
	}
	if (!durable)
		return;
	drop_replaced(it);
	send_after(it, 2);
}

void iso_sm_forget(struct iso *it, bool all)
{
	struct iso_report *r, *next;

	for (r = TAILQ_FIRST(&it->reports); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (!r->txn && !all)
			continue;
		TAILQ_REMOVE(&it->reports, r, link);
		free(r);
	}
}

/* ---- the outbox, as the engine sees it ---- */

uint64_t __wrap_vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
				const struct vhca_sm_binding *binding);
uint64_t __wrap_vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
				const struct vhca_sm_binding *binding)
{
	struct iso_report *r = calloc(1, sizeof(*r));

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

void __wrap_vhca_outbox_kick(struct vhca_outbox *ob);
void __wrap_vhca_outbox_kick(struct vhca_outbox *ob)
{
	send_after(of(ob), 2);
}
