/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/follow.h"

#include <errno.h>

static int check_alone(const struct vhca_osm_table *t, uint64_t vguid, uint64_t port_guid,
		       struct vhca_error *err)
{
	const struct vhca_osm_binding *own = vhca_osm_table_find(t, vguid);
	size_t n = vhca_osm_table_bindings_at(t, port_guid);
	bool is_one_of_them = own && !own->withdrawn && own->port_guid == port_guid;

	if (n == (is_one_of_them ? 1 : 0))
		return 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "lid_shared", 0,
		       "port %s has other guests, whose LID it is, too", VHCA_GUID_STR(port_guid));
	vhca_error_hint(err, "GET /v1/bindings?port_guid=%s", VHCA_GUID_STR(port_guid));
	return -EBUSY;
}

/* Where it was, as far as that is known still: who has settled at its new port may ask again. */
static int check_was_there(const struct vhca_osm_table *t, const struct vhca_osm_binding *b,
			   const struct vhca_osm_relocation *relocation, struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(t, b->vguid);
	bool is_known = known && !known->never_bound;

	if (is_known && (relocation->from_port == known->port_guid ||
			 relocation->from_port == known->owner.other_port ||
			 (!known->owner.other_port && known->port_guid == b->port_guid)))
		return 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "lid_elsewhere", 0,
		       "%s was not at port %s, whose LID is %u", VHCA_GUID_STR(b->vguid),
		       VHCA_GUID_STR(relocation->from_port), relocation->from_lid);
	vhca_error_hint(err, "it follows from where the virtual GUID is bound, or was last");
	return -EBUSY;
}

int vhca_osm_check_follow(const struct vhca_osm_table *t, const struct vhca_osm_binding *b,
			  const struct vhca_osm_relocation *relocation,
			  const struct vhca_osm_lid_move *move, struct vhca_error *err)
{
	int r;

	if (relocation->lid_policy != VHCA_OSM_LID_FOLLOWS || !move->changes)
		return 0;
	r = check_was_there(t, b, relocation, err);
	if (r == 0)
		r = check_alone(t, b->vguid, relocation->from_port, err);
	return r < 0 ? r : check_alone(t, b->vguid, b->port_guid, err);
}
