/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/opensm_key_tables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"

#include <opensm/osm_config.h> /* before its siblings: the layout of their structures depends on it */

#include <complib/cl_map.h>
#include <complib/cl_passivelock.h>
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

static void forget(osm_pkey_tbl_t *table)
{
	uint16_t n = osm_pkey_tbl_get_num_blocks(table);

	cl_map_remove_all(&table->keys); /* points into the blocks */
	for (uint16_t i = 0; i < n; i++) {
		free(osm_pkey_tbl_block_get(table, i));
		(void)cl_ptr_vector_set(&table->blocks, i, NULL);
	}
}

static bool is_known(const osm_pkey_tbl_t *table)
{
	uint16_t n = osm_pkey_tbl_get_num_blocks(table);

	for (uint16_t i = 0; i < n; i++)
		if (!osm_pkey_tbl_block_get(table, i))
			return false;
	return true;
}

/* Both are known. */
static void exchange_block(const struct osm_subn *subn, osm_pkey_tbl_t *x, osm_pkey_tbl_t *y,
			   uint16_t i)
{
	ib_pkey_table_t *of_x = osm_pkey_tbl_block_get(x, i);
	ib_pkey_table_t *of_y = osm_pkey_tbl_block_get(y, i);
	ib_pkey_table_t keys;

	if (!of_x || !of_y)
		return;
	keys = *of_x;
	(void)osm_pkey_tbl_set(x, i, of_y, subn->opt.allow_both_pkeys);
	(void)osm_pkey_tbl_set(y, i, &keys, subn->opt.allow_both_pkeys);
}

void vhca_osm_key_tables_exchange(struct osm_subn *subn, struct osm_physp *a, struct osm_physp *b)
{
	osm_pkey_tbl_t *x = &a->pkeys, *y = &b->pkeys;
	uint16_t n = osm_pkey_tbl_get_num_blocks(x);

	if (n != osm_pkey_tbl_get_num_blocks(y) || !is_known(x) || !is_known(y)) {
		forget(x);
		forget(y);
		return;
	}
	for (uint16_t i = 0; i < n; i++)
		exchange_block(subn, x, y, i);
}

/* ---- indexes ---- */

/* Does each key of the table have the index there that OpenSM remembers? */
static bool is_settled(osm_pkey_tbl_t *table)
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
	const cl_qmap_t *ports = &osm->subn.port_guid_tbl;

	for (cl_map_item_t *i = cl_qmap_head(ports); i != cl_qmap_end(ports); i = cl_qmap_next(i)) {
		const osm_port_t *port = (const osm_port_t *)i;

		if (!port->p_physp || is_settled(&port->p_physp->pkeys))
			continue;
		cl_map_remove_all(&port->p_physp->pkeys.accum_pkeys);
		port->p_physp->pkeys.last_pkey_idx = 0;
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
	const cl_qmap_t *ports = &osm->subn.port_guid_tbl;

	if (places->of)
		return;
	cl_plock_acquire(&osm->lock);
	places->of = calloc(cl_qmap_count(ports) + 1, sizeof(*places->of));
	for (cl_map_item_t *i = cl_qmap_head(ports); places->of && i != cl_qmap_end(ports);
	     i = cl_qmap_next(i))
		places->of[places->n++] = place_of((const osm_port_t *)i);
	cl_plock_release(&osm->lock);
}

/* False of one that has gone, too. */
static bool has_moved(const struct vhca_osm_key_place *was, const osm_port_t *port)
{
	struct vhca_osm_key_place now;

	if (!port || !port->p_physp)
		return false;
	now = place_of(port);
	return now.node != was->node || now.port != was->port;
}

static void forget_all(const osm_opensm_t *osm)
{
	const cl_qmap_t *ports = &osm->subn.port_guid_tbl;

	vhca_log_error("out of memory: all P_Key tables are written again");
	for (cl_map_item_t *i = cl_qmap_head(ports); i != cl_qmap_end(ports); i = cl_qmap_next(i))
		if (((osm_port_t *)i)->p_physp)
			forget(&((osm_port_t *)i)->p_physp->pkeys);
}

void vhca_osm_key_places_compare(struct osm_opensm *osm, struct vhca_osm_key_places *places)
{
	cl_plock_excl_acquire(&osm->lock);
	if (!places->of)
		forget_all(osm);
	for (size_t i = 0; i < places->n; i++) {
		osm_port_t *port = osm_get_port_by_guid(&osm->subn, places->of[i].guid);

		if (has_moved(&places->of[i], port))
			forget(&port->p_physp->pkeys);
	}
	cl_plock_release(&osm->lock);
	vhca_osm_key_places_done(places);
}

void vhca_osm_key_places_done(struct vhca_osm_key_places *places)
{
	free(places->of);
	*places = (struct vhca_osm_key_places){0};
}
