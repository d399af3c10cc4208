/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_PREPARE_H
#define VHCA_SM_PREPARE_H
/*
 * Questions to the SM: what would it answer to this report? They change nothing there, are sent
 * once, and nothing waits for them.
 */
#include "sm/line.h"
#include "sm/outbox.h"

struct vhca_sm_prepares;

/*
 * line and ops are borrowed; at most max are under way. fn(arg, ...) hears the answers; it must not
 * free them. NULL: out of memory.
 */
struct vhca_sm_prepares *vhca_sm_prepares_new(const struct vhca_sm_line *line,
					      const struct vhca_sm_ops *ops, unsigned int max,
					      vhca_outbox_fn fn, void *arg);
/* Gives up what is under way. Accepts NULL, returns NULL. */
struct vhca_sm_prepares *vhca_sm_prepares_free(struct vhca_sm_prepares *all);
/*
 * Asks about binding, which is a move, and shows its proof (sm/proof.h; borrowed, NULL = none).
 * -EBUSY: too many are under way.
 */
int vhca_sm_prepares_send(struct vhca_sm_prepares *all, const struct vhca_sm_binding *binding,
			  struct json_object *proof);

#endif
