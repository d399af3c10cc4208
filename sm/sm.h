/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_SM_H
#define VHCA_SM_SM_H
/*
 * What the subnet manager must know, as states (never deltas), and the back ends that can carry it.
 *
 *   back end   carries                         fenced
 *   vhcasm     our OpenSM plugin, libvhcasm(7) yes: it refuses lower epochs
 *   none       nothing (keys are static)       no
 */
#include <stdbool.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "common/base/error.h"
#include "common/base/text.h"

#define VHCA_SM_URLS_MAX       8   /* of one SM: its master and those that may become it */
#define VHCA_SM_PKEYS_MAX      127 /* all that one VF may have */
#define VHCA_SM_PORT_PKEYS_MAX 128 /* the longest P_Key table of a port */

/* One vGUID and where it is. bound = false: it was withdrawn from that place. */
struct vhca_sm_binding {
	uint64_t vguid;
	uint64_t epoch;
	bool bound;
	uint64_t port_guid;
	uint16_t gid_index;
	uint16_t lid; /* the port's LID as the agent sees it; 0 = unknown */
	uint8_t n_pkeys;
	uint16_t pkeys[VHCA_SM_PKEYS_MAX];

	/* It came from another port with migration move_id; see vhca_sm_binding_is_move(). */
	bool moved;
	struct vhca_uuid move_id;
	uint64_t from_port_guid;
	uint16_t from_gid_index;
	uint16_t from_lid; /* 0 = unknown */
	/*
	 * Not 0: this vport of the HCA shows the vGUID as its own GUID by now, and the vGUID's LID
	 * shall be there.
	 */
	uint16_t vport;
	/* from_lid, the LID of the port that it came from, shall be at this one. */
	bool follow_lid;
	/*
	 * Bound: the vGUID shall have a LID of its own, by the ways to the hypervisor with this
	 * port. Withdrawing frees that LID, whoever asked for it, and makes the vGUID nobody's,
	 * unless keep_lid: then both stay as they are, for the report of its next owner.
	 */
	bool dynamic_lid, keep_lid;
	/* Bound: its guest runs with it there, so that the party before has no claim to it. */
	bool settled;
};

/*
 * True if the report is the commit of a move: bound, moved, and it is known where from. Any other
 * is a plain binding, which the SM fences and evicts for just the same.
 */
bool vhca_sm_binding_is_move(const struct vhca_sm_binding *b);

/* The keys that a port needs beside those of its bindings; none is a declaration too. */
struct vhca_sm_members {
	uint64_t port_guid;
	uint8_t n_pkeys;
	uint16_t pkeys[VHCA_SM_PORT_PKEYS_MAX];
};

/* What the SM answered to a report. */
enum vhca_sm_answer {
	VHCA_SM_ACCEPTED, /* in effect, or will be without further reports */
	/* another owner is known, at this epoch or a higher one: the report is dropped for good */
	VHCA_SM_SUPERSEDED,
	VHCA_SM_REFUSED, /* wrong for ever (bad request, unknown partition): dropped, reason kept */
	VHCA_SM_RETRY,	 /* not reachable, not master, port not known yet: again later */
};

/*
 * The HTTP request that carries a report; fixed strings are inside. body is owned by the struct's
 * user.
 */
struct vhca_sm_request {
	char method[8];
	char path[112];
	struct json_object *body;
};

struct vhca_sm_ops {
	const char *name;
	bool fenced;	/* refuses lower epochs */
	bool sends;	/* false: reports are in effect at once, nothing leaves the host */
	bool members;	/* can put a port into partitions */
	bool no_vports; /* its SM is known to leave the ports of virtual HCAs (mlx5) down */
	int (*binding_request)(const struct vhca_sm_binding *b, struct vhca_sm_request *ret);
	enum vhca_sm_answer (*binding_answer)(int status, struct json_object *body,
					      const struct vhca_error *err);

	/* NULL unless it sends. Requests of a move want vhca_sm_binding_is_move(). */
	int (*commit_request)(const struct vhca_sm_binding *b, struct vhca_sm_request *ret);
	enum vhca_sm_answer (*commit_answer)(int status, struct json_object *body);
	/* Of a move with follow_lid: without that it may be taken. */
	bool (*lid_refused)(int status, struct json_object *body);
	/* Of the same: whether it is the LID that is denied, the answer to the rest tells. */
	bool (*lid_denied)(int status, struct json_object *body);
	/* An SM that has bindings only says so; whoever else answers at its URL does not. */
	bool (*commit_unknown)(int status, struct json_object *body);
	/* What a commit would be answered; nothing changes. */
	int (*prepare_request)(const struct vhca_sm_binding *b, struct vhca_sm_request *ret);
	enum vhca_sm_answer (*prepare_answer)(int status, struct json_object *body);
	int (*members_request)(const struct vhca_sm_members *m, struct vhca_sm_request *ret);
	enum vhca_sm_answer (*members_answer)(int status, struct json_object *body);
	/* The SM has lost its state and asks for all of it. */
	bool (*wants_snapshot)(int status, struct json_object *body);
};
extern const struct vhca_sm_ops vhca_sm_vhcasm, vhca_sm_none;
const struct vhca_sm_ops *vhca_sm_find(const char *name); /* NULL if unknown */

#endif
