/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_PLAN_H
#define VHCA_OPENSM_LIDS_PLAN_H
/*
 * Which entries of which switches change when two end ports exchange their LIDs, or a LID takes the
 * ways of another one. No path is computed: a LID takes over entries that led to its new place
 * before.
 *
 *  deterministic  On every switch the two LIDs exchange their entries. All paths and their balance
 *                 stay as the routing engine made them.
 *  skyline        A switch keeps its entry if that still lies on a shortest way to the LID's new
 *                 place. Inside one leaf only the leaf switch changes. Across leaves only where
 *                 that can close no credit loop (channels.h), else deterministic.
 *  auto           Skyline inside a leaf, else deterministic. Hypervisors that are switches (their
 *                 cables lead to one other switch) are inside a leaf together if that is the same
 *                 one.
 */
#include "opensm/lids/channels.h"
#include "opensm/lids/fabric.h"
#include "opensm/lids/switch_set.h"

enum vhca_osm_move_mode { VHCA_OSM_AUTO, VHCA_OSM_DETERMINISTIC, VHCA_OSM_SKYLINE };

struct vhca_osm_swap {
	uint16_t lid[2]; /* lid[i] is at at[i], and will be at the other place */
	struct vhca_osm_place at[2];
	enum vhca_osm_move_mode mode;
};

struct vhca_osm_lft_change {
	uint32_t sw;
	uint8_t port[2]; /* new exit ports of lid[0] and lid[1] */
};

/* All zero: none. */
struct vhca_osm_lid_plan {
	enum vhca_osm_move_mode mode; /* the one taken: never auto */
	size_t n;		      /* switches that change */
	size_t n_blocks;	      /* their table blocks = SMPs */
	struct vhca_osm_lft_change *changes;
	struct vhca_osm_switch_set switches; /* the same n by GUID: they outlive a fabric's index */
	uint64_t tables;		     /* the caller's: which tables it was made on */
	uint64_t computations;		     /* ...and after how many computations of ways */
};

/*
 * Plans into ret, which vhca_osm_lid_plan_done() releases. A skyline plan whose ways would not all
 * arrive (a table that was not made of shortest ways), or might close a loop, becomes a
 * deterministic one. channels: of these tables. 0 or -ENOMEM.
 */
int vhca_osm_lid_plan(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap,
		      struct vhca_osm_channels *channels, struct vhca_osm_lid_plan *ret);
void vhca_osm_lid_plan_done(struct vhca_osm_lid_plan *plan);

/*
 * After the routing engine has computed all tables anew: the exit ports that a LID moved by a
 * skyline plan gets. A switch keeps the one it has (`now`) if that lies on a shortest way to where
 * the LID is, else it takes the engine's. So nothing is sent for a LID whose surroundings did not
 * change, and what did change corrects itself. channels: numbered by the engine's tables. ret: f->n
 * ports. 1; 0 if that would not arrive from everywhere, or might close a credit loop: then ret is
 * the engine's table; -ENOMEM.
 */
int vhca_osm_lid_keep(const struct vhca_osm_fabric *f, uint16_t lid,
		      const struct vhca_osm_goal *goal, struct vhca_osm_channels *channels,
		      const uint8_t *now, uint8_t *ret);

/* A LID to which the ways are those to another one, up to the switch that is its hypervisor. */
struct vhca_osm_copy {
	uint16_t lid, from; /* from 0: nothing leads to it */
	uint32_t sw;	    /* the hypervisor */
	uint8_t own;	    /* its port for this LID; 0 = the same as for the other one */
};

/* The exit ports that it gets: f->n ports. */
void vhca_osm_lid_copy(const struct vhca_osm_fabric *f, const struct vhca_osm_copy *copy,
		       uint8_t *ret);
/* What has to change for that, as vhca_osm_lid_plan(): both ports of a change are that of `lid`. */
int vhca_osm_lid_copy_plan(const struct vhca_osm_fabric *f, const struct vhca_osm_copy *copy,
			   struct vhca_osm_lid_plan *ret);

/* "auto", "deterministic", "skyline". Never NULL. */
const char *vhca_osm_move_mode_to_string(enum vhca_osm_move_mode mode);
/* The reverse; -EINVAL. */
int vhca_osm_move_mode_parse(const char *text, enum vhca_osm_move_mode *ret);

#endif
