// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>

#include "pkey/mlx4_int.h"

int vhca_mlx4_fail(const struct vhca_identity_at *at, uint8_t port, int r, struct vhca_error *err,
		   const char *what)
{
	return vhca_error_set(err, VHCA_ERR_DEVICE, "identity_failed", -r, "%s VF %u port %u: %s",
			      VHCA_BDF_STR(at->pf), at->vf_index, port, what);
}

static int open_error(const struct vhca_identity_at *at, int r, struct vhca_error *err)
{
	const char *pf = VHCA_BDF_STR(at->pf);

	switch (r) {
	case -ENOENT:
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "ibdev_renamed", ENOENT,
				      "%s: has no RDMA device '%s' (now)", pf, at->ibdev);
	case -EAGAIN:
		(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "iov_not_ready", EAGAIN,
				     "%s: %s has no iov directory", pf, at->ibdev);
		vhca_error_hint(err,
				"mlx4_ib creates it shortly after the device; it never comes on an "
				"adapter without VFs");
		return r;
	case -ENXIO:
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "vf_not_in_iov", ENXIO,
				      "%s: the iov directory of %s has no VF %u on port %u", pf,
				      at->ibdev, at->vf_index, at->port);
	default:
		return vhca_error_set(err, VHCA_ERR_DEVICE, "iov_unreadable", -r,
				      "%s: read the iov directory of %s", pf, at->ibdev);
	}
}

int vhca_mlx4_open_at(const struct vhca_identity_at *at, bool writable, struct vhca_mlx4_fn *ret,
		      struct vhca_error *err)
{
	int r;

	if (at->port < 1 || at->port > at->n_ports || at->n_ports > VHCA_MLX4_PORTS)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_port", EINVAL,
				      "%s: has no port %u", VHCA_BDF_STR(at->pf), at->port);
	r = vhca_mlx4_open(at, writable, ret);
	return r < 0 ? open_error(at, r, err) : 0;
}
