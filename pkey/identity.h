/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_IDENTITY_H
#define VHCA_PKEY_IDENTITY_H
/*
 * The identity of a VF: its port GUID and its virtual-to-physical P_Key map. A back end per HCA
 * family writes it to the hardware and reads it back. All calls block: on the PF's strand.
 *
 *   programmed  the GUID request and the P_Key map are written and read back equal
 *   granted     the SM has confirmed the GUID (mlx4: gids equals admin_guids); comes later by nature
 *
 * mlx5 has no P_Key map on the host and no sight of the grant: docs/design/0003-mlx5.md.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/sysfs/sysfs.h"

#define VHCA_PKEY_TABLE_MAX 128
#define VHCA_VF_PKEYS_MAX \
	127 /* keys one VF may have: all that a port can (the driver keeps one entry) */
#define VHCA_PKEY_UNMAPPED (-1)

struct vhca_identity {
	uint64_t guid;
	uint8_t n_pkeys;
	/* wanted value at virtual index i; all further indices are none */
	uint16_t pkeys[VHCA_VF_PKEYS_MAX];
};

/* Whether the VF's link is up: the kernel's IFLA_VF_LINK_STATE_*, in its order. */
enum vhca_link_policy {
	VHCA_LINK_AUTO, /* follows the physical port */
	VHCA_LINK_ENABLE,
	VHCA_LINK_DOWN,
};
const char *vhca_link_policy_to_string(enum vhca_link_policy policy); /* "auto" */

/* What the hardware says now, for one VF on one port. */
struct vhca_identity_state {
	/*
	 * mlx4: admin_guids; mlx5: the port GUID. VHCA_GUID_ALL1 = withdrawn (mlx5: with the node
	 * GUID, and the link is down)
	 */
	uint64_t requested;
	/*
	 * mlx4: low 64 bits of gids, 0 while not granted; mlx5: the port GUID while the link may be
	 * up
	 */
	uint64_t granted;
	uint16_t gid_index; /* mlx4: slave number = index in the port's GUID table; mlx5: 0 */
	bool sm_pkeys;	    /* P_Keys exist only at the SM (mlx5): n_virtual is 0 */
	uint64_t node_guid; /* mlx5, as is policy */
	enum vhca_link_policy policy;
	uint16_t n_virtual;		  /* length of the virtual table */
	int16_t map[VHCA_PKEY_TABLE_MAX]; /* virtual index -> physical index, VHCA_PKEY_UNMAPPED */
	/* the P_Key behind map[i] in the port's table now; 0 = none or empty slot */
	uint16_t value[VHCA_PKEY_TABLE_MAX];
	/* On the VF's other ports, where nothing may be: map entries, GUIDs. */
	uint16_t other_maps, other_guids;
	/* mlx4: ports, its own or not, on which the VF's next driver may be an SM. */
	uint16_t smi_ports;
	/*
	 * program: virtual indices at which it found another key than the wanted one. Counts even
	 * if it fails.
	 */
	uint16_t foreign;
};

struct vhca_rtnl;

/*
 * What calls for VFs of one adapter, one after another, share: attributes that stay open between
 * them (mlx4: the port's P_Key table, 127 files a port), and for some milliseconds where each key
 * was, as a guess that is proven. Not for two threads at once. What a reload of the driver has made
 * stale is noticed and opened anew. new: NULL = out of memory.
 */
struct vhca_identity_kept;
struct vhca_identity_kept *vhca_identity_kept_new(struct vhca_bdf pf);
struct vhca_identity_kept *vhca_identity_kept_free(struct vhca_identity_kept *kept);

/* Where a VF lives; borrowed strings. */
struct vhca_identity_at {
	struct vhca_sysfs *sys;
	struct vhca_identity_kept *kept; /* of this pf; NULL = nothing is shared */
	const struct vhca_rtnl *rtnl;	 /* mlx5; NULL = the kernel's (pkey/rtnl.h) */
	struct vhca_bdf pf;
	/* name at the time of the call; -ENOENT if it was renamed: rescan and retry */
	const char *ibdev;
	uint16_t vf_index;
	uint8_t port;	 /* the port that gets the identity, 1-based */
	uint8_t n_ports; /* the others are kept withdrawn and unmapped */
};

struct vhca_identity_ops {
	const char *name; /* "mlx4" */
	/* the host maps P_Keys per VF (mlx4); else the SM does, by the vGUID (mlx5) */
	bool host_pkey_map;
	bool in_place;	  /* an identity may come while the guest's driver is up: it takes notice */
	bool sees_grant;  /* the host can tell whether the SM has granted the GUID */
	bool link_policy; /* each VF has a link that can be taken down, and a node GUID */

	int (*read)(const struct vhca_identity_at *at, struct vhca_identity_state *ret,
		    struct vhca_error *err);
	/*
	 * Brings the VF to `want`, writing only what differs; unmaps before it maps, the default
	 * partition only if asked for. A key that is not in the port's table stays none:
	 * *ret_missing counts those (not an error). A virtual index whose key moved to another
	 * physical index goes through none. Reads everything back: a difference is VHCA_ERR_DEVICE
	 * "readback_differs". mlx5: a link that is down stays so as long as there is no partition.
	 */
	int (*program)(const struct vhca_identity_at *at, const struct vhca_identity *want,
		       unsigned int *ret_missing, struct vhca_identity_state *ret,
		       struct vhca_error *err);
	/*
	 * Unmaps what leads to another key than the one that `want` has there, on every port, and
	 * nothing else; where `want` is nobody's identity, all. Quick: no guest is waited for.
	 * ret->foreign counts what it found, also if it fails. NULL: there is no map.
	 */
	int (*unmap)(const struct vhca_identity_at *at, const struct vhca_identity *want,
		     struct vhca_identity_state *ret, struct vhca_error *err);
	/* P_Key map all none, GUID withdrawn, no right to be an SM, on every port; read back. */
	int (*scrub)(const struct vhca_identity_at *at, struct vhca_error *err);
	/*
	 * Asks the SM again: for a GUID that is not granted (the one allowed write that changes
	 * nothing), or to take back what the port holds for a VF that asks for nothing. NULL:
	 * nobody can be asked.
	 */
	int (*kick)(const struct vhca_identity_at *at, struct vhca_error *err);
	/*
	 * Lets the SM choose a GUID for a VF that has none, and waits a moment for it; the choice
	 * stays requested. NULL: no such way. VHCA_ERR_UNAVAILABLE "no_guid_from_sm": asked, not
	 * answered yet.
	 */
	int (*choose)(const struct vhca_identity_at *at, uint64_t *ret, struct vhca_error *err);
};

extern const struct vhca_identity_ops vhca_identity_mlx4, vhca_identity_mlx5;

/* True if the VF shows nobody's identity: no key mapped, GUIDs withdrawn, on no port, link (where
 * it has one) down; and it may be an SM on none. */
bool vhca_identity_is_clean(const struct vhca_identity_state *state);
/*
 * True if state shows exactly what `want` asks for, apart from keys that the port does not have
 * (counted in *ret_missing).
 */
bool vhca_identity_matches(const struct vhca_identity_state *state,
			   const struct vhca_identity *want, unsigned int *ret_missing);
/*
 * The first virtual index whose P_Key is not the one that `want` has there (none counts as a
 * difference), or -1. Nothing differs where the host sees no map (n_virtual 0).
 */
int vhca_identity_difference(const struct vhca_identity_state *state,
			     const struct vhca_identity *want);
/*
 * Both in words, where they differ: "GUID 0x2 instead of 0x1, P_Key index 0 shows none instead of
 * 0x8001"; "" if nothing does.
 */
#define VHCA_IDENTITY_TEXT_MAX 224
void vhca_identity_describe(const struct vhca_identity_state *state,
			    const struct vhca_identity *want,
			    char buf[static VHCA_IDENTITY_TEXT_MAX]);
/*
 * Virtual index i is mapped to anything but the key that `want` has there; an emptied slot counts:
 * whatever comes next stands in it.
 */
bool vhca_identity_is_foreign(const struct vhca_identity_state *state,
			      const struct vhca_identity *want, unsigned int i);
/* How many such indices there are, on all ports. */
uint16_t vhca_identity_foreign(const struct vhca_identity_state *state,
			       const struct vhca_identity *want);

#endif
