/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "opensm/bindings/guid_map.h"

/* Oldest first. */
struct tombstones {
	TAILQ_HEAD(, vhca_osm_binding) list;
	size_t n, max;
};

/* What a port has of the bindings, and of the tombstones of what was bound. */
struct share {
	uint64_t port_guid; /* key; must stay first */
	size_t bindings, tombstones;
	size_t own_ports; /* of the bindings */
};

struct vhca_osm_table {
	struct vhca_osm_limits limits;
	bool both_memberships;
	struct vhca_osm_guid_map records; /* struct vhca_osm_binding, owned */
	struct vhca_osm_guid_map ports;	  /* struct vhca_osm_port, owned */
	struct vhca_osm_guid_map pins;	  /* struct vhca_osm_pin, owned */
	struct vhca_osm_guid_map shares;  /* struct share, owned */
	struct tombstones tombstones[2];  /* by never_bound */
	uint64_t revision, needs_revision;
	struct vhca_osm_changed_ports changed;
};

static void record_free(void *p)
{
	struct vhca_osm_binding *b = p;

	if (!b)
		return;
	free(b->pkeys);
	free(b);
}

VHCA_DEFINE_CLEANUP(struct vhca_osm_binding, record_free)

/* A record with a copy of want's values and keys; tombstones are made with n_pkeys = 0. */
static struct vhca_osm_binding *record_new(const struct vhca_osm_binding *want)
{
	VHCA_CLEANUP(record_freep) struct vhca_osm_binding *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	*b = *want;
	b->withdrawn = b->never_bound = false;
	b->pkeys = calloc(want->n_pkeys ? want->n_pkeys : 1, sizeof(*b->pkeys));
	if (!b->pkeys)
		return NULL;
	if (want->n_pkeys)
		memcpy(b->pkeys, want->pkeys, want->n_pkeys * sizeof(*b->pkeys));
	return vhca_steal_ptr(&b);
}

static void port_free(void *p)
{
	struct vhca_osm_port *port = p;

	if (!port)
		return;
	free(port->needs);
	free(port);
}

int vhca_osm_table_new(const struct vhca_osm_limits *limits, bool both_memberships,
		       struct vhca_osm_table **ret)
{
	struct vhca_osm_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->limits = *limits;
	t->both_memberships = both_memberships;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(t->tombstones); i++)
		TAILQ_INIT(&t->tombstones[i].list);
	t->tombstones[false].max = limits->tombstones;
	t->tombstones[true].max = limits->never_bound;
	*ret = t;
	return 0;
}

struct vhca_osm_table *vhca_osm_table_free(struct vhca_osm_table *t)
{
	if (!t)
		return NULL;
	vhca_osm_guid_map_done(&t->records, record_free);
	vhca_osm_guid_map_done(&t->ports, port_free);
	vhca_osm_guid_map_done(&t->pins, free);
	vhca_osm_guid_map_done(&t->shares, free);
	vhca_osm_changed_ports_done(&t->changed);
	free(t);
	return NULL;
}

/* ---- ports ---- */

static int check_ports(const struct vhca_osm_table *t, uint64_t guid, struct vhca_error *err)
{
	if (t->ports.n < t->limits.ports || vhca_osm_guid_map_find(&t->ports, guid))
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "port %s: %zu of %zu ports are in use", VHCA_GUID_STR(guid),
			      t->ports.n, t->limits.ports);
}

/* The port's record, made if needed; NULL after setting err. */
static struct vhca_osm_port *port_get(struct vhca_osm_table *t, uint64_t guid,
				      struct vhca_error *err)
{
	struct vhca_osm_port *p = vhca_osm_guid_map_find(&t->ports, guid);

	if (p)
		return p;
	if (check_ports(t, guid, err) < 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p) {
		p->guid = guid;
		if (vhca_osm_guid_map_add(&t->ports, p) == 0)
			return p;
		free(p);
	}
	(void)vhca_error_no_memory(err, VHCA_GUID_STR(guid));
	return NULL;
}

static void port_drop_empty(struct vhca_osm_table *t, uint64_t guid)
{
	const struct vhca_osm_port *p = vhca_osm_guid_map_find(&t->ports, guid);

	if (p && p->n_needs == 0)
		port_free(vhca_osm_guid_map_remove(&t->ports, guid));
}

static int port_reserve(struct vhca_osm_port *p, const struct vhca_osm_port_draft *now,
			struct vhca_error *err)
{
	if (vhca_osm_port_reserve(p, now) == 0)
		return 0;
	return vhca_error_no_memory(err, VHCA_GUID_STR(p->guid));
}

/* There is room for it: reserved, or there are no more keys than before. */
static void port_store(struct vhca_osm_table *t, struct vhca_osm_port *p,
		       const struct vhca_osm_port_draft *now)
{
	if (!vhca_osm_port_same_keys(p, &now->port)) {
		t->needs_revision++;
		vhca_osm_changed_ports_add(&t->changed, p->guid);
	}
	vhca_osm_port_assign(p, now);
	port_drop_empty(t, now->port.guid);
}

/* The same for changes that the records do not show. */
static void port_store_reasons(struct vhca_osm_table *t, struct vhca_osm_port *p,
			       const struct vhca_osm_port_draft *now)
{
	if (!vhca_osm_port_same_needs(p, &now->port))
		t->revision++;
	port_store(t, p, now);
}

static void port_release(struct vhca_osm_table *t, const struct vhca_osm_binding *b)
{
	struct vhca_osm_port *p = vhca_osm_guid_map_find(&t->ports, vhca_osm_binding_keys_at(b));
	struct vhca_osm_port_draft now;

	if (!p)
		return;
	vhca_osm_port_draft(&now, p);
	vhca_osm_port_release(&now.port, b->pkeys, b->n_pkeys);
	port_store(t, p, &now);
}

/* ---- shares ---- */

/* NULL = no memory. */
static struct share *share_get(struct vhca_osm_table *t, uint64_t port_guid)
{
	struct share *share = vhca_osm_guid_map_find(&t->shares, port_guid);

	if (share)
		return share;
	share = calloc(1, sizeof(*share));
	if (share)
		share->port_guid = port_guid;
	if (share && vhca_osm_guid_map_add(&t->shares, share) == 0)
		return share;
	free(share);
	return NULL;
}

static void share_drop_empty(struct vhca_osm_table *t, uint64_t port_guid)
{
	const struct share *share = vhca_osm_guid_map_find(&t->shares, port_guid);

	if (share && share->bindings == 0 && share->tombstones == 0)
		free(vhca_osm_guid_map_remove(&t->shares, port_guid));
}

static void share_drop_binding(struct vhca_osm_table *t, const struct vhca_osm_binding *b)
{
	struct share *share = vhca_osm_guid_map_find(&t->shares, b->port_guid);

	if (share) {
		share->bindings--;
		share->own_ports -= b->own_port;
	}
	share_drop_empty(t, b->port_guid);
}

size_t vhca_osm_table_bindings_at(const struct vhca_osm_table *t, uint64_t port_guid)
{
	const struct share *share = vhca_osm_guid_map_find(&t->shares, port_guid);

	return share ? share->bindings : 0;
}

size_t vhca_osm_table_own_ports_at(const struct vhca_osm_table *t, uint64_t port_guid)
{
	const struct share *share = vhca_osm_guid_map_find(&t->shares, port_guid);

	return share ? share->own_ports : 0;
}

/* ---- records ---- */

static int refuse_superseded(const struct vhca_osm_binding *old, uint64_t epoch,
			     struct vhca_error *err)
{
	int r = vhca_error_set(
		err, VHCA_ERR_CONFLICT, VHCA_CODE_SUPERSEDED, 0,
		"%s: epoch %" PRIu64 " is %s %" PRIu64 ", %s port %s", VHCA_GUID_STR(old->vguid),
		epoch, epoch < old->epoch ? "older than" : "no later than", old->epoch,
		old->withdrawn ? "withdrawn from" : "bound to", VHCA_GUID_STR(old->port_guid));

	vhca_error_hint(err, "a new owner must use an epoch above %" PRIu64, old->epoch);
	return r;
}

static int refuse_tie(const struct vhca_osm_binding *old, struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_EPOCH_TIE, 0,
			       "%s: epoch %" PRIu64 " belongs to port %s",
			       VHCA_GUID_STR(old->vguid), old->epoch,
			       VHCA_GUID_STR(old->port_guid));

	vhca_error_hint(err, "a new owner must use an epoch above %" PRIu64, old->epoch);
	return r;
}

static bool is_tie(const struct vhca_osm_binding *old, uint64_t epoch, uint64_t port_guid)
{
	return epoch == old->epoch && port_guid && old->port_guid && port_guid != old->port_guid;
}

static int check_epoch(const struct vhca_osm_binding *old, const struct vhca_osm_binding *want,
		       struct vhca_error *err)
{
	if (want->epoch < old->epoch || (old->withdrawn && want->epoch == old->epoch))
		return refuse_superseded(old, want->epoch, err);
	return is_tie(old, want->epoch, want->port_guid) ? refuse_tie(old, err) : 0;
}

static bool same_owner(const struct vhca_osm_owner *a, const struct vhca_osm_owner *b)
{
	return a->kept == b->kept && a->doubt == b->doubt && a->other_port == b->other_port;
}

static bool same_report(const struct vhca_osm_binding *a, const struct vhca_osm_binding *b)
{
	return !a->withdrawn && a->epoch == b->epoch && a->port_guid == b->port_guid &&
	       a->own_port == b->own_port && a->had_port == b->had_port &&
	       same_owner(&a->owner, &b->owner) && a->gid_index == b->gid_index &&
	       a->lid == b->lid && a->n_pkeys == b->n_pkeys &&
	       (a->n_pkeys == 0 || memcmp(a->pkeys, b->pkeys, a->n_pkeys * sizeof(*a->pkeys)) == 0);
}

/*
 * What was found on the vGUID's own port is explained by its report, or was another one's: that
 * port has no other guest.
 */
static bool explains(const struct vhca_osm_table *t, const struct vhca_osm_binding *want)
{
	const struct vhca_osm_port *p = vhca_osm_guid_map_find(&t->ports, want->vguid);

	for (size_t i = 0; want->own_port && p && i < p->n_needs; i++)
		if (p->needs[i].inherited)
			return true;
	return false;
}

static bool changes_nothing(const struct vhca_osm_table *t, const struct vhca_osm_binding *old,
			    const struct vhca_osm_binding *want)
{
	return old && same_report(old, want) && !explains(t, want);
}

static void unlink_tombstone(struct vhca_osm_table *t, struct vhca_osm_binding *b)
{
	struct tombstones *g = &t->tombstones[b->never_bound];
	struct share *share = vhca_osm_guid_map_find(&t->shares, b->port_guid);

	TAILQ_REMOVE(&g->list, b, age);
	g->n--;
	if (!b->never_bound && share)
		share->tombstones--;
	share_drop_empty(t, b->port_guid);
}

static void drop_tombstone(struct vhca_osm_table *t, struct vhca_osm_binding *b)
{
	unlink_tombstone(t, b);
	record_free(vhca_osm_guid_map_remove(&t->records, b->vguid));
}

static int check_room(const struct vhca_osm_table *t, const struct vhca_osm_binding *old,
		      const struct vhca_osm_binding *want, struct vhca_error *err)
{
	size_t used = vhca_osm_table_bindings(t);

	if ((old && !old->withdrawn) || used < t->limits.bindings)
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "%s: %zu of %zu bindings are in use", VHCA_GUID_STR(want->vguid),
			      used, t->limits.bindings);
}

/* Works out what the new port's keys become; nothing changes on failure. */
static int plan_keys(const struct vhca_osm_table *t, const struct vhca_osm_port *p,
		     const struct vhca_osm_binding *old, const struct vhca_osm_binding *want,
		     struct vhca_osm_port_draft *ret, struct vhca_error *err)
{
	vhca_osm_port_draft(ret, p);
	if (old && !old->withdrawn && vhca_osm_binding_keys_at(old) == p->guid)
		vhca_osm_port_release(&ret->port, old->pkeys, old->n_pkeys);
	if (want->own_port)
		vhca_osm_port_drop_inherited(&ret->port);
	return vhca_osm_port_acquire(&ret->port, t->both_memberships, want->pkeys, want->n_pkeys,
				     err);
}

/* Everything that can fail has been done. */
static void put_commit(struct vhca_osm_table *t, struct vhca_osm_binding *old,
		       struct vhca_osm_binding *now, const struct vhca_osm_port_draft *keys,
		       struct share *share)
{
	struct vhca_osm_port *p = vhca_osm_guid_map_find(&t->ports, keys->port.guid);

	share->bindings++;
	share->own_ports += now->own_port;
	if (old && !old->withdrawn)
		share_drop_binding(t, old);
	if (old && !old->withdrawn && vhca_osm_binding_keys_at(old) != keys->port.guid)
		port_release(t, old);
	port_store(t, p, keys);
	/* A new record takes the place of the old one, which goes away. */
	if (old) {
		size_t i = vhca_osm_guid_map_after(&t->records, old->vguid) - 1;

		t->records.items[i] = &now->vguid;
		if (old->withdrawn)
			unlink_tombstone(t, old);
		record_free(old);
	}
	t->revision++;
}

static int put_new(struct vhca_osm_table *t, struct vhca_osm_binding *old,
		   const struct vhca_osm_binding *want, const struct vhca_osm_port_draft *keys,
		   struct vhca_error *err)
{
	VHCA_CLEANUP(record_freep) struct vhca_osm_binding *now = record_new(want);
	struct share *share = share_get(t, want->port_guid);

	if (!now || !share || (!old && vhca_osm_guid_map_add(&t->records, now) < 0)) {
		share_drop_empty(t, want->port_guid);
		return vhca_error_no_memory(err, VHCA_GUID_STR(want->vguid));
	}
	put_commit(t, old, vhca_steal_ptr(&now), keys, share);
	return 0;
}

static int put_keys(struct vhca_osm_table *t, struct vhca_osm_binding *old,
		    const struct vhca_osm_binding *want, struct vhca_error *err)
{
	struct vhca_osm_port *p = port_get(t, vhca_osm_binding_keys_at(want), err);
	struct vhca_osm_port_draft keys;
	int r;

	if (!p)
		return -ENOMEM;
	r = plan_keys(t, p, old, want, &keys, err);
	if (r == 0)
		r = port_reserve(p, &keys, err);
	if (r == 0)
		r = put_new(t, old, want, &keys, err);
	if (r < 0)
		port_drop_empty(t, vhca_osm_binding_keys_at(want));
	return r;
}

/* arrives: what it has where it is does not count. */
static int check_keys(const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
		      bool arrives, size_t pkeys_max, struct vhca_error *err)
{
	const struct vhca_osm_binding *old = vhca_osm_guid_map_find(&t->records, want->vguid);
	const struct vhca_osm_port none = {.guid = vhca_osm_binding_keys_at(want)};
	const struct vhca_osm_port *p = vhca_osm_guid_map_find(&t->ports, none.guid);
	struct vhca_osm_port_draft keys;
	int r;

	if (!p)
		p = &none;
	r = plan_keys(t, p, old, want, &keys, err);
	if (r < 0)
		return r;
	return vhca_osm_port_check_room(arrives ? &none : p, &keys.port, pkeys_max, err);
}

int vhca_osm_table_check_place(const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
			       size_t place_pkeys_max, struct vhca_error *err)
{
	const struct vhca_osm_binding *old = vhca_osm_guid_map_find(&t->records, want->vguid);
	int r = old ? check_epoch(old, want, err) : 0;

	return r < 0 ? r : check_keys(t, want, true, place_pkeys_max, err);
}

int vhca_osm_table_check(const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
			 size_t port_pkeys_max, struct vhca_error *err)
{
	const struct vhca_osm_binding *old = vhca_osm_guid_map_find(&t->records, want->vguid);
	int r = old ? check_epoch(old, want, err) : 0;

	if (r < 0 || changes_nothing(t, old, want))
		return r;
	r = check_room(t, old, want, err);
	if (r == 0)
		r = check_ports(t, vhca_osm_binding_keys_at(want), err);
	return r < 0 ? r : check_keys(t, want, false, port_pkeys_max, err);
}

int vhca_osm_table_put(struct vhca_osm_table *t, const struct vhca_osm_binding *want,
		       size_t port_pkeys_max, struct vhca_error *err)
{
	struct vhca_osm_binding *old = vhca_osm_guid_map_find(&t->records, want->vguid);
	int r = vhca_osm_table_check(t, want, port_pkeys_max, err);

	if (r < 0 || changes_nothing(t, old, want))
		return r;
	return put_keys(t, old, want, err);
}

/* Of a port, 0 = of all: before the newest, and what is kept for its owner goes last. */
static struct vhca_osm_binding *oldest_at(const struct tombstones *g, uint64_t port_guid)
{
	struct vhca_osm_binding *b, *kept = NULL;

	TAILQ_FOREACH (b, &g->list, age) {
		if (port_guid && b->port_guid != port_guid)
			continue;
		if (!b->owner.kept && TAILQ_NEXT(b, age))
			return b;
		if (!kept)
			kept = b;
	}
	return kept;
}

/* Above half of the room a port displaces what is its own. */
static void make_room(struct vhca_osm_table *t, struct tombstones *g, const struct share *share)
{
	bool many = share && share->tombstones > VHCA_OSM_TOMBSTONES_AT_MAX && g->n > g->max / 2;
	struct vhca_osm_binding *oldest = many ? oldest_at(g, share->port_guid) : NULL;

	if (oldest)
		drop_tombstone(t, oldest);
	while (g->n > g->max && (oldest = oldest_at(g, 0)))
		drop_tombstone(t, oldest);
}

/* share: the port's; NULL = what was never bound counts for none. */
static void make_tombstone(struct vhca_osm_table *t, struct vhca_osm_binding *b,
			   struct share *share)
{
	struct tombstones *g = &t->tombstones[b->never_bound];

	b->withdrawn = true;
	b->own_port |= b->had_port;
	b->had_port = false;
	b->gid_index = b->lid = b->n_pkeys = 0;
	b->owner.kept = false; /* as the file has it */
	b->owner.other_port = 0;
	TAILQ_INSERT_TAIL(&g->list, b, age);
	g->n++;
	if (share)
		share->tombstones++;
	t->revision++;
	make_room(t, g, share);
}

int vhca_osm_table_add_tombstone(struct vhca_osm_table *t, const struct vhca_osm_binding *tombstone,
				 struct vhca_error *err)
{
	VHCA_CLEANUP(record_freep) struct vhca_osm_binding *b = record_new(tombstone);
	struct share *share = tombstone->never_bound ? NULL : share_get(t, tombstone->port_guid);

	if (!b || (!share && !tombstone->never_bound) ||
	    vhca_osm_guid_map_add(&t->records, b) < 0) {
		share_drop_empty(t, tombstone->port_guid);
		return vhca_error_no_memory(err, VHCA_GUID_STR(tombstone->vguid));
	}
	b->never_bound = tombstone->never_bound;
	make_tombstone(t, vhca_steal_ptr(&b), share);
	return 0;
}

int vhca_osm_table_forget(struct vhca_osm_table *t, uint64_t vguid, struct vhca_error *err)
{
	struct vhca_osm_binding *b = vhca_osm_guid_map_find(&t->records, vguid);
	int r;

	if (!b)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "unknown_binding", 0,
				      "%s: never reported", VHCA_GUID_STR(vguid));
	if (b->withdrawn) {
		drop_tombstone(t, b);
		t->revision++;
		return 0;
	}
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "still_bound", 0,
			   "%s is bound to port %s at epoch %" PRIu64, VHCA_GUID_STR(vguid),
			   VHCA_GUID_STR(b->port_guid), b->epoch);
	vhca_error_hint(err, "withdraw it first: DELETE /v1/bindings/%s?epoch=%" PRIu64,
			VHCA_GUID_STR(vguid), b->epoch);
	return r;
}

int vhca_osm_table_withdraw(struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch,
			    uint64_t port_guid, struct vhca_error *err)
{
	struct vhca_osm_binding *b = vhca_osm_guid_map_find(&t->records, vguid);
	const struct vhca_osm_binding tombstone = {
		.vguid = vguid, .epoch = epoch, .port_guid = port_guid, .never_bound = true};
	struct vhca_osm_binding was;

	if (!b)
		return vhca_osm_table_add_tombstone(t, &tombstone, err);
	if (b->withdrawn) {
		if (epoch > b->epoch) {
			b->epoch = epoch;
			t->revision++;
		}
		return 0;
	}
	if (epoch < b->epoch)
		return refuse_superseded(b, epoch, err);
	if (is_tie(b, epoch, port_guid))
		return refuse_tie(b, err);
	port_release(t, b);
	was = (struct vhca_osm_binding){.port_guid = b->port_guid, .own_port = b->own_port};
	b->epoch = epoch;
	make_tombstone(t, b, vhca_osm_guid_map_find(&t->shares, was.port_guid));
	share_drop_binding(t, &was); /* making room may have dropped b */
	return 0;
}

void vhca_osm_table_set_owner(struct vhca_osm_table *t, uint64_t vguid,
			      const struct vhca_osm_owner *owner)
{
	struct vhca_osm_binding *b = vhca_osm_guid_map_find(&t->records, vguid);

	if (!b || b->never_bound || same_owner(&b->owner, owner))
		return;
	b->owner = *owner;
	t->revision++;
}

bool vhca_osm_table_has_other_owner(const struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch,
				    uint64_t port_guid)
{
	const struct vhca_osm_binding *b = vhca_osm_guid_map_find(&t->records, vguid);

	return b && (epoch < b->epoch || is_tie(b, epoch, port_guid));
}

int vhca_osm_table_declare(struct vhca_osm_table *t, uint64_t port_guid, const uint16_t *pkeys,
			   size_t n, size_t port_pkeys_max, struct vhca_error *err)
{
	struct vhca_osm_port *p = port_get(t, port_guid, err);
	struct vhca_osm_port_draft now;
	int r;

	if (!p)
		return -ENOMEM;
	vhca_osm_port_draft(&now, p);
	r = vhca_osm_port_declare(&now.port, t->both_memberships, pkeys, n, err);
	if (r == 0)
		r = vhca_osm_port_check_room(p, &now.port, port_pkeys_max, err);
	if (r == 0)
		r = port_reserve(p, &now, err);
	if (r < 0) {
		port_drop_empty(t, port_guid);
		return r;
	}
	port_store_reasons(t, p, &now);
	return 0;
}

int vhca_osm_table_inherit(struct vhca_osm_table *t, uint64_t port_guid, const uint16_t *pkeys,
			   size_t n, struct vhca_error *err)
{
	struct vhca_osm_port *p = port_get(t, port_guid, err);
	struct vhca_osm_port_draft now;
	int r;

	if (!p)
		return -ENOMEM;
	vhca_osm_port_draft(&now, p);
	vhca_osm_port_inherit(&now.port, t->both_memberships, pkeys, n);
	r = port_reserve(p, &now, err);
	if (r == 0)
		port_store_reasons(t, p, &now);
	else
		port_drop_empty(t, port_guid);
	return r;
}

void vhca_osm_table_drop_inherited(struct vhca_osm_table *t)
{
	for (size_t i = t->ports.n;
	     i-- > 0;) { /* from the end: ports without needs leave the map */
		struct vhca_osm_port *p = (void *)t->ports.items[i];
		struct vhca_osm_port_draft now;

		vhca_osm_port_draft(&now, p);
		vhca_osm_port_drop_inherited(&now.port);
		port_store_reasons(t, p, &now);
	}
}

/* ---- pins ---- */

int vhca_osm_table_pin(struct vhca_osm_table *t, uint64_t port_guid, const char *node,
		       struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_osm_pin *pin = NULL;

	if (!vhca_name_is_valid(strncmp(node, "token:", 6) == 0 ? node + 6 : node))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "\"%.40s\" is no node", node);
	if (t->pins.n >= t->limits.ports)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
				      "%zu ports have a node", t->pins.n);
	pin = calloc(1, sizeof(*pin));
	if (pin)
		pin->guid = port_guid;
	if (!pin || vhca_osm_guid_map_add(&t->pins, pin) < 0)
		return vhca_error_no_memory(err, VHCA_GUID_STR(port_guid));
	(void)vhca_strcpy(pin->node, sizeof(pin->node), node); /* was checked */
	t->revision++;
	(void)vhca_steal_ptr(&pin); /* the map's */
	return 0;
}

bool vhca_osm_table_unpin(struct vhca_osm_table *t, uint64_t port_guid)
{
	VHCA_AUTO_FREE struct vhca_osm_pin *pin = vhca_osm_guid_map_remove(&t->pins, port_guid);

	t->revision += pin != NULL;
	return pin != NULL;
}

const char *vhca_osm_table_pinned(const struct vhca_osm_table *t, uint64_t port_guid)
{
	const struct vhca_osm_pin *pin = vhca_osm_guid_map_find(&t->pins, port_guid);

	return pin ? pin->node : NULL;
}

size_t vhca_osm_table_pins(const struct vhca_osm_table *t)
{
	return t->pins.n;
}

const struct vhca_osm_pin *vhca_osm_table_pin_at(const struct vhca_osm_table *t, size_t i)
{
	return (const void *)t->pins.items[i];
}

/* ---- reading ---- */

const struct vhca_osm_binding *vhca_osm_table_find(const struct vhca_osm_table *t, uint64_t vguid)
{
	return vhca_osm_guid_map_find(&t->records, vguid);
}

const struct vhca_osm_port *vhca_osm_table_port(const struct vhca_osm_table *t, uint64_t guid)
{
	return vhca_osm_guid_map_find(&t->ports, guid);
}

size_t vhca_osm_table_inherited(const struct vhca_osm_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->ports.n; i++) {
		const struct vhca_osm_port *p = vhca_osm_table_port_at(t, i);

		for (size_t k = 0; k < p->n_needs; k++)
			n += p->needs[k].inherited && !p->needs[k].declared &&
			     !p->needs[k].bindings;
	}
	return n;
}

size_t vhca_osm_table_records(const struct vhca_osm_table *t)
{
	return t->records.n;
}

const struct vhca_osm_binding *vhca_osm_table_record(const struct vhca_osm_table *t, size_t i)
{
	return (const void *)t->records.items[i];
}

size_t vhca_osm_table_record_after(const struct vhca_osm_table *t, uint64_t vguid)
{
	return vhca_osm_guid_map_after(&t->records, vguid);
}

size_t vhca_osm_table_ports(const struct vhca_osm_table *t)
{
	return t->ports.n;
}

const struct vhca_osm_port *vhca_osm_table_port_at(const struct vhca_osm_table *t, size_t i)
{
	return (const void *)t->ports.items[i];
}

size_t vhca_osm_table_port_after(const struct vhca_osm_table *t, uint64_t guid)
{
	return vhca_osm_guid_map_after(&t->ports, guid);
}

const struct vhca_osm_binding *vhca_osm_table_next_tombstone(const struct vhca_osm_table *t,
							     const struct vhca_osm_binding *prev)
{
	const struct vhca_osm_binding *next =
		prev ? TAILQ_NEXT(prev, age) : TAILQ_FIRST(&t->tombstones[false].list);

	if (next || (prev && prev->never_bound))
		return next;
	return TAILQ_FIRST(&t->tombstones[true].list);
}

size_t vhca_osm_table_bindings(const struct vhca_osm_table *t)
{
	return t->records.n - t->tombstones[false].n - t->tombstones[true].n;
}

uint64_t vhca_osm_table_revision(const struct vhca_osm_table *t)
{
	return t->revision;
}

uint64_t vhca_osm_table_needs_revision(const struct vhca_osm_table *t)
{
	return t->needs_revision;
}

struct vhca_osm_changed_ports *vhca_osm_table_changed_ports(struct vhca_osm_table *t)
{
	return &t->changed;
}
