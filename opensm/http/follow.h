/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_FOLLOW_H
#define VHCA_OPENSM_HTTP_FOLLOW_H
/*
 * May the LID of a whole port go with one vGUID? What keeps any LID where it is, the mover knows.
 */
#include "opensm/bindings/table.h"
#include "opensm/http/json.h"
#include "opensm/lids/mover.h"

/*
 * b is what the relocation makes, move its LID's with the outcome of vhca_osm_mover_check() or
 * of its plan, which have compared the LID's port with `from`. 0 if there is nothing to move.
 * Errors: lid_elsewhere, the vGUID was not there; lid_shared, another vGUID is bound to one of
 * the two ports.
 */
int vhca_osm_check_follow(const struct vhca_osm_table *t, const struct vhca_osm_binding *b,
			  const struct vhca_osm_relocation *relocation,
			  const struct vhca_osm_lid_move *move, struct vhca_error *err);

#endif
