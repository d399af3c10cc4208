/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/found_ports.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"

/* ---- ports of vGUIDs ---- */

struct vhca_osm_binding vhca_osm_own_port_of(const struct vhca_osm_subnet *subnet,
					     const struct vhca_osm_table *t,
					     const struct vhca_osm_binding *want)
{
	const struct vhca_osm_binding *old = vhca_osm_table_find(t, want->vguid);
	struct vhca_osm_binding b = *want;
	struct vhca_osm_port_info info;
	bool had = old && !old->withdrawn && old->own_port && old->port_guid == b.port_guid;

	b.own_port = b.vguid != b.port_guid &&
		     (had || subnet->ops->find_port(subnet->ctx, b.vguid, &info));
	b.had_port = !b.own_port && old && (old->own_port || old->had_port);
	return b;
}

struct search {
	const struct vhca_osm_table *t;
	uint64_t *found; /* ports that are there, and are bound, or were given up */
	size_t n, room;
};

/* With OpenSM's lock held: memory only. */
static void look_at_port(void *arg, uint64_t port_guid, const uint16_t *pkeys, size_t n)
{
	struct search *s = arg;
	const struct vhca_osm_binding *b = vhca_osm_table_find(s->t, port_guid);

	(void)pkeys;
	(void)n;
	if (b &&
	    (b->withdrawn ? b->own_port && b->port_guid == port_guid : b->port_guid != port_guid) &&
	    s->n < s->room)
		s->found[s->n++] = port_guid;
}

void vhca_osm_own_ports_found(const struct vhca_osm_subnet *subnet, struct vhca_osm_table *t)
{
	size_t room = vhca_osm_table_records(t);
	VHCA_AUTO_FREE uint64_t *found = calloc(room + 1, sizeof(*found));
	struct search s = {.t = t, .found = found, .room = room};

	if (room == 0 || !found) /* the next sweep tries again */
		return;
	subnet->ops->each_port(subnet->ctx, look_at_port, &s);
	for (size_t i = 0; i < s.n; i++) {
		struct vhca_osm_binding b = *vhca_osm_table_find(t, found[i]);
		struct vhca_error err = VHCA_ERROR_INIT;

		bool physical = subnet->ops->is_physical(subnet->ctx, b.vguid);

		if (b.withdrawn) { /* it has come back all the same, see report_forget_port() */
			(void)vhca_osm_table_forget(t, b.vguid, &err);
			continue;
		}
		if (physical)
			vhca_log_warning("%s is a port of the subnet, and bound to port %s: its "
					 "keys stay there",
					 VHCA_GUID_STR(b.vguid), VHCA_GUID_STR(b.port_guid));
		if (b.own_port == !physical && !b.had_port)
			continue;
		/* What was taken for a guest's while a sweep had not found its host is taken back.
		 */
		b.own_port = !physical;
		b.had_port = false;
		if (vhca_osm_table_put(t, &b, VHCA_OSM_PORT_PKEYS_MAX, &err) < 0)
			vhca_log_error("%s; its keys stay at port %s", err.msg,
				       VHCA_GUID_STR(b.port_guid));
	}
}

/* ---- keys of ports ---- */

/* A port, and the keys that it keeps: `n` of the list's, from `first` on. */
struct keeper {
	uint64_t guid;
	size_t first, n;
};

struct keepers {
	const struct vhca_osm_policy *policy;
	const struct vhca_osm_base *base;
	struct keeper *list;
	size_t n, room;
	uint16_t *pkeys;
	size_t n_pkeys, pkeys_room;
	size_t failed; /* ports that are not in the list, for want of memory */
};

static void keepers_done(struct keepers *k)
{
	free(k->list);
	free(k->pkeys);
}

static bool reserve_keeper(struct keepers *k)
{
	size_t room = k->room * 2 + 1024, pkeys_room = k->pkeys_room * 2 + VHCA_OSM_TABLE_MAX;
	struct keeper *list;
	uint16_t *pkeys;

	if (k->n == k->room) {
		list = reallocarray(k->list, room, sizeof(*list));
		if (!list)
			return false;
		k->list = list;
		k->room = room;
	}
	if (k->pkeys_room - k->n_pkeys < VHCA_OSM_TABLE_MAX) {
		pkeys = reallocarray(k->pkeys, pkeys_room, sizeof(*pkeys));
		if (!pkeys)
			return false;
		k->pkeys = pkeys;
		k->pkeys_room = pkeys_room;
	}
	return true;
}

static bool is_kept(const struct keepers *k, uint16_t pkey)
{
	return vhca_pkey_base(pkey) != VHCA_PKEY_DEFAULT &&
	       vhca_osm_policy_allows(k->policy, pkey) &&
	       !vhca_osm_base_find(k->base, vhca_pkey_base(pkey));
}

/* With OpenSM's lock held: memory only. */
static void add_keeper(void *arg, uint64_t port_guid, const uint16_t *pkeys, size_t n)
{
	struct keepers *k = arg;
	struct keeper keeper = {.guid = port_guid, .first = k->n_pkeys};

	if (!reserve_keeper(k)) {
		k->failed++;
		return;
	}
	for (size_t i = 0; i < n && i < VHCA_OSM_TABLE_MAX; i++)
		if (is_kept(k, pkeys[i]))
			k->pkeys[keeper.first + keeper.n++] = pkeys[i];
	if (!keeper.n)
		return;
	k->n_pkeys += keeper.n;
	k->list[k->n++] = keeper;
}

static int by_guid(const void *a, const void *b)
{
	const struct keeper *x = a, *y = b;

	return (x->guid > y->guid) - (x->guid < y->guid);
}

size_t vhca_osm_found_keys_inherit(const struct vhca_osm_subnet *subnet,
				   const struct vhca_osm_policy *policy,
				   const struct vhca_osm_base *base, struct vhca_osm_table *t)
{
	VHCA_CLEANUP(keepers_done) struct keepers k = {.policy = policy, .base = base};

	subnet->ops->each_port(subnet->ctx, add_keeper, &k);
	/* In the table's order: in another one each port would move half of the table, which took
	 * seconds with 65536 ports. */
	if (k.n)
		qsort(k.list, k.n, sizeof(*k.list), by_guid);
	for (size_t i = 0; i < k.n; i++)
		k.failed += vhca_osm_table_inherit(t, k.list[i].guid, k.pkeys + k.list[i].first,
						   k.list[i].n, NULL) < 0;
	return k.failed;
}
