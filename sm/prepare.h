/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_PREPARE_H
#define VHCA_SM_PREPARE_H
/* Hints to the SM that a move is coming: sent once, nobody waits for the answer. */
#include "sm/line.h"

struct vhca_sm_prepares;

/* line is borrowed; at most max are under way. NULL: out of memory. */
struct vhca_sm_prepares *vhca_sm_prepares_new(const struct vhca_sm_line *line, unsigned int max);
/* Gives up what is under way. Accepts NULL, returns NULL. */
struct vhca_sm_prepares *vhca_sm_prepares_free(struct vhca_sm_prepares *all);
/*
 * Sends req (it stays the caller's), which is about vguid; whatever comes of it is only logged.
 * -EBUSY: too many under way.
 */
int vhca_sm_prepares_send(struct vhca_sm_prepares *all, const struct vhca_sm_request *req,
			  uint64_t vguid);

#endif
