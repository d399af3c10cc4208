/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/pkeys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_qmap.h>
#include <opensm/osm_node.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_pkey.h>
#include <opensm/osm_port.h>
#include <opensm/osm_subnet.h>
#include <opensm/osm_switch.h>

/*
 * What a heavy sweep does about keys. Exported, and declared in no header: OpenSM's own files
 * declare it so, too. Takes the lock.
 */
extern int osm_pkey_mgr_process(osm_opensm_t *p_osm);

struct vhca_osm_pkey_block {
	bool known; /* OpenSM has read or written it */
	ib_pkey_table_t keys;
};

/* The blocks of one table. */
struct known_table {
	const struct vhca_osm_pkey_block *blocks;
	size_t n;
};

struct vhca_osm_pkeys_of_port {
	ib_net64_t guid;
	struct known_table own, at_switch;
	struct known_table asked; /* what it was sent before, if it has not acknowledged that */
};

/* ---- which tables ---- */

/*
 * The switch port in front of an end port, if it is to let through that one's keys only; else NULL.
 */
static osm_physp_t *enforcer_of(const osm_opensm_t *osm, const osm_port_t *port)
{
	osm_physp_t *peer = vhca_osm_switch_port(port);

	if (osm->subn.opt.part_enforce_enum == OSM_PARTITION_ENFORCE_TYPE_OFF || !peer ||
	    osm_node_get_type(port->p_node) == IB_NODE_TYPE_SWITCH)
		return NULL;
	return peer->p_node->sw->switch_info.enforce_cap ? peer : NULL;
}

static size_t blocks_at(const osm_physp_t *physp)
{
	return physp ? osm_pkey_tbl_get_num_blocks(&physp->pkeys) : 0;
}

/* ---- what OpenSM wants, and sends ---- */

/* OpenSM's rule for what to send. had: NULL = not known. */
static bool differs(const ib_pkey_table_t *had, const ib_pkey_table_t *wanted)
{
	return !had || memcmp(had, wanted, sizeof(*wanted)) != 0;
}

static bool was_sent(const struct known_table *before, size_t block, const ib_pkey_table_t *wanted)
{
	bool known = block < before->n && before->blocks[block].known;

	return differs(known ? &before->blocks[block].keys : NULL, wanted);
}

static const ib_pkey_table_t *wanted_block(const osm_physp_t *physp, uint16_t block)
{
	static const ib_pkey_table_t empty = {{0}};
	const ib_pkey_table_t *wanted = osm_pkey_tbl_new_block_get(&physp->pkeys, block);

	return wanted ? wanted : &empty;
}

/* Copies a table to *at, and moves that on. */
static struct known_table remember_table(const osm_physp_t *physp, struct vhca_osm_pkey_block **at)
{
	struct known_table table = {.blocks = *at, .n = blocks_at(physp)};

	for (uint16_t b = 0; b < table.n; b++, (*at)++) {
		const ib_pkey_table_t *keys = osm_pkey_tbl_block_get(&physp->pkeys, b);

		(*at)->known = keys != NULL;
		if (keys)
			(*at)->keys = *keys;
	}
	return table;
}

/* The full form of a key lets the limited one's packets through. */
static bool is_enforced(const osm_physp_t *physp, ib_net16_t pkey)
{
	return !ib_pkey_is_invalid(pkey) &&
	       (ib_pkey_is_full_member(pkey) ||
		!vhca_osm_key_table_wants(physp, pkey | IB_PKEY_TYPE_MASK));
}

/* A switch port gets the end port's keys without the gaps between them. */
static size_t sent_to_switch(const osm_physp_t *physp, const osm_physp_t *enforcer,
			     const struct known_table *before)
{
	const size_t blocks_max =
		vhca_osm_key_blocks(cl_ntoh16(enforcer->p_node->sw->switch_info.enforce_cap));
	const osm_pkey_tbl_t *table = &physp->pkeys;
	ib_pkey_table_t wanted = {{0}};
	size_t n = 0, block = 0, sent = 0;

	for (size_t i = 0; i < table->used_blocks * (size_t)IB_NUM_PKEY_ELEMENTS_IN_BLOCK; i++) {
		const ib_pkey_table_t *from = osm_pkey_tbl_new_block_get(
			table, (uint16_t)(i / IB_NUM_PKEY_ELEMENTS_IN_BLOCK));
		ib_net16_t pkey = from ? from->pkey_entry[i % IB_NUM_PKEY_ELEMENTS_IN_BLOCK] : 0;

		if (block == blocks_max || !is_enforced(physp, pkey))
			continue;
		wanted.pkey_entry[n++] = pkey;
		if (n < IB_NUM_PKEY_ELEMENTS_IN_BLOCK)
			continue;
		sent += was_sent(before, block++, &wanted);
		wanted = (ib_pkey_table_t){{0}};
		n = 0;
	}
	return n ? sent + was_sent(before, block, &wanted) : sent;
}

static size_t sent_for(const osm_opensm_t *osm, const struct vhca_osm_pkeys_of_port *before)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, before->guid);
	const osm_physp_t *peer;
	size_t n = 0;

	if (!port || !port->p_physp) /* dropped before the tables were sent */
		return 0;
	for (uint16_t b = 0; b < before->own.n; b++)
		n += was_sent(&before->own, b, wanted_block(port->p_physp, b));
	peer = enforcer_of(osm, port);
	if (!peer)
		return n;
	return n + sent_to_switch(port->p_physp, peer, &before->at_switch);
}

/* ---- without an answer ---- */

static int by_guid(const void *a, const void *b)
{
	const ib_net64_t *guid = a;
	const struct vhca_osm_pkey_wait *wait = b;

	return (*guid > wait->guid) - (*guid < wait->guid);
}

static struct vhca_osm_pkey_wait *find_wait(const struct vhca_osm_pkey_watch *watch,
					    ib_net64_t guid)
{
	const struct vhca_osm_pkey_waits *waits = &watch->waits;

	return waits->n ? bsearch(&guid, waits->of, waits->n, sizeof(*waits->of), by_guid) : NULL;
}

static uint64_t overtaken_at(const struct vhca_osm_pkey_watch *watch, ib_net64_t guid)
{
	const struct vhca_osm_pkey_wait *wait = find_wait(watch, guid);

	return wait ? wait->overtaken : 0;
}

static size_t missing_in(const osm_physp_t *physp)
{
	size_t n = 0;

	for (uint16_t b = 0; b < blocks_at(physp); b++)
		n += differs(osm_pkey_tbl_block_get(&physp->pkeys, b), wanted_block(physp, b));
	return n;
}

static size_t missing_at_enforcer(const osm_physp_t *physp, const osm_physp_t *enforcer)
{
	VHCA_AUTO_FREE struct vhca_osm_pkey_block *blocks =
		calloc(blocks_at(enforcer) + 1, sizeof(*blocks));
	struct vhca_osm_pkey_block *at = blocks;
	struct known_table now;

	if (!blocks)
		return 1;
	now = remember_table(enforcer, &at);
	return sent_to_switch(physp, enforcer, &now);
}

static size_t blocks_missing_at(const osm_opensm_t *osm, ib_net64_t guid)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, guid);
	const osm_physp_t *enforcer;

	if (!port || !port->p_physp)
		return 0;
	enforcer = enforcer_of(osm, port);
	return missing_in(port->p_physp) +
	       (enforcer ? missing_at_enforcer(port->p_physp, enforcer) : 0);
}

static size_t missing_at(const osm_opensm_t *osm, const struct vhca_osm_pkey_watch *watch,
			 ib_net64_t guid)
{
	return blocks_missing_at(osm, guid) + (overtaken_at(watch, guid) != 0);
}

static bool is_under_way(const osm_opensm_t *osm, uint64_t until)
{
	return vhca_now_ms() < until || osm->stats.qp0_mads_outstanding > 0;
}

static bool may_come_again(const osm_opensm_t *osm, const struct vhca_osm_pkey_wait *wait)
{
	return wait->again && is_under_way(osm, wait->again);
}

/* ---- before ---- */

static void forget_before(struct vhca_osm_pkey_watch *watch)
{
	free(watch->ports);
	free(watch->blocks);
	free(watch->next);
	watch->ports = NULL;
	watch->blocks = NULL;
	watch->next = NULL;
	watch->n_ports = 0;
}

static size_t count_blocks(const osm_opensm_t *osm, const struct vhca_osm_pkey_watch *watch)
{
	size_t n = 0;

	VHCA_OSM_FOREACH_PORT (port, &osm->subn)
		if (port->p_physp)
			n += blocks_at(port->p_physp) + blocks_at(enforcer_of(osm, port)) +
			     (find_wait(watch, port->guid) ? blocks_at(port->p_physp) : 0);
	return n;
}

static struct known_table remember_asked(const osm_opensm_t *osm,
					 const struct vhca_osm_pkey_watch *watch,
					 const osm_port_t *port, struct vhca_osm_pkey_block **at)
{
	const struct vhca_osm_pkey_wait *wait = find_wait(watch, port->guid);
	struct known_table table = {.blocks = *at, .n = blocks_at(port->p_physp)};

	if (!wait || (!may_come_again(osm, wait) && blocks_missing_at(osm, port->guid) == 0))
		return (struct known_table){0};
	for (uint16_t b = 0; b < table.n; b++, (*at)++)
		(*at)->keys = *wanted_block(port->p_physp, b);
	return table;
}

static bool has_looked(const struct vhca_osm_pkey_watch *watch)
{
	return watch->ports && watch->blocks && watch->next;
}

/* Before OpenSM's P_Key manager runs. With the lock; without memory nothing is remembered. */
static void look_before(osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch)
{
	size_t n = cl_qmap_count(&osm->subn.port_guid_tbl) + 1;
	struct vhca_osm_pkey_block *at;

	forget_before(watch);
	vhca_osm_key_tables_settle(osm);
	watch->ports = calloc(n, sizeof(*watch->ports));
	watch->blocks = calloc(count_blocks(osm, watch) + 1, sizeof(*watch->blocks));
	watch->next = calloc(n, sizeof(*watch->next));
	if (!has_looked(watch)) {
		forget_before(watch);
		vhca_log_error("out of memory: P_Key table SMPs are not counted");
		return;
	}
	at = watch->blocks;
	VHCA_OSM_FOREACH_PORT (port, &osm->subn)
		if (port->p_physp)
			watch->ports[watch->n_ports++] = (struct vhca_osm_pkeys_of_port){
				.guid = port->guid,
				.own = remember_table(port->p_physp, &at),
				.at_switch = remember_table(enforcer_of(osm, port), &at),
				.asked = remember_asked(osm, watch, port, &at)};
}

/* ---- after ---- */

/* Whole tables, or what has no answer. */
static void forget_tables(const osm_opensm_t *osm, ib_net64_t guid, bool all)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, guid);
	osm_physp_t *physp = port ? port->p_physp : NULL, *enforcer;

	if (!physp)
		return;
	enforcer = enforcer_of(osm, port);
	if (enforcer && (all || missing_at_enforcer(physp, enforcer) > 0))
		vhca_osm_key_table_forget(enforcer);
	for (uint16_t b = 0; b < blocks_at(physp); b++)
		if (all ||
		    differs(osm_pkey_tbl_block_get(&physp->pkeys, b), wanted_block(physp, b)))
			vhca_osm_key_block_forget(&osm->subn, physp, b);
}

/*
 * A port that has not acknowledged what it was sent may have taken it, or may do so yet, and OpenSM
 * still takes for its table what that was before. Where these are to be had again, it sends
 * nothing; and where it does send something, an SMP of before that is sent once more comes after it
 * and undoes it, which no answer tells. So as soon as that one is given up, the table is forgotten,
 * and sent once more.
 */
static bool wants_other_keys(const osm_opensm_t *osm, const struct vhca_osm_pkeys_of_port *before)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, before->guid);

	if (!port || !port->p_physp)
		return false;
	for (uint16_t b = 0; b < before->asked.n; b++)
		if (differs(&before->asked.blocks[b].keys, wanted_block(port->p_physp, b)))
			return true;
	return false;
}

static bool may_revert(const osm_opensm_t *osm, const struct vhca_osm_pkey_wait *wait)
{
	return wait->overtaken && !is_under_way(osm, wait->overtaken);
}

static void forget_unsure_tables(const osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch,
				 bool in_sweep)
{
	for (size_t i = 0; i < watch->waits.n; i++) {
		struct vhca_osm_pkey_wait *wait = &watch->waits.of[i];

		/* A sweep has waited for all answers. */
		if (!in_sweep && !may_revert(osm, wait))
			continue;
		forget_tables(osm, wait->guid, wait->overtaken != 0);
		wait->overtaken = 0;
	}
}

static void replace_waits(struct vhca_osm_pkey_watch *watch,
			  const struct vhca_osm_pkey_waits *waits)
{
	if (!has_looked(watch))
		return;
	free(watch->waits.of);
	watch->waits = *waits;
	watch->next = NULL;
	forget_before(watch);
}

/* until: when what was sent now is given up. */
static struct vhca_osm_pkey_wait wait_of(const osm_opensm_t *osm,
					 const struct vhca_osm_pkey_watch *watch,
					 const struct vhca_osm_pkeys_of_port *port, size_t sent,
					 uint64_t until)
{
	const struct vhca_osm_pkey_wait *before = find_wait(watch, port->guid);
	struct vhca_osm_pkey_wait wait = {.guid = port->guid};

	if (before)
		wait.overtaken = before->overtaken;
	if (wants_other_keys(osm, port))
		wait.overtaken = watch->waits.until;
	else if (port->asked.n > 0 && sent > 0)
		wait.again = until;
	else if (before && may_come_again(osm, before))
		wait.again = before->again;
	return wait;
}

/* Returns how many SMPs were sent. */
static size_t note_sent(const osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch)
{
	uint64_t tries = (unsigned int)osm->subn.opt.transaction_retries + 1;
	uint64_t given_up = vhca_now_ms() + osm->subn.opt.transaction_timeout * tries;
	struct vhca_osm_pkey_waits waits = {.of = watch->next, .until = given_up};
	size_t sum = 0;

	for (size_t i = 0; i < watch->n_ports; i++) {
		size_t n = sent_for(osm, &watch->ports[i]);
		struct vhca_osm_pkey_wait wait =
			wait_of(osm, watch, &watch->ports[i], n, waits.until);

		sum += n;
		if (n > 0 || wait.overtaken || wait.again)
			waits.of[waits.n++] = wait;
	}
	replace_waits(watch, &waits);
	return sum;
}

/* The same of a sweep, which has waited for answers. */
static size_t note_lost(const osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch)
{
	struct vhca_osm_pkey_waits waits = {.of = watch->next, .until = vhca_now_ms()};
	size_t sum = 0;

	for (size_t i = 0; i < watch->n_ports; i++) {
		struct vhca_osm_pkey_wait wait = {
			.guid = watch->ports[i].guid,
			/* Only if it has not waited for a thread that hung. */
			.overtaken = overtaken_at(watch, watch->ports[i].guid)};
		size_t n = sent_for(osm, &watch->ports[i]);

		sum += n;
		if (wait.overtaken || (n > 0 && blocks_missing_at(osm, wait.guid) > 0))
			waits.of[waits.n++] = wait;
	}
	replace_waits(watch, &waits);
	return sum;
}

/* ---- in a sweep ---- */

void vhca_osm_pkeys_sweep_begins(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	vhca_osm_lock_exclusive(osm);
	(void)note_lost(osm, watch); /* of one that ended early, nobody knows what it has sent */
	vhca_osm_unlock(osm);
	vhca_osm_key_places_remember(osm, &watch->places);
}

void vhca_osm_pkeys_discovered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	vhca_osm_key_places_compare(osm, &watch->places);
	vhca_osm_lock_exclusive(osm);
	forget_unsure_tables(osm, watch, true);
	look_before(osm, watch);
	vhca_osm_unlock(osm);
}

void vhca_osm_pkeys_sent(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	vhca_osm_lock_exclusive(osm);
	atomic_fetch_add(&watch->sent, note_lost(osm, watch));
	vhca_osm_unlock(osm);
}

/* ---- without a sweep ---- */

static int send_keys(void *osm)
{
	return osm_pkey_mgr_process(osm);
}

bool vhca_osm_pkeys_apply(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	bool done;

	vhca_osm_lock_exclusive(osm);
	forget_unsure_tables(osm, watch, false);
	look_before(osm, watch);
	done = has_looked(watch);
	vhca_osm_unlock(osm);
	if (!done)
		return false;
	/* It reads a file, and waits for the lock by itself. */
	done = vhca_run_at_disk(send_keys, osm) == 0;
	vhca_osm_lock_exclusive(osm);
	atomic_fetch_add(&watch->sent, note_sent(osm, watch));
	vhca_osm_unlock(osm);
	return done;
}

bool vhca_osm_pkeys_may_revert(struct osm_opensm *osm, const struct vhca_osm_pkey_watch *watch)
{
	bool may = false;

	vhca_osm_lock_shared(osm);
	for (size_t i = 0; i < watch->waits.n && !may; i++)
		may = may_revert(osm, &watch->waits.of[i]);
	vhca_osm_unlock(osm);
	return may;
}

size_t vhca_osm_pkeys_unanswered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	size_t n = 0;

	vhca_osm_lock_shared(osm);
	for (size_t i = 0; i < watch->waits.n; i++)
		n += missing_at(osm, watch, watch->waits.of[i].guid) > 0;
	vhca_osm_unlock(osm);
	return n;
}

size_t vhca_osm_pkeys_missing(const struct osm_opensm *osm, const struct vhca_osm_pkey_watch *watch,
			      uint64_t port_guid)
{
	return missing_at(osm, watch, cl_hton64(port_guid));
}

/* Than there are: so it was at the place where it was when OpenSM worked that out. */
static bool wants_more_blocks(const osm_physp_t *physp)
{
	const ib_pkey_table_t empty = {{0}};
	size_t wanted = cl_ptr_vector_get_size(&physp->pkeys.new_blocks);

	for (size_t b = blocks_at(physp); b < wanted; b++)
		if (differs(&empty, wanted_block(physp, (uint16_t)b)))
			return true;
	return false;
}

bool vhca_osm_pkeys_are_there(const struct osm_opensm *osm, const struct vhca_osm_pkey_watch *watch,
			      uint64_t port_guid)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, cl_hton64(port_guid));
	const osm_physp_t *physp = port ? port->p_physp : NULL;

	return physp && !overtaken_at(watch, port->guid) && !wants_more_blocks(physp) &&
	       missing_in(physp) == 0;
}

bool vhca_osm_pkeys_are_pending(const struct osm_opensm *osm,
				const struct vhca_osm_pkey_watch *watch, uint64_t port_guid)
{
	ib_net64_t guid = cl_hton64(port_guid);
	const struct vhca_osm_pkey_wait *wait = find_wait(watch, guid);

	return wait && (may_come_again(osm, wait) || (is_under_way(osm, watch->waits.until) &&
						      missing_at(osm, watch, guid) > 0));
}

void vhca_osm_pkeys_moves(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch,
			  uint64_t port_guid)
{
	struct vhca_osm_pkey_waits *waits = &watch->waits;
	struct vhca_osm_pkey_wait *wait = find_wait(watch, cl_hton64(port_guid));

	if (!wait)
		return;
	forget_tables(osm, wait->guid, wait->overtaken != 0);
	waits->n--;
	memmove(wait, wait + 1, (size_t)(waits->of + waits->n - wait) * sizeof(*wait));
}

void vhca_osm_pkeys_done(struct vhca_osm_pkey_watch *watch)
{
	forget_before(watch);
	free(watch->waits.of);
	watch->waits = (struct vhca_osm_pkey_waits){0};
	vhca_osm_key_places_done(&watch->places);
}
