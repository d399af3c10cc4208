/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/key_tables.h"

#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_map.h>
#include <complib/cl_ptr_vector.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_pkey.h>
#include <opensm/osm_port.h>
#include <opensm/osm_subnet.h>

struct vhca_osm_key_place {
	ib_net64_t guid;
	ib_net64_t node; /* the switch, 0 = none */
	uint8_t port;	 /* of it */
};

/* ---- one table ---- */

size_t vhca_osm_key_blocks(uint16_t capacity)
{
	return (capacity + IB_NUM_PKEY_ELEMENTS_IN_BLOCK - 1U) / IB_NUM_PKEY_ELEMENTS_IN_BLOCK;
}

static bool blocks_have(const cl_ptr_vector_t *blocks, ib_net16_t pkey)
{
	for (size_t b = 0; b < cl_ptr_vector_get_size(blocks); b++) {
		const ib_pkey_table_t *block = cl_ptr_vector_get(blocks, b);

		for (size_t i = 0; block && i < IB_NUM_PKEY_ELEMENTS_IN_BLOCK; i++)
			if (block->pkey_entry[i] == pkey)
				return true;
	}
	return false;
}

bool vhca_osm_key_table_has(const struct osm_physp *physp, uint16_t pkey)
{
	return blocks_have(&physp->pkeys.blocks, pkey);
}

bool vhca_osm_key_table_wants(const struct osm_physp *physp, uint16_t pkey)
{
	return blocks_have(&physp->pkeys.new_blocks, pkey);
}

/* Of the hardware where the port is. */
static uint16_t capacity_there(const osm_physp_t *physp)
{
	return cl_ntoh16(physp->p_node->node_info.partition_cap);
}

static void drop_blocks(osm_pkey_tbl_t *table, size_t first)
{
	size_t n = cl_ptr_vector_get_size(&table->blocks);

	for (size_t i = first; i < n; i++) {
		free(cl_ptr_vector_get(&table->blocks, i));
		(void)cl_ptr_vector_set(&table->blocks, i, NULL);
	}
}

/*
 * OpenSM writes a table as far as it knows one; where that is not what the hardware has, keys would
 * stay there, or it would write to nowhere.
 */
static void fit(osm_physp_t *physp)
{
	size_t n = vhca_osm_key_blocks(capacity_there(physp));

	drop_blocks(&physp->pkeys, n);
	if (cl_ptr_vector_set_size(&physp->pkeys.blocks, n) != CL_SUCCESS)
		vhca_log_error("out of memory: not all of the P_Key table of port %s is written",
			       VHCA_GUID_STR(cl_ntoh64(osm_physp_get_port_guid(physp))));
}

/* OpenSM finds keys by pointers into the blocks. */
static void find_keys(const struct osm_subn *subn, osm_pkey_tbl_t *table)
{
	uint16_t n = osm_pkey_tbl_get_num_blocks(table);

	cl_map_remove_all(&table->keys);
	for (uint16_t i = 0; i < n; i++) {
		const ib_pkey_table_t *block = osm_pkey_tbl_block_get(table, i);
		ib_pkey_table_t keys;

		if (!block)
			continue;
		keys = *block;
		/* Looks through the other blocks, too. */
		(void)osm_pkey_tbl_set(table, i, &keys, subn->opt.allow_both_pkeys);
		return;
	}
}

void vhca_osm_key_table_forget(struct osm_physp *physp)
{
	cl_map_remove_all(&physp->pkeys.keys);
	drop_blocks(&physp->pkeys, 0);
}

void vhca_osm_key_block_forget(const struct osm_subn *subn, struct osm_physp *physp, uint16_t block)
{
	free(cl_ptr_vector_get(&physp->pkeys.blocks, block));
	(void)cl_ptr_vector_set(&physp->pkeys.blocks, block, NULL);
	find_keys(subn, &physp->pkeys);
}

static void forget_elsewhere(osm_physp_t *physp)
{
	vhca_osm_key_table_forget(physp);
	fit(physp);
}

void vhca_osm_key_tables_exchange(struct osm_subn *subn, struct osm_physp *a, struct osm_physp *b)
{
	struct osm_physp *const both[2] = {a, b};
	const ib_net16_t capacity = a->p_node->node_info.partition_cap;
	const cl_ptr_vector_t blocks = a->pkeys.blocks;

	a->p_node->node_info.partition_cap = b->p_node->node_info.partition_cap;
	b->p_node->node_info.partition_cap = capacity;
	a->pkeys.blocks = b->pkeys.blocks;
	b->pkeys.blocks = blocks;
	for (int i = 0; i < 2; i++) {
		fit(both[i]);
		find_keys(subn, &both[i]->pkeys);
	}
}

/* ---- indexes ---- */

/* Is each index that OpenSM remembers one of the table's? */
static bool has_room(osm_pkey_tbl_t *table, uint16_t capacity)
{
	for (cl_map_iterator_t i = cl_map_head(&table->accum_pkeys);
	     i != cl_map_end(&table->accum_pkeys); i = cl_map_next(i))
		if ((uintptr_t)cl_map_obj(i) > capacity) /* counted from 1 */
			return false;
	return true;
}

/* Does each key of the table have the index there that OpenSM remembers? */
static bool is_as_remembered(osm_pkey_tbl_t *table)
{
	for (cl_map_iterator_t i = cl_map_head(&table->keys); i != cl_map_end(&table->keys);
	     i = cl_map_next(i)) {
		uint16_t *pkey = cl_map_obj(i), block;
		uintptr_t remembered = (uintptr_t)cl_map_get(&table->accum_pkeys, *pkey);
		uint8_t at;

		if (osm_pkey_tbl_get_block_and_idx(table, pkey, &block, &at) != IB_SUCCESS ||
		    remembered != (uintptr_t)block * IB_NUM_PKEY_ELEMENTS_IN_BLOCK + at + 1)
			return false;
	}
	return true;
}

void vhca_osm_key_tables_settle(struct osm_opensm *osm)
{
	VHCA_OSM_FOREACH_PORT (port, &osm->subn) {
		osm_physp_t *physp = port->p_physp;

		if (!physp || (is_as_remembered(&physp->pkeys) &&
			       has_room(&physp->pkeys, capacity_there(physp))))
			continue;
		cl_map_remove_all(&physp->pkeys.accum_pkeys);
		physp->pkeys.last_pkey_idx = 0;
	}
}

/* ---- places ---- */

static struct vhca_osm_key_place place_of(const osm_port_t *port)
{
	const osm_physp_t *there = port->p_physp ? port->p_physp->p_remote_physp : NULL;

	return (struct vhca_osm_key_place){.guid = port->guid,
					   .node = there ? there->p_node->node_info.node_guid : 0,
					   .port = there ? there->port_num : 0};
}

void vhca_osm_key_places_remember(struct osm_opensm *osm, struct vhca_osm_key_places *places)
{
	if (places->of)
		return;
	vhca_osm_lock_shared(osm);
	places->of = calloc(cl_qmap_count(&osm->subn.port_guid_tbl) + 1, sizeof(*places->of));
	if (places->of)
		VHCA_OSM_FOREACH_PORT (port, &osm->subn)
			places->of[places->n++] = place_of(port);
	vhca_osm_unlock(osm);
}

void vhca_osm_key_places_compare(struct osm_opensm *osm, struct vhca_osm_key_places *places)
{
	vhca_osm_lock_exclusive(osm);
	if (!places->of) {
		vhca_log_error("out of memory: all P_Key tables are written again");
		VHCA_OSM_FOREACH_PORT (port, &osm->subn)
			if (port->p_physp)
				forget_elsewhere(port->p_physp);
	}
	for (size_t i = 0; i < places->n; i++) {
		const struct vhca_osm_key_place *was = &places->of[i];
		osm_port_t *port = osm_get_port_by_guid(&osm->subn, was->guid);
		struct vhca_osm_key_place now;

		if (!port || !port->p_physp)
			continue;
		now = place_of(port);
		if (now.node != was->node || now.port != was->port)
			forget_elsewhere(port->p_physp);
	}
	vhca_osm_unlock(osm);
	vhca_osm_key_places_done(places);
}

void vhca_osm_key_places_done(struct vhca_osm_key_places *places)
{
	free(places->of);
	*places = (struct vhca_osm_key_places){0};
}
