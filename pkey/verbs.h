/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_VERBS_H
#define VHCA_PKEY_VERBS_H
/*
 * What we need of libibverbs, with negative errnos: one opened RDMA device, its port queries and
 * its async events. The only file pair that knows verbs.h; tests of the port watch bring their own
 * implementation. Nothing here creates a QP or registers memory.
 */
#include "pkey/ports.h"

struct vhca_verbs;

/*
 * Opens the device of this name; needs its provider plugin (package ibverbs-providers). -ENODEV if
 * there is none, also when it was renamed a moment ago. The event descriptor is non-blocking.
 * Blocks.
 */
int vhca_verbs_open(const char *ibdev, struct vhca_verbs **ret);
struct vhca_verbs *vhca_verbs_close(struct vhca_verbs *verbs); /* accepts NULL; blocks */
uint8_t vhca_verbs_n_ports(const struct vhca_verbs *verbs);

/*
 * Asks driver and firmware: everything of *ret but pkeys[]; n_pkeys is the length of the table.
 * -EIO, -ENODEV: the device has gone. Blocks; may run beside vhca_verbs_next_event().
 */
int vhca_verbs_query(struct vhca_verbs *verbs, uint8_t port, struct vhca_port_state *ret);

enum vhca_verbs_event {
	VHCA_VERBS_NONE,       /* nothing waits */
	VHCA_VERBS_OTHER,      /* not about a port; ignored */
	VHCA_VERBS_PORT,       /* state, LID, SM or GID may have changed */
	VHCA_VERBS_PKEYS,      /* PKEY_CHANGE */
	VHCA_VERBS_REREGISTER, /* CLIENT_REREGISTER */
	VHCA_VERBS_FATAL,      /* the device has gone */
};
/* Readable when an event waits; owned by verbs. */
int vhca_verbs_fd(const struct vhca_verbs *verbs);
/* Takes one event, never blocks. *ret_port is valid for PORT, PKEYS and REREGISTER. */
int vhca_verbs_next_event(struct vhca_verbs *verbs, enum vhca_verbs_event *ret, uint8_t *ret_port);

#endif
