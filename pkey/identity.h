/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_IDENTITY_H
#define VHCA_PKEY_IDENTITY_H
/*
 * The identity of a VF: its port GUID and its virtual-to-physical P_Key map. A back end per HCA family writes it to the
 * hardware and reads it back. All calls block: on the PF's strand.
 *
 *   programmed  the GUID request and the P_Key map are written and read back equal
 *   granted     the SM has confirmed the GUID (mlx4: gids equals admin_guids); comes later by nature
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/sysfs/sysfs.h"

#define VHCA_PKEY_TABLE_MAX 128
#define VHCA_VF_PKEYS_MAX \
	32 /* keys one VF may ask for; far above any known use, far below the table */
#define VHCA_PKEY_UNMAPPED (-1)

struct vhca_identity {
	uint64_t guid;
	uint8_t n_pkeys;
	uint16_t pkeys
		[VHCA_VF_PKEYS_MAX]; /* wanted value at virtual index i; all further indices are none */
};

/* What the hardware says now, for one VF on one port. */
struct vhca_identity_state {
	uint64_t requested;		  /* mlx4: admin_guids; VHCA_GUID_ALL1 = withdrawn */
	uint64_t granted;		  /* low 64 bits of gids; 0 while not granted */
	uint16_t gid_index;		  /* mlx4: slave number = index in the port's GUID table */
	uint16_t n_virtual;		  /* length of the virtual table */
	int16_t map[VHCA_PKEY_TABLE_MAX]; /* virtual index -> physical index, VHCA_PKEY_UNMAPPED */
	uint16_t value
		[VHCA_PKEY_TABLE_MAX]; /* the P_Key behind map[i] in the port's table now; 0 = none or empty slot */
};

/* Where a VF lives; borrowed strings. */
struct vhca_identity_at {
	struct vhca_sysfs *sys;
	struct vhca_bdf pf;
	const char *
		ibdev; /* name at the time of the call; -ENOENT if it was renamed: rescan and retry */
	uint16_t vf_index;
	uint8_t port;	 /* the port that gets the identity, 1-based */
	uint8_t n_ports; /* the others are kept withdrawn and unmapped */
};

struct vhca_identity_ops {
	const char *name; /* "mlx4" */
	bool host_pkey_map; /* the host maps P_Keys per VF (mlx4); else the SM does, by the vGUID (mlx5) */

	int (*read)(const struct vhca_identity_at *at, struct vhca_identity_state *ret,
		    struct vhca_error *err);
	/*
	 * Brings the VF to `want`, writing only what differs; unmaps before it maps, the default partition only if asked for.
	 * A key that is not in the port's table stays none: *ret_missing counts those (not an error). A virtual index whose key moved
	 * to another physical index goes through none. Reads everything back: a difference is VHCA_ERR_DEVICE "readback_differs".
	 */
	int (*program)(const struct vhca_identity_at *at, const struct vhca_identity *want,
		       unsigned int *ret_missing, struct vhca_identity_state *ret,
		       struct vhca_error *err);
	/* P_Key map all none, GUID withdrawn, on every port; read back. */
	int (*scrub)(const struct vhca_identity_at *at, struct vhca_error *err);
	/* Asks again for a GUID that is not granted (the one allowed write that changes nothing). */
	int (*kick)(const struct vhca_identity_at *at, struct vhca_error *err);
	/* The port's physical P_Key table: n entries, 0 = empty. */
	int (*port_pkeys)(const struct vhca_identity_at *at,
			  uint16_t ret[static VHCA_PKEY_TABLE_MAX], unsigned int *ret_n,
			  struct vhca_error *err);
};

extern const struct vhca_identity_ops vhca_identity_mlx4;

/* True if state shows exactly what `want` asks for, apart from keys that the port does not have (counted in *ret_missing). */
bool vhca_identity_matches(const struct vhca_identity_state *state,
			   const struct vhca_identity *want, unsigned int *ret_missing);
/* The first virtual index whose P_Key is not the one that `want` has there (none counts as a difference), or -1. Nothing differs where the
 * host sees no map (n_virtual 0). */
int vhca_identity_difference(const struct vhca_identity_state *state,
			     const struct vhca_identity *want);
/* Physical index of the 16-bit value (membership bit included) in a table of n, or VHCA_PKEY_UNMAPPED. */
int vhca_pkey_find(const uint16_t *table, unsigned int n, uint16_t pkey);

#endif
