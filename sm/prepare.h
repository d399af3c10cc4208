/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_PREPARE_H
#define VHCA_SM_PREPARE_H
/* Hints to the SM that a move is coming: sent once, nobody waits for the answer. */
#include "common/http/client.h"
#include "sm/sm.h"

struct vhca_sm_prepares;

/* http is borrowed; at most max are under way. NULL: out of memory. */
struct vhca_sm_prepares *vhca_sm_prepares_new(struct vhca_http_multi *http, unsigned int max);
/* Gives up what is under way. Accepts NULL, returns NULL. */
struct vhca_sm_prepares *vhca_sm_prepares_free(struct vhca_sm_prepares *p);
/* Sends req (its body stays the caller's) to url; whatever comes of it is only logged. -EBUSY: too many under way. */
int vhca_sm_prepares_send(struct vhca_sm_prepares *p, const struct vhca_http_call_args *args,
			  uint64_t vguid);

#endif
