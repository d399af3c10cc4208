/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One list of reports in the order of vhca_outbox_put(). A report is held until its row is durable,
 * then ready, then in flight; an answer that ends it takes it off the list and deletes its row, any
 * other makes it ready again.
 *
 * What delays is kept apart: a report whose port the SM does not know yet waits alone, with a
 * back-off of its own; an SM that cannot be reached, or is not the master, stops everything, and
 * then one report at a time probes the next URL.
 */
#include "sm/outbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"
#include "common/http/json.h"
#include "sm/line.h"
#include "sm/outbox_row.h"
#include "sm/prepare.h"
#include "sm/proof.h"

#define FLIGHTS_MAX	 8
#define BACKOFF_FIRST_MS 500
#define BACKOFF_CAP_MS	 30000
#define SNAPSHOT_MS	 5000

enum report_state { HELD, READY, IN_FLIGHT };

struct report {
	TAILQ_ENTRY(report) link;
	struct vhca_outbox *ob;
	struct vhca_outbox_row row;
	enum report_state state;
	bool stored;	    /* has a row in the table */
	bool with_proof;    /* in flight: with what an older SM does not know */
	bool proves_first;  /* in flight: its binding, before its withdrawal */
	bool refused_proof; /* by the SM of its round: it goes without */
	bool missed_proof;  /* and was asked for it then */
	bool without_lid;   /* in flight: its LID was denied; whether the rest is, too */
	bool lacks_owner;   /* by the last answer: nobody knows when that ends */
	unsigned int round; /* of the line when it was sent */
	unsigned int attempts;
	uint64_t next_try; /* vhca_now_ms() scale, 0 = now */
	struct vhca_backoff backoff;
	char reason[256]; /* of the last delay */
};

struct vhca_outbox {
	const struct vhca_sm_ops *ops;
	struct vhca_sm_line line;
	struct vhca_store *store;
	struct vhca_timer *timer;
	struct vhca_sm_prepares *prepares;
	vhca_outbox_fn fn;
	void (*members)(void *arg, uint64_t port_guid, enum vhca_sm_answer answer,
			const char *reason);
	void (*named_other)(void *arg, const struct vhca_sm_binding *binding);
	vhca_outbox_fn would_answer;
	void (*lid_stays)(void *arg, const struct vhca_sm_binding *binding, const char *reason);
	void (*snapshot)(void *arg);
	void *arg;
	uint32_t snapshot_ms;
	uint64_t snapshot_at; /* when the next one may be asked for */
	struct vhca_sm_proofs proofs;
	bool has_refused_proof; /* the SM of this round */
	unsigned int refused_round;

	TAILQ_HEAD(report_list, report) reports;      /* lowest seq first */
	uint64_t seq;				      /* the last one given out */
	unsigned int n_reports, n_members, n_flights; /* n_members: among the reports */
	struct report *flights[FLIGHTS_MAX];	      /* NULL = free */
};

/* ---- the list ---- */

static struct report *report_add(struct vhca_outbox *ob, const struct vhca_outbox_row *row,
				 enum report_state state, bool stored)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ob = ob;
	r->row = *row;
	r->state = state;
	r->stored = stored;
	r->backoff = ob->line.backoff;
	vhca_backoff_reset(&r->backoff);
	TAILQ_INSERT_TAIL(&ob->reports, r, link);
	ob->n_reports++;
	ob->n_members += row->kind == VHCA_OUTBOX_MEMBERS;
	return r;
}

static void report_unlink(struct vhca_outbox *ob, struct report *r)
{
	TAILQ_REMOVE(&ob->reports, r, link);
	ob->n_reports--;
	ob->n_members -= r->row.kind == VHCA_OUTBOX_MEMBERS;
}

static void report_drop(struct vhca_outbox *ob, struct report *r)
{
	report_unlink(ob, r);
	free(r);
}

/* Another report of the same subject that is ready. */
static struct report *ready_twin(const struct vhca_outbox *ob, const struct report *of)
{
	struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		if (r != of && r->state == READY && vhca_outbox_row_same_subject(&r->row, &of->row))
			return r;
	return NULL;
}

/*
 * True if a declaration would overtake a binding at its port, or the other way round. Whose vGUID
 * is another's to settle holds back no other guest of the port.
 */
static bool would_overtake(const struct vhca_outbox *ob, const struct report *late)
{
	const struct report *r;

	if (ob->n_members == 0)
		return false;
	TAILQ_FOREACH (r, &ob->reports, link) {
		if (r == late)
			break;
		if (r->row.kind != late->row.kind && !r->lacks_owner &&
		    vhca_outbox_row_port(&r->row) == vhca_outbox_row_port(&late->row))
			return true;
	}
	return false;
}

static void take_off(struct vhca_outbox *ob, struct report *r)
{
	for (unsigned int i = 0; i < FLIGHTS_MAX; i++) {
		if (ob->flights[i])
			continue;
		ob->flights[i] = r;
		ob->n_flights++;
		r->state = IN_FLIGHT;
		r->round = ob->line.round;
		return;
	}
}

/* ---- proofs ---- */

/*
 * What tells an SM whose word counts; one that does not know of that refuses the whole. r may be
 * NULL.
 */
static bool takes_proof(const struct vhca_outbox *ob, const struct report *r)
{
	return !(ob->has_refused_proof && ob->refused_round == ob->line.round) &&
	       !(r && r->refused_proof && r->round == ob->line.round);
}

static bool add_proof(const struct vhca_outbox *ob, const struct report *r,
		      const struct vhca_outbox_row *row, struct json_object *body)
{
	const struct vhca_sm_binding *b = &row->binding;
	struct json_object *proof;

	if (row->kind != VHCA_OUTBOX_BINDING || !b->bound || !takes_proof(ob, r))
		return false;
	proof = vhca_sm_proof_of(&ob->proofs, b->vguid);
	if (proof)
		vhca_json_add(body, "tickets", json_object_get(proof));
	if (b->settled && !vhca_outbox_row_is_move(row))
		vhca_json_add_bool(body, "settled", true);
	else if (!proof)
		return false;
	return true;
}

/*
 * It refuses what it does not know, or something else: the same goes again, without, and where that
 * is taken, it was the proof. Or it asks for what it has refused, for it was upgraded since: once a
 * report it is shown then, and afterwards its word counts.
 */
static bool shows_proof_otherwise(struct vhca_outbox *ob, struct report *r,
				  const struct vhca_http_result *res)
{
	if (r->with_proof && vhca_sm_proof_is_unknown(res->body)) {
		r->refused_proof = true;
		return true;
	}
	if (r->missed_proof || takes_proof(ob, r) ||
	    !vhca_sm_proof_of(&ob->proofs, r->row.binding.vguid) ||
	    !vhca_sm_proof_is_wanted(res->body))
		return false;
	r->missed_proof = true;
	r->refused_proof = ob->has_refused_proof = false;
	return true;
}

static struct vhca_outbox_row row_to_send(const struct report *r)
{
	struct vhca_outbox_row row = r->row;

	if (r->proves_first) {
		row.binding.bound = true;
		row.plain = true;
	}
	if (r->without_lid)
		row.binding.follow_lid = false;
	return row;
}

/* ---- answers ---- */

static void tell(const struct vhca_outbox *ob, const struct vhca_outbox_row *row,
		 enum vhca_sm_answer answer, const char *reason, struct json_object *doc)
{
	if (row->kind == VHCA_OUTBOX_BINDING)
		ob->fn(ob->arg, &row->binding, answer, reason, doc);
	else if (ob->members)
		ob->members(ob->arg, row->members.port_guid, answer, reason);
}

static void delete_row(struct vhca_outbox *ob, const struct vhca_outbox_row *row, bool and_proof)
{
	struct vhca_txn *txn = vhca_txn_new(ob->store);

	vhca_outbox_row_delete(txn, row);
	if (and_proof)
		vhca_sm_proof_drop(&ob->proofs, txn, row->binding.vguid);
	vhca_txn_commit(txn, NULL, NULL);
}

/* Unless a newer one has come meanwhile. */
static void drop_proof(struct vhca_outbox *ob, const struct vhca_outbox_row *row)
{
	struct vhca_txn *txn;

	if (!vhca_sm_proof_is_over(&ob->proofs, row->binding.vguid, row->binding.epoch))
		return;
	txn = vhca_txn_new(ob->store);
	vhca_sm_proof_drop(&ob->proofs, txn, row->binding.vguid);
	vhca_txn_commit(txn, NULL, NULL);
}

/* Takes r off the list and its row out of the table, and tells the owner. Consumes r. */
static void finish(struct vhca_outbox *ob, struct report *r, enum vhca_sm_answer answer,
		   struct json_object *doc)
{
	const struct vhca_sm_binding *b = &r->row.binding;
	/*
	 * The SM has accepted what the proof leads to, or what had it is given up. A proof that
	 * leads to a later epoch is of the guest's return since.
	 */
	bool and_proof = r->row.kind == VHCA_OUTBOX_BINDING &&
			 (b->bound ? answer == VHCA_SM_ACCEPTED : !b->keep_lid) &&
			 vhca_sm_proof_is_over(&ob->proofs, b->vguid, b->epoch);

	report_unlink(ob, r);
	/* Should the row survive, the same state is sent again after a restart: harmless. */
	if (r->stored || and_proof)
		delete_row(ob, &r->row, and_proof);
	if (answer != VHCA_SM_ACCEPTED)
		vhca_outbox_row_log_dropped(&r->row, answer, r->reason);
	/*
	 * What was said of a state that has been replaced since does not hold for the newer one,
	 * although its epoch may be the same: that one gets an answer of its own.
	 */
	if (!ready_twin(ob, r))
		tell(ob, &r->row, answer, r->reason, doc);
	else if (answer == VHCA_SM_SUPERSEDED && r->row.kind == VHCA_OUTBOX_BINDING &&
		 ob->named_other)
		ob->named_other(ob->arg, &r->row.binding);
	free(r);
}

static void delay(struct vhca_outbox *ob, struct report *r, int status, struct json_object *doc)
{
	struct vhca_outbox_row row;
	char reason[sizeof(r->reason)];

	r->lacks_owner = vhca_outbox_row_lacks_owner(doc);
	if (vhca_outbox_row_waits_alone(status, doc)) {
		vhca_sm_line_works(&ob->line);
		r->next_try = vhca_now_ms() + vhca_backoff_next(&r->backoff);
	} else {
		vhca_sm_line_lost(&ob->line, r->round, r->reason);
	}
	if (ready_twin(ob, r)) {
		report_drop(ob, r); /* its row was replaced when the newer one was written */
		return;
	}
	row = r->row; /* the owner may put a newer one, which ends this */
	memcpy(reason, r->reason, sizeof(reason));
	tell(ob, &row, VHCA_SM_RETRY, reason, doc);
}

static void pump(struct vhca_outbox *ob);

/* It goes again, unless a newer report says it all, whose row is in the place of its own. */
static void drop_replaced(struct vhca_outbox *ob, struct report *r)
{
	if (ready_twin(ob, r))
		report_drop(ob, r);
}

/* The binding goes without it, at once; after a restart it is asked for once more. */
static void leave_lid(struct vhca_outbox *ob, struct report *r, const char *reason)
{
	const struct vhca_sm_binding asked = r->row.binding;

	r->row.binding.follow_lid = false;
	if (ob->lid_stays && !ready_twin(ob, r))
		ob->lid_stays(ob->arg, &asked, reason);
}

static void take_answer(struct vhca_outbox *ob, struct report *r, int rc,
			const struct vhca_http_result *res, const struct vhca_error *err)
{
	const struct vhca_outbox_row row = row_to_send(r);
	enum vhca_sm_answer answer = vhca_outbox_row_answer(ob->ops, &row, res, err);
	uint64_t now = vhca_now_ms();

	if (r->without_lid && answer == VHCA_SM_ACCEPTED)
		leave_lid(ob, r, "at the subnet manager that needs the role admin");
	r->without_lid = false;
	(void)snprintf(r->reason, sizeof(r->reason), "%s",
		       rc < 0			 ? err->msg
		       : answer == VHCA_SM_RETRY ? "answer is none of ours"
						 : "");
	if (answer == VHCA_SM_RETRY) {
		delay(ob, r, res->status, res->body);
	} else if (r->proves_first) {
		/* The proof has helped, or it never will. */
		vhca_sm_line_works(&ob->line);
		drop_proof(ob, &row);
		drop_replaced(ob, r);
	} else {
		vhca_sm_line_works(&ob->line);
		if (answer == VHCA_SM_ACCEPTED && r->refused_proof && !r->with_proof) {
			vhca_log_notice("%s: the SM does not know tickets: it is told without",
					VHCA_GUID_STR(r->row.binding.vguid));
			ob->has_refused_proof = true;
			ob->refused_round = r->round;
		}
		finish(ob, r, answer, res->body);
	}
	if (!ob->ops->wants_snapshot(res->status, res->body) || !ob->snapshot ||
	    now < ob->snapshot_at)
		return;
	ob->snapshot_at = now + ob->snapshot_ms;
	ob->snapshot(ob->arg);
}

/* The SM does not take the move as it is: the same state goes in another way, at once. */
static bool goes_otherwise(struct vhca_outbox *ob, struct report *r, int rc,
			   const struct vhca_http_result *res, const struct vhca_error *err)
{
	bool unknown = ob->ops->commit_unknown(res->status, res->body);
	bool follows = r->row.binding.follow_lid && !r->without_lid;

	if (unknown)
		r->row.plain = true; /* it knows bindings only */
	if (follows && unknown)
		leave_lid(ob, r, "the subnet manager knows no moves");
	else if (follows && ob->ops->lid_refused(res->status, res->body))
		leave_lid(ob, r, rc < 0 ? err->msg : "the subnet manager refuses it");
	else if (follows && ob->ops->lid_denied(res->status, res->body))
		r->without_lid = true;
	else
		return unknown;
	return true;
}

static void on_answer(void *arg, int rc, const struct vhca_http_result *res,
		      const struct vhca_error *err)
{
	struct report *r = arg;
	struct vhca_outbox *ob = r->ob;

	(void)vhca_fault("outbox.answer");
	for (unsigned int i = 0; i < FLIGHTS_MAX; i++)
		if (ob->flights[i] == r)
			ob->flights[i] = NULL;
	ob->n_flights--;
	r->state = READY;
	r->attempts++;
	/* The proof first: for what it does not know of that, an SM would end the LID. */
	if (shows_proof_otherwise(ob, r, res) ||
	    (vhca_outbox_row_is_move(&r->row) && goes_otherwise(ob, r, rc, res, err)))
		drop_replaced(ob, r);
	else
		take_answer(ob, r, rc, res, err);
	pump(ob);
}

/* ---- sending ---- */

static void send_report(struct vhca_outbox *ob, struct report *r)
{
	const struct vhca_sm_binding *b = &r->row.binding;
	struct vhca_outbox_row row;
	struct vhca_sm_request req;
	int rc;

	/*
	 * A vGUID is given up of which no SM has heard: who withdraws it has to have it. So the SM
	 * is told first that it was here, with its proof.
	 */
	r->proves_first = r->row.kind == VHCA_OUTBOX_BINDING && !b->bound && !b->keep_lid &&
			  takes_proof(ob, r) &&
			  vhca_sm_proof_is_over(&ob->proofs, b->vguid, b->epoch);
	row = row_to_send(r);
	rc = vhca_outbox_row_request(ob->ops, &row, &req);
	if (rc == 0) {
		r->with_proof = add_proof(ob, r, &row, req.body);
		rc = vhca_sm_line_start(&ob->line, &req, on_answer, r);
		(void)json_object_put(req.body);
	}
	if (rc < 0) {
		r->without_lid = false; /* that was of an answer of then */
		(void)snprintf(r->reason, sizeof(r->reason), "cannot send: %s",
			       strerrordesc_np(-rc));
		r->next_try = vhca_now_ms() + vhca_backoff_next(&r->backoff);
		return;
	}
	take_off(ob, r);
}

/* When r may be sent; UINT64_MAX = not before something else happens, which calls pump(). */
static uint64_t due(const struct vhca_outbox *ob, const struct report *r)
{
	if (r->state != READY || would_overtake(ob, r))
		return UINT64_MAX;
	for (unsigned int i = 0; i < FLIGHTS_MAX; i++)
		if (ob->flights[i] && vhca_outbox_row_same_subject(&ob->flights[i]->row, &r->row))
			return UINT64_MAX;
	return r->next_try;
}

static void finish_all(struct vhca_outbox *ob)
{
	struct report *r;

	do {
		TAILQ_FOREACH (r, &ob->reports, link)
			if (r->state == READY)
				break;
		if (r)
			finish(ob, r, VHCA_SM_ACCEPTED, NULL);
	} while (r);
}

/*
 * Sends what may be sent now; returns when there is more to send, UINT64_MAX = an answer or a put
 * will tell.
 */
static uint64_t send_due(struct vhca_outbox *ob, uint64_t now)
{
	const unsigned int flights_max = ob->line.down ? 1 : FLIGHTS_MAX;
	uint64_t next = UINT64_MAX;
	struct report *r;

	if (ob->line.down && ob->line.probe_at > now)
		return ob->line.probe_at;
	TAILQ_FOREACH (r, &ob->reports, link) {
		uint64_t when = due(ob, r);

		if (ob->n_flights >= flights_max)
			return UINT64_MAX;
		if (when <= now) {
			send_report(ob, r);
			when = due(ob, r);
		}
		if (when < next)
			next = when;
	}
	return next;
}

static void pump(struct vhca_outbox *ob)
{
	uint64_t now = vhca_now_ms(), next;

	if (!ob->ops->sends) {
		finish_all(ob);
		return;
	}
	next = send_due(ob, now);
	if (next != UINT64_MAX)
		vhca_timer_arm_ms(ob->timer, next > now ? next - now : 0);
}

static void on_timer(void *arg)
{
	pump(arg);
}

/* ---- owner's side ---- */

static uint64_t put(struct vhca_outbox *ob, struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	if (ob->ops->sends)
		vhca_outbox_row_put(txn, row);
	/* Without memory the row is in the table all the same, and is sent after the next start. */
	if (!report_add(ob, row, HELD, ob->ops->sends))
		vhca_log_error("%s: report to the SM is delayed until a restart: out of memory",
			       VHCA_GUID_STR(row->kind == VHCA_OUTBOX_MEMBERS
						     ? row->members.port_guid
						     : row->binding.vguid));
	return row->seq;
}

uint64_t vhca_outbox_put(struct vhca_outbox *ob, struct vhca_txn *txn,
			 const struct vhca_sm_binding *binding)
{
	const struct vhca_outbox_row row = {.kind = VHCA_OUTBOX_BINDING,
					    .seq = ++ob->seq,
					    .created_ms = vhca_wall_ms(),
					    .binding = *binding};

	return put(ob, txn, &row);
}

uint64_t vhca_outbox_put_members(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t port_guid,
				 const uint16_t *pkeys, size_t n)
{
	struct vhca_outbox_row row = {.kind = VHCA_OUTBOX_MEMBERS,
				      .created_ms = vhca_wall_ms(),
				      .members = {.port_guid = port_guid}};

	if (!vhca_outbox_row_add_keys(&row, pkeys, n))
		return 0;
	row.seq = ++ob->seq;
	return put(ob, txn, &row);
}

void vhca_outbox_release(struct vhca_outbox *ob, uint64_t ticket, bool durable)
{
	struct report *r, *older;

	TAILQ_FOREACH (r, &ob->reports, link)
		if (r->row.seq == ticket)
			break;
	if (!r)
		return;
	if (durable) {
		older = ready_twin(ob, r);
		if (older)
			report_drop(ob, older);
		r->state = READY;
	} else {
		report_drop(ob, r);
	}
	pump(ob);
}

static struct report *find_bound(struct vhca_outbox *ob, uint64_t vguid)
{
	struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		if (r->stored && r->state == READY && r->row.kind == VHCA_OUTBOX_BINDING &&
		    r->row.binding.bound && r->row.binding.vguid == vguid)
			return r;
	return NULL;
}

bool vhca_outbox_has_word(const struct vhca_outbox *ob, uint64_t vguid)
{
	const struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		if (r->row.kind == VHCA_OUTBOX_BINDING && r->row.binding.vguid == vguid)
			return true;
	return false;
}

bool vhca_outbox_has_bound(struct vhca_outbox *ob, uint64_t vguid)
{
	return find_bound(ob, vguid) != NULL;
}

void vhca_outbox_drop_bound(struct vhca_outbox *ob, uint64_t vguid)
{
	struct report *r = find_bound(ob, vguid);

	if (!r)
		return;
	vhca_log_notice("%s: epoch %llu is not reported any more: its guest may be elsewhere",
			VHCA_GUID_STR(vguid), (unsigned long long)r->row.binding.epoch);
	delete_row(ob, &r->row, false);
	report_drop(ob, r);
}

void vhca_outbox_put_proof(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t vguid,
			   struct json_object *proof)
{
	vhca_sm_proof_put(&ob->proofs, txn, vguid, proof);
}

void vhca_outbox_drop_proof(struct vhca_outbox *ob, struct vhca_txn *txn, uint64_t vguid)
{
	vhca_sm_proof_drop(&ob->proofs, txn, vguid);
}

uint64_t vhca_outbox_unneeded_proof(const struct vhca_outbox *ob,
				    bool (*needs)(void *arg, uint64_t vguid), void *arg)
{
	return vhca_sm_proof_unneeded(&ob->proofs, needs, arg);
}

struct json_object *vhca_outbox_proof(const struct vhca_outbox *ob, uint64_t vguid)
{
	return vhca_sm_proof_of(&ob->proofs, vguid);
}

void vhca_outbox_kick(struct vhca_outbox *ob)
{
	struct report *r;

	vhca_sm_line_kick(&ob->line);
	ob->has_refused_proof = false; /* another one may be there now */
	TAILQ_FOREACH (r, &ob->reports, link) {
		vhca_backoff_reset(&r->backoff);
		r->next_try = 0;
	}
	pump(ob);
}

void vhca_outbox_prepare(struct vhca_outbox *ob, const struct vhca_sm_binding *binding)
{
	int rc;

	if (ob->line.down || !vhca_sm_binding_is_move(binding))
		return;
	if (!ob->ops->sends) {
		if (ob->would_answer)
			ob->would_answer(ob->arg, binding, VHCA_SM_ACCEPTED, "", NULL);
		return;
	}
	rc = vhca_sm_prepares_send(
		ob->prepares, binding,
		takes_proof(ob, NULL) ? vhca_sm_proof_of(&ob->proofs, binding->vguid) : NULL);
	if (rc < 0)
		vhca_log_debug("%s: prepare: not sent: %s", VHCA_GUID_STR(binding->vguid),
			       strerrordesc_np(-rc));
}

bool vhca_outbox_reachable(const struct vhca_outbox *ob)
{
	return !ob->line.down;
}

size_t vhca_outbox_pending(const struct vhca_outbox *ob)
{
	return ob->n_reports;
}

static uint64_t ms_until(uint64_t when, uint64_t now)
{
	return when > now ? when - now : 0;
}

static uint64_t next_try_ms(const struct vhca_outbox *ob, const struct report *r)
{
	uint64_t when = r->next_try;

	if (r->state != READY)
		return 0;
	if (ob->line.down && ob->line.probe_at > when)
		when = ob->line.probe_at;
	return ms_until(when, vhca_now_ms());
}

uint64_t vhca_outbox_oldest_ms(const struct vhca_outbox *ob)
{
	const struct report *r = TAILQ_FIRST(&ob->reports);

	return r ? ms_until(vhca_wall_ms(), r->row.created_ms) : 0;
}

static struct json_object *report_to_json(const struct vhca_outbox *ob, const struct report *r)
{
	struct json_object *obj = vhca_outbox_row_to_json(&r->row);
	uint64_t next_try = next_try_ms(ob, r);
	const char *state = r->state == IN_FLIGHT ? "in_flight" : next_try ? "waiting" : "pending";

	vhca_json_add_string(obj, "state", state);
	vhca_json_add_u64(obj, "age_ms", ms_until(vhca_wall_ms(), r->row.created_ms));
	vhca_json_add_u64(obj, "attempts", r->attempts);
	vhca_json_add_u64(obj, "next_try_ms", next_try);
	vhca_json_add_string(obj, "reason", r->reason[0] ? r->reason : NULL);
	return obj;
}

struct json_object *vhca_outbox_to_json(const struct vhca_outbox *ob)
{
	struct json_object *list = json_object_new_array();
	const struct report *r;

	TAILQ_FOREACH (r, &ob->reports, link)
		(void)json_object_array_add(list, report_to_json(ob, r));
	return list;
}

/* ---- life ---- */

static int load_report(void *ctx, const struct vhca_outbox_row *row)
{
	struct vhca_outbox *ob = ctx;

	ob->seq = row->seq;
	return report_add(ob, row, READY, true) ? 0 : -ENOMEM;
}

static void outbox_freep(struct vhca_outbox **p)
{
	(void)vhca_outbox_free(*p);
}

static void configure(struct vhca_outbox *ob, const struct vhca_outbox_conf *conf)
{
	ob->ops = conf->ops;
	ob->members = conf->members;
	ob->named_other = conf->named_other;
	ob->would_answer = conf->would_answer;
	ob->lid_stays = conf->lid_stays;
	ob->snapshot = conf->snapshot;
	ob->snapshot_ms = conf->snapshot_ms ? conf->snapshot_ms : SNAPSHOT_MS;
	ob->line.auth = conf->auth;
	ob->line.timeout_ms = conf->timeout_ms;
	ob->line.backoff.first_ms = conf->backoff_ms ? conf->backoff_ms : BACKOFF_FIRST_MS;
	ob->line.backoff.cap_ms = BACKOFF_CAP_MS;
}

int vhca_outbox_new(const struct vhca_outbox_conf *conf, struct vhca_loop *loop,
		    struct vhca_store *store, struct vhca_http_multi *http, vhca_outbox_fn fn,
		    void *arg, struct vhca_outbox **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(outbox_freep) struct vhca_outbox *ob = calloc(1, sizeof(*ob));
	int r;

	if (!ob)
		return vhca_error_no_memory(err, "outbox");
	TAILQ_INIT(&ob->reports);
	configure(ob, conf);
	ob->store = store;
	ob->line.http = http;
	ob->fn = fn;
	ob->arg = arg;
	r = conf->ops->sends && conf->n_urls == 0 ? -EINVAL : 0;
	if (r == 0)
		r = vhca_sm_line_set(&ob->line, conf->urls, conf->n_urls);
	if (r == 0)
		r = vhca_timer_new(loop, "outbox", on_timer, ob, &ob->timer);
	ob->prepares = vhca_sm_prepares_new(&ob->line, ob->ops, VHCA_OUTBOX_PREPARES_MAX,
					    ob->would_answer, arg);
	if (r == 0 && !ob->prepares)
		r = -ENOMEM;
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "outbox", -r, "outbox: set up");
	r = vhca_outbox_row_load(store, load_report, ob, err);
	if (r == 0)
		r = vhca_sm_proofs_load(&ob->proofs, store, err);
	if (r < 0)
		return r;
	vhca_timer_arm_ms(ob->timer, 0); /* callbacks only once the owner has *ret */
	*ret = vhca_steal_ptr(&ob);
	return 0;
}

struct vhca_outbox *vhca_outbox_free(struct vhca_outbox *ob)
{
	struct report *r;

	if (!ob)
		return NULL;
	while ((r = TAILQ_FIRST(&ob->reports)) != NULL) {
		if (r->state == IN_FLIGHT)
			vhca_http_multi_cancel(ob->line.http, r);
		report_drop(ob, r);
	}
	vhca_sm_proofs_done(&ob->proofs);
	ob->prepares = vhca_sm_prepares_free(ob->prepares);
	ob->timer = vhca_timer_free(ob->timer);
	vhca_sm_line_done(&ob->line);
	free(ob);
	return NULL;
}
