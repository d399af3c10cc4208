/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_REPEATS_H
#define VHCA_AGENT_STATE_REPEATS_H
/*
 * Requests that may come again: those with an Idempotency-Key, and what was answered. Durable for a
 * day (docs/design/0016-api.md, "The same request again").
 *
 *   new ──vhca_repeats_admit()──▶ under way ──vhca_repeat_keep()────▶ answered ──a day──▶ forgotten
 *                                   │  ▲   └──vhca_repeat_forget()──▶ forgotten
 *                        a restart  ▼  │ the same request again
 *                                  left
 *
 * Its row is written behind nothing and before whatever the request writes: what is durable of that
 * has a row that is. The row tells, by a trigger of the schema, that the object was written for
 * which the request has an id.
 */
#include "common/base/caller.h"
#include "common/store/store.h"

/* Of one caller half of either. */
#define VHCA_REPEATS_MAX 1024
#define VHCA_REPEATS_ANSWERS_MAX \
	(UINT64_C(2) << 20) /* bytes, of all answers; the last goes above */
#define VHCA_REPEAT_KEY_MAX 128
#define VHCA_REPEAT_MS	    86400000

struct vhca_repeats;

struct vhca_repeat_request {
	const char *caller, *key;
	const char *fingerprint; /* of method, path and body */
};

struct vhca_repeat;
/* The id that what it makes is to have, a claim or a migration. */
const struct vhca_uuid *vhca_repeat_object(const struct vhca_repeat *r);
/* An earlier life of the agent has written that object. */
bool vhca_repeat_has_begun(const struct vhca_repeat *r);
/* What it was answered; 0 and NULL: it is to be done, by whoever admitted it. */
unsigned int vhca_repeat_status(const struct vhca_repeat *r);
const char *vhca_repeat_answer(const struct vhca_repeat *r);

/* Reads the table. Blocking; start-up only. */
int vhca_repeats_new(struct vhca_store *store, struct vhca_repeats **ret, struct vhca_error *err);
/* The store is about to close: whoever hears now that the agent ends asks the next one, for which
 * the keys stay as they are. done() comes at once from now on. Accepts NULL. */
void vhca_repeats_stop(struct vhca_repeats *rs);
struct vhca_repeats *vhca_repeats_free(struct vhca_repeats *rs);

/* Refused: "bad_request", "key_reused", "key_in_use", "too_many_keys". */
int vhca_repeats_admit(struct vhca_repeats *rs, const struct vhca_repeat_request *req,
		       struct vhca_repeat **ret, struct vhca_error *err);
/* Its answer, which must not be given before done(arg): it is durable then, or the disk refuses it,
 * which nobody waits for. */
void vhca_repeat_keep(struct vhca_repeat *r, unsigned int status, const char *answer,
		      void (*done)(void *arg, int rc), void *arg);
/* Nothing came of it: the same request is a new one. done() as above; r is gone. */
void vhca_repeat_forget(struct vhca_repeat *r, void (*done)(void *arg, int rc), void *arg);

/* Another claim takes the place of one: a row of a transaction. */
void vhca_repeats_replace(struct vhca_txn *txn, const struct vhca_uuid *object,
			  const struct vhca_uuid *by);

#endif
