/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_SM_H
#define VHCA_SM_SM_H
/*
 * What the subnet manager must know, as states (never deltas), and the back ends that can carry it.
 *
 *   back end   carries                         fenced
 *   vhcasm     our OpenSM plugin, docs/sm-api  yes: it refuses lower epochs
 *   none       nothing (keys are static)       no
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "common/base/error.h"

#define VHCA_SM_PKEYS_MAX 32

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
};

/* What the SM answered to a binding. */
enum vhca_sm_answer {
	VHCA_SM_ACCEPTED,   /* in effect, or will be without further reports */
	VHCA_SM_SUPERSEDED, /* a higher epoch is known: the report is dropped for good */
	VHCA_SM_REFUSED, /* wrong for ever (bad request, unknown partition): dropped, reason kept */
	VHCA_SM_RETRY,	 /* not reachable, not master, port not known yet: again later */
};

/* The HTTP request that carries a report; fixed strings are inside. body is owned by the struct's user. */
struct vhca_sm_request {
	char method[8];
	char path[96];
	struct json_object *body;
};

struct vhca_sm_ops {
	const char *name;
	bool fenced;  /* refuses lower epochs */
	bool sends;   /* false: reports are in effect at once, nothing leaves the host */
	bool members; /* can put a port into partitions */
	int (*binding_request)(const struct vhca_sm_binding *b, struct vhca_sm_request *ret);
	enum vhca_sm_answer (*binding_answer)(int status, struct json_object *body,
					      const struct vhca_error *err);
};
extern const struct vhca_sm_ops vhca_sm_vhcasm, vhca_sm_none;
const struct vhca_sm_ops *vhca_sm_find(const char *name); /* NULL if unknown */

#endif
