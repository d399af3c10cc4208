/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/opensm_pkeys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"

#include <opensm/osm_config.h> /* before its siblings: the layout of their structures depends on it */

#include <complib/cl_passivelock.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_node.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_pkey.h>
#include <opensm/osm_port.h>
#include <opensm/osm_subnet.h>
#include <opensm/osm_switch.h>

/* What a heavy sweep does about keys. Exported, and declared in no header: OpenSM's own files declare it so, too. Takes the lock. */
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
};

/* ---- which tables ---- */

/* The switch port in front of an end port, if it is to let through that one's keys only; else NULL. */
static const osm_physp_t *enforcer_of(const osm_opensm_t *osm, const osm_port_t *port)
{
	const osm_physp_t *peer = port->p_physp->p_remote_physp;

	if (osm->subn.opt.part_enforce_enum == OSM_PARTITION_ENFORCE_TYPE_OFF || !peer ||
	    osm_node_get_type(port->p_node) == IB_NODE_TYPE_SWITCH)
		return NULL;
	return peer->p_node->sw && peer->p_node->sw->switch_info.enforce_cap ? peer : NULL;
}

static size_t blocks_at(const osm_physp_t *physp)
{
	return physp ? osm_pkey_tbl_get_num_blocks(&physp->pkeys) : 0;
}

/* ---- before ---- */

static void forget_before(struct vhca_osm_pkey_watch *watch)
{
	free(watch->ports);
	free(watch->blocks);
	watch->ports = NULL;
	watch->blocks = NULL;
	watch->n_ports = 0;
}

static size_t count_blocks(const osm_opensm_t *osm)
{
	const cl_qmap_t *ports = &osm->subn.port_guid_tbl;
	size_t n = 0;

	for (cl_map_item_t *i = cl_qmap_head(ports); i != cl_qmap_end(ports); i = cl_qmap_next(i)) {
		const osm_port_t *port = (const osm_port_t *)i;

		if (port->p_physp)
			n += blocks_at(port->p_physp) + blocks_at(enforcer_of(osm, port));
	}
	return n;
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

static void remember_all(const osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch)
{
	const cl_qmap_t *ports = &osm->subn.port_guid_tbl;
	struct vhca_osm_pkey_block *at = watch->blocks;

	for (cl_map_item_t *i = cl_qmap_head(ports); i != cl_qmap_end(ports); i = cl_qmap_next(i)) {
		const osm_port_t *port = (const osm_port_t *)i;

		if (port->p_physp)
			watch->ports[watch->n_ports++] = (struct vhca_osm_pkeys_of_port){
				.guid = port->guid,
				.own = remember_table(port->p_physp, &at),
				.at_switch = remember_table(enforcer_of(osm, port), &at)};
	}
}

/* Before OpenSM's P_Key manager runs. */
static void look_before(osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch)
{
	forget_before(watch);
	cl_plock_excl_acquire(&osm->lock);
	vhca_osm_key_tables_settle(osm);
	watch->ports = calloc(cl_qmap_count(&osm->subn.port_guid_tbl) + 1, sizeof(*watch->ports));
	watch->blocks = calloc(count_blocks(osm) + 1, sizeof(*watch->blocks));
	if (watch->ports && watch->blocks)
		remember_all(osm, watch);
	else
		vhca_log_error("out of memory: P_Key table SMPs are not counted");
	cl_plock_release(&osm->lock);
}

void vhca_osm_pkeys_sweep_begins(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	forget_before(watch);
	vhca_osm_key_places_remember(osm, &watch->places);
}

void vhca_osm_pkeys_discovered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	vhca_osm_key_places_compare(osm, &watch->places);
	look_before(osm, watch);
}

/* ---- after ---- */

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

static size_t sent_to_port(const osm_physp_t *physp, const struct known_table *before)
{
	size_t n = 0;

	for (uint16_t b = 0; b < before->n; b++)
		n += was_sent(before, b, wanted_block(physp, b));
	return n;
}

static bool is_wanted(const osm_pkey_tbl_t *table, ib_net16_t pkey)
{
	size_t blocks = cl_ptr_vector_get_size(&table->new_blocks);

	for (uint16_t b = 0; b < blocks; b++) {
		const ib_pkey_table_t *block = osm_pkey_tbl_new_block_get(table, b);

		for (size_t i = 0; block && i < IB_NUM_PKEY_ELEMENTS_IN_BLOCK; i++)
			if (block->pkey_entry[i] == pkey)
				return true;
	}
	return false;
}

/* The full form of a key lets the limited one's packets through. */
static bool is_enforced(const osm_pkey_tbl_t *table, ib_net16_t pkey)
{
	return !ib_pkey_is_invalid(pkey) &&
	       (ib_pkey_is_full_member(pkey) || !is_wanted(table, pkey | IB_PKEY_TYPE_MASK));
}

/* A switch port gets the end port's keys without the gaps between them. */
static size_t sent_to_switch(const osm_physp_t *physp, const struct known_table *before,
			     size_t blocks_max)
{
	const osm_pkey_tbl_t *table = &physp->pkeys;
	ib_pkey_table_t wanted = {{0}};
	size_t n = 0, block = 0, sent = 0;

	for (size_t i = 0; i < table->used_blocks * (size_t)IB_NUM_PKEY_ELEMENTS_IN_BLOCK; i++) {
		const ib_pkey_table_t *from = osm_pkey_tbl_new_block_get(
			table, (uint16_t)(i / IB_NUM_PKEY_ELEMENTS_IN_BLOCK));
		ib_net16_t pkey = from ? from->pkey_entry[i % IB_NUM_PKEY_ELEMENTS_IN_BLOCK] : 0;

		if (block == blocks_max || !is_enforced(table, pkey))
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
	size_t n;

	if (!port || !port->p_physp) /* dropped before the tables were sent */
		return 0;
	n = sent_to_port(port->p_physp, &before->own);
	peer = enforcer_of(osm, port);
	if (!peer)
		return n;
	return n + sent_to_switch(port->p_physp, &before->at_switch,
				  vhca_osm_key_blocks(
					  cl_ntoh16(peer->p_node->sw->switch_info.enforce_cap)));
}

/* waits: NULL = who has been sent something does not matter; else it has room for all. */
static void count_sent(osm_opensm_t *osm, struct vhca_osm_pkey_watch *watch,
		       struct vhca_osm_pkey_waits *waits)
{
	size_t sum = 0;

	cl_plock_acquire(&osm->lock);
	for (size_t i = 0; i < watch->n_ports; i++) {
		size_t n = sent_for(osm, &watch->ports[i]);

		sum += n;
		if (waits && n > 0)
			waits->guids[waits->n++] = watch->ports[i].guid;
	}
	cl_plock_release(&osm->lock);
	atomic_fetch_add(&watch->sent, sum);
	forget_before(watch);
}

void vhca_osm_pkeys_sent(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	count_sent(osm, watch, NULL);
}

/* ---- without a sweep ---- */

static void forget_waits(struct vhca_osm_pkey_waits *waits)
{
	free(waits->guids);
	*waits = (struct vhca_osm_pkey_waits){0};
}

static uint64_t no_answer_after(const osm_opensm_t *osm)
{
	unsigned int ms = osm->subn.opt.transaction_timeout;

	return vhca_now_ms() + (uint64_t)ms * ((unsigned int)osm->subn.opt.transaction_retries + 1);
}

bool vhca_osm_pkeys_apply(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	bool applied;

	forget_waits(&watch->waits);
	look_before(osm, watch);
	watch->waits.guids = calloc(watch->n_ports + 1, sizeof(*watch->waits.guids));
	if (!watch->ports || !watch->blocks || !watch->waits.guids) {
		forget_before(watch);
		return false;
	}
	watch->waits.until = no_answer_after(osm);
	applied = osm_pkey_mgr_process(osm) == 0;
	count_sent(osm, watch, &watch->waits);
	return applied;
}

static size_t missing_at(const osm_opensm_t *osm, ib_net64_t guid)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, guid);
	const osm_physp_t *enforcer;
	struct vhca_osm_pkeys_of_port now = {.guid = guid};
	VHCA_AUTO_FREE struct vhca_osm_pkey_block *blocks = NULL;
	struct vhca_osm_pkey_block *at;

	if (!port || !port->p_physp)
		return 0;
	enforcer = enforcer_of(osm, port);
	at = blocks = calloc(blocks_at(port->p_physp) + blocks_at(enforcer) + 1, sizeof(*blocks));
	if (!blocks)
		return 1;
	now.own = remember_table(port->p_physp, &at);
	now.at_switch = remember_table(enforcer, &at);
	return sent_for(osm, &now);
}

size_t vhca_osm_pkeys_unanswered(struct osm_opensm *osm, struct vhca_osm_pkey_watch *watch)
{
	size_t n = 0;

	cl_plock_acquire(&osm->lock);
	for (size_t i = 0; i < watch->waits.n; i++)
		n += missing_at(osm, watch->waits.guids[i]) > 0;
	cl_plock_release(&osm->lock);
	return n;
}

size_t vhca_osm_pkeys_missing(const struct osm_opensm *osm, uint64_t port_guid)
{
	return missing_at(osm, cl_hton64(port_guid));
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

bool vhca_osm_pkeys_are_there(const struct osm_opensm *osm, uint64_t port_guid)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, cl_hton64(port_guid));
	const osm_physp_t *physp = port ? port->p_physp : NULL;

	if (!physp || wants_more_blocks(physp))
		return false;
	for (uint16_t b = 0; b < blocks_at(physp); b++)
		if (differs(osm_pkey_tbl_block_get(&physp->pkeys, b), wanted_block(physp, b)))
			return false;
	return true;
}

bool vhca_osm_pkeys_on_the_way(const struct osm_opensm *osm,
			       const struct vhca_osm_pkey_watch *watch, uint64_t port_guid)
{
	if (vhca_now_ms() >= watch->waits.until && osm->stats.qp0_mads_outstanding == 0)
		return false;
	for (size_t i = 0; i < watch->waits.n; i++)
		if (watch->waits.guids[i] == cl_hton64(port_guid))
			return missing_at(osm, watch->waits.guids[i]) > 0;
	return false;
}

void vhca_osm_pkeys_done(struct vhca_osm_pkey_watch *watch)
{
	forget_before(watch);
	forget_waits(&watch->waits);
	vhca_osm_key_places_done(&watch->places);
}
