/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who waits for what becomes of a claim. */
#include <errno.h>
#include <stdlib.h>

#include "agent/vf/work.h"

struct waiter_call {
	vhca_waiter_fn fn;
	void *arg;
	struct vhca_error err;
};

static void on_waiter_call(void *arg)
{
	struct waiter_call *call = arg;

	call->fn(call->arg, NULL, call->err.kind ? &call->err : NULL);
}

/* An answer that is known at once is still given from the loop, as the contract says. */
void engine_answer_later(struct vhca_engine *e, vhca_waiter_fn fn, void *arg,
			 const struct vhca_error *err)
{
	struct waiter_call call = {.fn = fn, .arg = arg, .err = *err};

	vhca_loop_post_copy(e->args.loop, on_waiter_call, &call, sizeof(call));
}

int engine_add_waiter(struct vhca_claim *claim, enum vhca_vf_state until, vhca_waiter_fn fn,
		      void *arg)
{
	struct vhca_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct vhca_waiter){.until = until, .fn = fn, .arg = arg};
	STAILQ_INSERT_TAIL(&claim->waiters, w, link);
	return 0;
}

/*
 * A claim that ends answers everybody: who waited for the end is content, the others hear why it
 * did not come to what they wanted.
 */
static void tell_one(struct vhca_claim *claim, struct vhca_waiter *w, enum vhca_vf_state state,
		     const struct vhca_error *err)
{
	struct vhca_error ended;

	if (err &&
	    !(state == VHCA_VF_FREE && w->until == VHCA_VF_FREE && vhca_claim_is_ending(claim))) {
		w->fn(w->arg, NULL, err);
	} else if (state == w->until || (err && w->until == VHCA_VF_FREE)) {
		w->fn(w->arg, state == VHCA_VF_FREE ? NULL : claim, NULL);
	} else {
		vhca_error_set(&ended, VHCA_ERR_CONFLICT, "released", 0,
			       "the claim of %s was released before it was done", claim->name);
		w->fn(w->arg, NULL, &ended);
	}
	free(w);
}

/* Tells those who wait for `state`, or all; not those whom one of them adds meanwhile. */
static void tell(struct vhca_claim *claim, enum vhca_vf_state state, bool all,
		 const struct vhca_error *err)
{
	STAILQ_HEAD(, vhca_waiter) told = STAILQ_HEAD_INITIALIZER(told);
	struct vhca_waiter *w, *next;

	for (w = STAILQ_FIRST(&claim->waiters); w; w = next) {
		next = STAILQ_NEXT(w, link);
		if (!all && w->until != state)
			continue;
		STAILQ_REMOVE(&claim->waiters, w, vhca_waiter, link);
		STAILQ_INSERT_TAIL(&told, w, link);
	}
	while ((w = STAILQ_FIRST(&told))) {
		STAILQ_REMOVE_HEAD(&told, link);
		tell_one(claim, w, state, err);
	}
}

void engine_tell(struct vhca_engine *e, struct vhca_claim *claim, enum vhca_vf_state state,
		 const struct vhca_error *err)
{
	(void)e;
	tell(claim, state, err || state == VHCA_VF_FREE, err);
}

void engine_refuse(struct vhca_claim *claim, enum vhca_vf_state until, const struct vhca_error *err)
{
	tell(claim, until, false, err);
}
