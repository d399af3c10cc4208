/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Why a port has a key. A guest works as long as its key is in the table of its host's port, and
 * must not work a moment longer than it may. So a key leaves a port when its last reason goes, and
 * each reason is kept for itself: an agent has declared it; n bindings use it; a new master has
 * found it there. The first and the last are flags, because they are set and cleared as a whole; a
 * binding's is a count, because two guests of one tenant need one key, and one of them ends.
 *
 * Membership. A partition has two keys, 0x8001 for its full and 0x0001 for its limited members.
 * OpenSM gives a port one of them, unless opensm.conf has allow_both_pkeys. So the second form
 * would change what the guests with the first one reach: it is refused (both_memberships). There
 * are two exceptions. The default partition: OpenSM's own rule gives it to every port anyway. And a
 * form that is only inherited gives way to the one that is reported: nobody has said that it is
 * needed.
 *
 * All or nothing. A report takes its old keys back and adds new ones, any of which may be refused
 * half way. So a change is tried on a draft: a copy on the stack, with room for all keys that a
 * port may have. The table then checks the room, reserves memory, and assigns, which cannot fail. A
 * refused draft is forgotten.
 *
 * Room. No port needs more than VHCA_OSM_PORT_PKEYS_MAX keys, and an adapter's table may be smaller
 * than that. It may even be smaller than what is in use, after a change of firmware: a change that
 * adds nothing is never refused for that.
 *
 * The needs are a sorted array: there are at most 126 of them, and the order is that of the
 * partition file and of the answers.
 */
#include "opensm/bindings/port_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/codes.h"
#include "common/base/text.h"

static void copy_needs(struct vhca_osm_port *to, const struct vhca_osm_port *from)
{
	if (from->n_needs)
		memcpy(to->needs, from->needs, from->n_needs * sizeof(*to->needs));
	to->n_needs = from->n_needs;
}

void vhca_osm_port_draft(struct vhca_osm_port_draft *ret, const struct vhca_osm_port *p)
{
	ret->port = (struct vhca_osm_port){
		.guid = p->guid, .room = VHCA_OSM_PORT_PKEYS_MAX, .needs = ret->needs};
	copy_needs(&ret->port, p);
}

int vhca_osm_port_reserve(struct vhca_osm_port *p, const struct vhca_osm_port_draft *draft)
{
	size_t room = draft->port.n_needs;
	struct vhca_osm_need *needs;

	if (room <= p->room)
		return 0;
	needs = reallocarray(p->needs, room, sizeof(*needs));
	if (!needs)
		return -ENOMEM;
	p->needs = needs;
	p->room = room;
	return 0;
}

void vhca_osm_port_assign(struct vhca_osm_port *p, const struct vhca_osm_port_draft *draft)
{
	copy_needs(p, &draft->port);
}

static size_t need_index(const struct vhca_osm_port *p, uint16_t pkey)
{
	size_t i = 0;

	while (i < p->n_needs && p->needs[i].pkey < pkey)
		i++;
	return i;
}

static struct vhca_osm_need *need_find(struct vhca_osm_port *p, uint16_t pkey)
{
	size_t i = need_index(p, pkey);

	return i < p->n_needs && p->needs[i].pkey == pkey ? &p->needs[i] : NULL;
}

/* Finds or makes the entry of a key that was checked. */
static struct vhca_osm_need *need_get(struct vhca_osm_port *p, uint16_t pkey)
{
	size_t i = need_index(p, pkey);

	if (i < p->n_needs && p->needs[i].pkey == pkey)
		return &p->needs[i];
	memmove(&p->needs[i + 1], &p->needs[i], (p->n_needs - i) * sizeof(*p->needs));
	p->n_needs++;
	p->needs[i] = (struct vhca_osm_need){.pkey = pkey};
	return &p->needs[i];
}

static void drop_unneeded(struct vhca_osm_port *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n_needs; i++)
		if (p->needs[i].declared || p->needs[i].inherited || p->needs[i].bindings)
			p->needs[kept++] = p->needs[i];
	p->n_needs = kept;
}

/*
 * Does the other membership of this key forbid it? A twin that is only inherited gives way: who
 * reports knows better.
 */
static bool has_barring_twin(struct vhca_osm_port *p, uint16_t pkey)
{
	struct vhca_osm_need *twin = need_find(p, pkey ^ VHCA_PKEY_FULL);

	/* The default partition is exempt: OpenSM's own rule already gives it to every port. */
	if (!twin || vhca_pkey_base(pkey) == VHCA_PKEY_DEFAULT)
		return false;
	if (twin->declared || twin->bindings)
		return true;
	twin->inherited = false;
	drop_unneeded(p);
	return false;
}

/* May this key be needed beside the others? */
static int check_key(struct vhca_osm_port *p, bool both, uint16_t pkey, struct vhca_error *err)
{
	int r;

	if (!both && has_barring_twin(p, pkey)) {
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_BOTH_MEMBERSHIPS, 0,
				   "port %s needs partition 0x%04x as full and as limited member",
				   VHCA_GUID_STR(p->guid), vhca_pkey_base(pkey));
		vhca_error_hint(err, "use one membership on this port, or set allow_both_pkeys "
				     "TRUE in opensm.conf and restart OpenSM");
		return r;
	}
	if (need_find(p, pkey) || p->n_needs < VHCA_OSM_PORT_PKEYS_MAX)
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "port %s: %d of %d keys are in use", VHCA_GUID_STR(p->guid),
			      VHCA_OSM_PORT_PKEYS_MAX, VHCA_OSM_PORT_PKEYS_MAX);
}

int vhca_osm_port_acquire(struct vhca_osm_port *p, bool both, const uint16_t *pkeys, size_t n,
			  struct vhca_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = check_key(p, both, pkeys[i], err);

		if (r < 0)
			return r;
		need_get(p, pkeys[i])->bindings++;
	}
	return 0;
}

void vhca_osm_port_release(struct vhca_osm_port *p, const uint16_t *pkeys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct vhca_osm_need *need = need_find(p, pkeys[i]);

		if (need && need->bindings)
			need->bindings--;
	}
	drop_unneeded(p);
}

int vhca_osm_port_declare(struct vhca_osm_port *p, bool both, const uint16_t *pkeys, size_t n,
			  struct vhca_error *err)
{
	for (size_t i = 0; i < p->n_needs; i++)
		p->needs[i].declared = false;
	drop_unneeded(p);
	for (size_t i = 0; i < n; i++) {
		int r = check_key(p, both, pkeys[i], err);

		if (r < 0)
			return r;
		need_get(p, pkeys[i])->declared = true;
	}
	return 0;
}

void vhca_osm_port_inherit(struct vhca_osm_port *p, bool both, const uint16_t *pkeys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool known = need_find(p, pkeys[i]) != NULL;
		bool barred = !both && need_find(p, pkeys[i] ^ VHCA_PKEY_FULL);

		if (known || (!barred && p->n_needs < VHCA_OSM_PORT_PKEYS_MAX))
			need_get(p, pkeys[i])->inherited = true;
	}
}

void vhca_osm_port_drop_inherited(struct vhca_osm_port *p)
{
	for (size_t i = 0; i < p->n_needs; i++)
		p->needs[i].inherited = false;
	drop_unneeded(p);
}

/* Beside the default partition, for which the table has room anyway. */
static size_t count_keys(const struct vhca_osm_port *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_needs; i++)
		n += vhca_pkey_base(p->needs[i].pkey) != VHCA_PKEY_DEFAULT;
	return n;
}

int vhca_osm_port_check_room(const struct vhca_osm_port *before, const struct vhca_osm_port *after,
			     size_t max, struct vhca_error *err)
{
	size_t n = count_keys(after);
	int r;

	/*
	 * A table that shrank under keys in use (other HCA firmware) must not forbid to take keys
	 * away.
	 */
	if (n <= max || n <= count_keys(before))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			   "port %s: %zu keys are needed, its table has room for %zu",
			   VHCA_GUID_STR(after->guid), n, max);
	vhca_error_hint(err, "spread the tenants over more hosts, or give back keys that are "
			     "declared with PUT /v1/members");
	return r;
}

bool vhca_osm_port_same_keys(const struct vhca_osm_port *a, const struct vhca_osm_port *b)
{
	if (a->n_needs != b->n_needs)
		return false;
	for (size_t i = 0; i < a->n_needs; i++)
		if (a->needs[i].pkey != b->needs[i].pkey)
			return false;
	return true;
}

bool vhca_osm_port_same_needs(const struct vhca_osm_port *a, const struct vhca_osm_port *b)
{
	if (!vhca_osm_port_same_keys(a, b))
		return false;
	for (size_t i = 0; i < a->n_needs; i++)
		if (a->needs[i].declared != b->needs[i].declared ||
		    a->needs[i].inherited != b->needs[i].inherited ||
		    a->needs[i].bindings != b->needs[i].bindings)
			return false;
	return true;
}
