/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_MLX4_KEYS_H
#define VHCA_PKEY_MLX4_KEYS_H
/*
 * The physical P_Key table of a port, as far as one call needs it: on a card each entry is a
 * firmware command, so none is read without need, or twice without a reason. Errors: negative errno
 * of the sysfs files.
 */
#include "pkey/mlx4_tree.h"

struct vhca_mlx4_keys {
	struct vhca_mlx4_fn
		*fn; /* borrowed; this and the port are set by the owner, the rest begins as 0 */
	uint8_t port;
	unsigned int n;	   /* entries; 0 = not counted yet */
	unsigned int next; /* where the next search begins */
	bool looked_at[VHCA_PKEY_TABLE_MAX];
	uint16_t value[VHCA_PKEY_TABLE_MAX];
};

/*
 * Makes an entry known; one behind the end is no error. again: though it is known, it may have
 * changed.
 */
int vhca_mlx4_keys_look(struct vhca_mlx4_keys *k, unsigned int physical);
int vhca_mlx4_keys_look_again(struct vhca_mlx4_keys *k, unsigned int physical);
/* Of an entry that was looked at; 0 = an empty one, or none (VHCA_PKEY_UNMAPPED). */
uint16_t vhca_mlx4_keys_at(const struct vhca_mlx4_keys *k, int16_t physical);
/*
 * Where a key is (any such place); *ret: VHCA_PKEY_UNMAPPED = nowhere, after a look at each entry.
 * Where it is may be a guess: what the last VF's proof has read a moment ago says so. Whoever
 * writes the index into a map proves it afterwards, with look_again().
 */
int vhca_mlx4_keys_find(struct vhca_mlx4_keys *k, uint16_t pkey, int16_t *ret);

#endif
