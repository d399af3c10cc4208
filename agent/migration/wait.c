/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who waits for a state of a migration, and answers that come from the loop. */
#include <errno.h>
#include <stdlib.h>

#include "agent/migration/list.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"

const struct vhca_error mig_too_late = {
	.kind = VHCA_ERR_CONFLICT,
	.code = VHCA_CODE_TOO_LATE,
	.msg = "the domain has arrived",
};

int mig_await(struct vhca_mig *m, enum vhca_mig_state until, vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_mig_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct vhca_mig_waiter){.until = until, .fn = fn, .arg = arg};
	STAILQ_INSERT_TAIL(&m->waiters, w, link);
	return 0;
}

/*
 * The states of a side that goes well are in ascending order; a state that ends otherwise fails who
 * waited for less.
 */
static bool satisfied(const struct vhca_mig *m, const struct vhca_mig_waiter *w)
{
	if (w->until == VHCA_MIG_ENDED)
		return m->state == VHCA_MIG_ENDED;
	return m->state >= w->until && m->state != VHCA_MIG_ENDING && m->state != VHCA_MIG_ENDED &&
	       m->state != VHCA_MIG_FAILED;
}

static bool hopeless(const struct vhca_mig *m, const struct vhca_mig_waiter *w)
{
	if (w->until == VHCA_MIG_ENDED)
		return m->state == VHCA_MIG_ATTACHING || m->state == VHCA_MIG_DONE;
	return m->state == VHCA_MIG_ENDING || m->state == VHCA_MIG_ENDED;
}

bool mig_owes_answer(const struct vhca_mig *m)
{
	const struct vhca_mig_waiter *w;

	STAILQ_FOREACH (w, &m->waiters, link)
		if (satisfied(m, w) || hopeless(m, w))
			return true;
	return false;
}

void mig_tell(struct vhca_mig *m)
{
	STAILQ_HEAD(, vhca_mig_waiter) told = STAILQ_HEAD_INITIALIZER(told);
	struct vhca_mig_waiter *w, *next;

	for (w = STAILQ_FIRST(&m->waiters); w; w = next) {
		next = STAILQ_NEXT(w, link);
		if (!satisfied(m, w) && !hopeless(m, w))
			continue;
		STAILQ_REMOVE(&m->waiters, w, vhca_mig_waiter, link);
		STAILQ_INSERT_TAIL(&told, w, link);
	}
	while ((w = STAILQ_FIRST(&told))) {
		STAILQ_REMOVE_HEAD(&told, link);
		w->fn(w->arg, m,
		      !hopeless(m, w)		   ? NULL
		      : w->until == VHCA_MIG_ENDED ? &mig_too_late
						   : &m->failure);
		free(w);
	}
}

struct answer {
	vhca_mig_waiter_fn fn;
	void *arg;
	struct vhca_error err;
};

static void on_answer(void *arg)
{
	struct answer *a = arg;

	a->fn(a->arg, NULL, &a->err);
}

void mig_answer_later(struct vhca_migrations *ms, vhca_mig_waiter_fn fn, void *arg,
		      const struct vhca_error *err)
{
	struct answer a = {.fn = fn, .arg = arg, .err = *err};

	vhca_loop_post_copy(ms->args.loop, on_answer, &a, sizeof(a));
}
