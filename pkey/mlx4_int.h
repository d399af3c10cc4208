/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_MLX4_INT_H
#define VHCA_PKEY_MLX4_INT_H
/* What the parts of the mlx4 back end share. */
#include "pkey/mlx4_tree.h"

/* ---- mlx4_error.c: vhca_mlx4_open() with its errors in words, and any other that fails ---- */
int vhca_mlx4_open_at(const struct vhca_identity_at *at, bool writable, struct vhca_mlx4_fn *ret,
		      struct vhca_error *err);
int vhca_mlx4_fail(const struct vhca_identity_at *at, uint8_t port, int r, struct vhca_error *err,
		   const char *what);

/* ---- mlx4_grant.c: what is asked of the SM (struct vhca_identity_ops) ---- */
int vhca_mlx4_kick(const struct vhca_identity_at *at, struct vhca_error *err);
int vhca_mlx4_choose(const struct vhca_identity_at *at, uint64_t *ret, struct vhca_error *err);

#endif
