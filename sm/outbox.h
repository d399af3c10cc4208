/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_OUTBOX_H
#define VHCA_SM_OUTBOX_H
/*
 * Durable outbox towards the SM. A report is the newest state of one vGUID (where it is bound) or
 * of one port (which partitions it needs beside those of its bindings): a newer one replaces an
 * older one that was not sent yet (rows: one per vGUID, one per port). Rows are written in the
 * caller's transaction, together with the state that they report; sending starts when that is
 * durable. In order per vGUID, oldest first overall, one request in flight per vGUID, at most 8 in
 * all; back-off 0.5 s .. 30 s while the SM cannot be reached (one probe at a time then). A row
 * leaves the table when it is in effect.
 *
 * A port's declaration and the bindings at that port do not overtake each other: a key that one
 * gives up after the other has asked for it never leaves the port in between. But for a binding
 * that waits until it is settled whose vGUID it is (ticket_not_valid, owner_disputed,
 * owner_unknown): nobody else waits for that.
 */
#include "common/http/http_loop.h"
#include "common/store/store.h"
#include "sm/sm.h"

struct vhca_outbox;

/*
 * Called on the state thread for every answer that ends or delays a report, but for those to a
 * state that a newer report has replaced meanwhile; reason is "" or the SM's words. `doc` (may be
 * NULL) is the SM's JSON answer. May put and release; must not free the outbox.
 */
typedef void (*vhca_outbox_fn)(void *arg, const struct vhca_sm_binding *binding,
			       enum vhca_sm_answer answer, const char *reason,
			       struct json_object *doc);

struct vhca_outbox_conf {
	const struct vhca_sm_ops *ops;
	const char *const *urls; /* n base URLs, tried in turn; copied */
	unsigned int n_urls;
	const struct vhca_http_auth *auth; /* borrowed; NULL = none */
	uint32_t timeout_ms;		   /* per request */
	uint32_t backoff_ms;		   /* the first back-off; 0 = 500 */

	/*
	 * They get the arg of vhca_outbox_new(), may put and release, and must not free the outbox.
	 * Each may be NULL.
	 */
	/* Like vhca_outbox_fn, for vhca_outbox_put_members(). */
	void (*members)(void *arg, uint64_t port_guid, enum vhca_sm_answer answer,
			const char *reason);
	/* The SM has named another owner, in an answer to a state that a newer report has replaced
	 * meanwhile: that one's own answer is still to come, but its silence is no consent. */
	void (*named_other)(void *arg, const struct vhca_sm_binding *binding);
	/*
	 * The LID that was to follow (follow_lid) stays where it is, for this reason; the binding
	 * is sent without it.
	 */
	void (*lid_stays)(void *arg, const struct vhca_sm_binding *binding, const char *reason);
	/* What the SM would answer to vhca_outbox_prepare(); RETRY: it has not said. */
	vhca_outbox_fn would_answer;
	/*
	 * The SM has lost its state (`rebuilding`) and wants every binding and declaration put
	 * again.
	 */
	void (*snapshot)(void *arg);
	uint32_t snapshot_ms; /* the shortest time between two of these calls; 0 = 5000 */
};

/*
 * Loads the rows (blocking, start-up); sending starts with the loop. http and store are borrowed
 * and outlive the outbox.
 */
int vhca_outbox_new(const struct vhca_outbox_conf *conf, struct vhca_loop *loop,
		    struct vhca_store *store, struct vhca_http_multi *http, vhca_outbox_fn fn,
		    void *arg, struct vhca_outbox **ret, struct vhca_error *err);
struct vhca_outbox *vhca_outbox_free(struct vhca_outbox *ob);

/*
 * Adds the row to txn and keeps the report back until vhca_outbox_release() with the returned
 * ticket, to be called from the commit's completion (durable = true) or failure (false: forgotten).
 */
uint64_t vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
			 const struct vhca_sm_binding *binding);
/*
 * The same for the partitions that a port needs beside those of its bindings (repeated keys count
 * once; n = 0: none). 0 instead of a ticket, and no report, if there are more than
 * VHCA_SM_PORT_PKEYS_MAX different ones.
 */
uint64_t vhca_outbox_put_members(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t port_guid,
				 const uint16_t *pkeys, size_t n);
void vhca_outbox_release(struct vhca_outbox *ob, uint64_t ticket, bool durable);

/*
 * By which this host has the vGUID (sm/proof.h), in the caller's transaction: shown with each
 * binding of it until one at the last ticket's epoch is accepted, and longer than its claim, for
 * the withdrawal. proof was checked; it is borrowed.
 */
void vhca_outbox_put_proof(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t vguid,
			   struct json_object *proof);
/* It is this host's no more, and nothing is said of it: nobody needs to believe that. */
void vhca_outbox_drop_proof(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t vguid);
/* The vGUID of one that nobody needs: its removal was not durable; 0 = there is none. */
uint64_t vhca_outbox_unneeded_proof(const struct vhca_outbox *ob,
				    bool (*needs)(void *arg, uint64_t vguid), void *arg);
/* To which no SM has said yes yet; borrowed, NULL = none. */
struct json_object *vhca_outbox_proof(const struct vhca_outbox *ob, uint64_t vguid);

/* Something of it is still to be said: a binding, or its withdrawal. */
bool vhca_outbox_has_word(const struct vhca_outbox *ob, uint64_t vguid);
/* A binding of it was loaded, and waits to be sent. */
bool vhca_outbox_has_bound(struct vhca_outbox *ob, uint64_t vguid);
/*
 * A binding that was loaded is over, and is not sent any more. The SM may have heard of it in an
 * earlier life: its withdrawal is still to be put.
 */
void vhca_outbox_drop_bound(struct vhca_outbox *ob, uint64_t vguid);

/*
 * Asks the SM what it would answer to this move (vhca_sm_binding_is_move()), which it does not
 * take: so it learns that the move is coming, and would_answer hears what there is to hear. Sent
 * once, not durable, not awaited, and dropped while the SM cannot be reached or
 * VHCA_OUTBOX_PREPARES_MAX of them are under way.
 */
#define VHCA_OUTBOX_PREPARES_MAX 32
void vhca_outbox_prepare(struct vhca_outbox *ob, const struct vhca_sm_binding *binding);

/* The SM changed, or a subnet event came: try everything now. */
void vhca_outbox_kick(struct vhca_outbox *ob);

/*
 * False from an exchange with the SM that failed to the next one that worked; true before the
 * first.
 */
bool vhca_outbox_reachable(const struct vhca_outbox *ob);
size_t vhca_outbox_pending(const struct vhca_outbox *ob);
uint64_t vhca_outbox_oldest_ms(const struct vhca_outbox *ob); /* its age; 0 = no report */
/*
 * [{seq, kind, vguid, epoch, bound, port_guid, state, age_ms, attempts, next_try_ms, reason}],
 * oldest first; kind is binding, move or members (without vguid, epoch, bound); state is pending
 * (may be sent now), in_flight or waiting (for next_try_ms). Caller puts it.
 */
struct json_object *vhca_outbox_to_json(const struct vhca_outbox *ob);

#endif
