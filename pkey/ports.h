/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_PORTS_H
#define VHCA_PKEY_PORTS_H
/*
 * Watching the physical ports of a PF with libibverbs: async events on a descriptor in the loop,
 * queries on a strand, plus a slow poll because mlx4 and mlx5 never raise SM_CHANGE. Events have no
 * history: state is queried after every open.
 */
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/loop/loop.h"
#include "common/loop/strand.h"
#include "common/sysfs/sysfs.h"

enum { VHCA_PORT_DOWN = 1, VHCA_PORT_ACTIVE = 4 };
#define VHCA_LID_PERMISSIVE 0xffff /* 65535: no LID was assigned, on a port of a virtual HCA */

struct vhca_port_state {
	uint8_t port;	    /* 1-based */
	uint8_t state;	    /* IB: 1 DOWN 2 INIT 3 ARMED 4 ACTIVE */
	uint8_t phys_state; /* 5 LinkUp */
	bool is_ib;	    /* link layer InfiniBand */
	uint16_t lid, sm_lid;
	uint64_t port_guid; /* low half of GID 0 */
	uint64_t gid_prefix;
	uint16_t n_pkeys;
	uint16_t pkeys[128]; /* physical table as verbs/sysfs show it; 0 = empty */
};
const char *vhca_port_state_to_string(uint8_t state); /* "ACTIVE" */

enum vhca_port_event {
	/* *state differs from what was reported before (also the first report) */
	VHCA_PORT_CHANGED,
	VHCA_PORT_PKEYS,      /* the SM changed the P_Key table */
	VHCA_PORT_REREGISTER, /* CLIENT_REREGISTER: subscriptions and bindings must be sent again */
	/*
	 * device fatal or removed; nothing more comes. The owner closes, and opens again on `add`
	 */
	VHCA_PORT_GONE,
};
/* On the state thread. state is borrowed and is NULL for GONE. */
typedef void (*vhca_port_fn)(void *arg, enum vhca_port_event event,
			     const struct vhca_port_state *state);

struct vhca_ports;
/*
 * Opens the RDMA device of the PF (found by PCI address) on the strand; the first report comes as
 * CHANGED.
 */
int vhca_ports_open(struct vhca_loop *loop, struct vhca_strand *strand, struct vhca_sysfs *sys,
		    struct vhca_bdf pf, uint32_t poll_ms, vhca_port_fn fn, void *arg,
		    struct vhca_ports **ret, struct vhca_error *err);
void vhca_ports_poll(struct vhca_ports *ports); /* query now */
struct vhca_ports *vhca_ports_close(struct vhca_ports *ports);

#endif
