/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the SM is told: bindings of claims, and the keys that a port needs for guests that are to
 * come.
 * Each report is queued in the transaction that makes it true, or in one of its own.
 */
#include "agent/vf/report.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/vf/work.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "pkey/guid.h"

static const struct vhca_port_state *claim_port(const struct vhca_vf *vf)
{
	return &vf->hca->ports[vf->hca->port - 1];
}

/* True where the VF is a port of its own and the policy is this one. */
static bool vports_have(const struct vhca_engine *e, const struct vhca_vf *vf,
			enum vhca_conf_lid_policy policy)
{
	return e->conf->lid_policy == policy && vf && !vhca_hca_identity(vf->hca)->host_pkey_map;
}

/*
 * The number of the VF's own port, if it has one that goes to other hosts with GUID and LID. The
 * PF's is vport 0.
 */
static uint16_t own_vport(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return vports_have(e, vf, VHCA_LID_VPORT) ? (uint16_t)(vf->index + 1) : 0;
}

static_assert(VHCA_VF_PKEYS_MAX <= VHCA_SM_PKEYS_MAX, "a report holds all keys of a VF");

/*
 * At an epoch that two hosts have used, a withdrawal is told from the other's binding by the port
 * alone: it names the one that the SM was told of, whatever there is now, and whether it has been
 * seen yet.
 */
static struct vhca_sm_binding binding_of(const struct vhca_claim *c, bool bound)
{
	const struct vhca_vf *vf = c->vf;
	struct vhca_sm_binding b = {
		.vguid = c->identity.guid,
		.epoch = c->epoch,
		.bound = bound,
		.n_pkeys = c->identity.n_pkeys,
	};

	if (vf) {
		b.port_guid = bound ? claim_port(vf)->port_guid : c->port_guid;
		b.lid = claim_port(vf)->lid;
		b.gid_index = vf->hw_known ? vf->hw.gid_index : (uint16_t)(vf->index + 1);
	}
	if (c->migrating && c->from_port_guid) {
		b.moved = true;
		b.move_id = c->migration;
		b.from_port_guid = c->from_port_guid;
		b.from_gid_index = c->from_gid_index;
		b.from_lid = c->from_lid;
	}
	memcpy(b.pkeys, c->identity.pkeys, c->identity.n_pkeys * sizeof(b.pkeys[0]));
	return b;
}

struct vhca_sm_binding vhca_claim_binding(const struct vhca_claim *claim)
{
	return binding_of(claim, true);
}

/* A move names where it came from; where that is not known here, the port itself. */
static void make_move(const struct vhca_claim *c, struct vhca_sm_binding *b)
{
	if (b->moved)
		return;
	b->moved = true;
	b->move_id = c->migration;
	b->from_port_guid = b->port_guid;
}

/*
 * Without a port GUID (no RDMA device yet) there is nothing true to report; the port's first event
 * sends it. Without a GUID of its own neither. And what was never reported is not withdrawn: it
 * could only be another host's.
 */
static uint64_t put_binding(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c,
			    const struct vhca_sm_binding *b)
{
	if (e->outbox && b->bound && c->proof)
		vhca_outbox_put_proof(e->outbox, txn, b->vguid, c->proof);
	if (!e->outbox || !b->port_guid || vhca_guid_is_stand_in(b->vguid))
		return 0;
	/* Before the SM hears of it: what it has heard of is withdrawn one day. */
	if (b->bound && c->port_guid != b->port_guid) {
		c->port_guid = b->port_guid;
		vhca_journal_claim_port(txn, c);
	}
	return vhca_outbox_put(e->outbox, txn, b);
}

uint64_t engine_put_report_in(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c,
			      bool bound, enum vhca_vf_state state)
{
	struct vhca_sm_binding b = binding_of(c, bound);
	/*
	 * An SM that is told of a vport before that one shows the GUID would find the GUID
	 * elsewhere in its next sweep.
	 */
	bool shows_guid = !vhca_claim_is_withheld(c) &&
			  (state == VHCA_VF_PROGRAMMED || state == VHCA_VF_ATTACHED);

	/*
	 * An identity that has come back came from a host whose port is not known here: it may have
	 * been as far as to be reported there.
	 */
	if (bound && c->migrating && shows_guid)
		b.vport = own_vport(e, c->vf);
	if (b.vport)
		make_move(c, &b);
	/* Until the SM has answered, also when the migration is over. */
	if (bound && c->follow_lid && state == VHCA_VF_ATTACHED) {
		b.moved = b.follow_lid = true;
		b.move_id = c->migration;
		b.from_port_guid = c->follow_port;
		b.from_gid_index = c->from_gid_index;
		b.from_lid = c->follow_lid;
	}
	b.dynamic_lid = bound && vports_have(e, c->vf, VHCA_LID_DYNAMIC);
	/* Only an SM that goes by who somebody is wants to know. */
	b.settled = bound && e->conf->tls_certificate[0] && !c->migrating &&
		    !vhca_claim_is_withheld(c) && state == VHCA_VF_ATTACHED;
	b.keep_lid = !bound && vhca_claim_is_withheld(c) && c->kept_epoch;
	return put_binding(e, txn, c, &b);
}

uint64_t engine_put_report(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c,
			   bool bound)
{
	return engine_put_report_in(e, txn, c, bound, c->vf ? c->vf->state : VHCA_VF_UNMANAGED);
}

/*
 * What ends. An identity that is away was withdrawn when it left, and its epoch may be somebody
 * else's by now; but it stayed this host's at the SM, and if nobody has come for it, nobody will.
 * The epoch of then says so: whoever came has a higher one, and the SM drops this. One that the SM
 * was asked for since would be given to nobody.
 */
uint64_t engine_put_last_word(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c)
{
	struct vhca_sm_binding b = binding_of(c, false);

	if (vhca_claim_is_withheld(c) && !c->arbitration_asked && !c->kept_epoch)
		return 0;
	if (vhca_claim_is_withheld(c) && !c->arbitration_asked)
		b.epoch = c->kept_epoch;
	return put_binding(e, txn, c, &b);
}

void vhca_engine_prove(struct vhca_claim *claim, struct json_object *proof)
{
	json_object_put(claim->proof);
	claim->proof = json_object_get(proof);
}

struct json_object *vhca_engine_proof(const struct vhca_engine *e, const struct vhca_claim *claim)
{
	struct json_object *durable =
		e->outbox ? vhca_outbox_proof(e->outbox, claim->identity.guid) : NULL;

	return durable ? durable : claim->proof;
}

/*
 * The binding was reported with the claim; now that the vport shows the GUID, or that the guest is
 * here, its LID may follow.
 */
bool engine_lid_is_due(const struct vhca_engine *e, const struct vhca_claim *c,
		       enum vhca_vf_state to)
{
	if (to == VHCA_VF_ATTACHED)
		return c->follow_lid;
	return to == VHCA_VF_PROGRAMMED && c->migrating && own_vport(e, c->vf);
}

void engine_release_ticket(struct vhca_engine *e, uint64_t ticket, bool durable)
{
	if (ticket)
		vhca_outbox_release(e->outbox, ticket, durable);
}

/* ---- in a transaction of its own ---- */

static void on_report(void *arg, int rc)
{
	struct engine_commit *c = arg;

	engine_release_ticket(c->e, c->ticket, rc == 0);
	if (rc < 0)
		vhca_log_error("state database: cannot queue a report to the SM: %s",
			       strerror(-rc));
	engine_free_commit(c);
}

static void commit_report(struct vhca_engine *e, struct vhca_txn *txn, uint64_t ticket)
{
	struct engine_commit *c = engine_new_commit(e, NULL, false);

	if (!c) {
		engine_release_ticket(e, ticket, false);
		vhca_txn_abort(txn);
		return;
	}
	c->ticket = ticket;
	vhca_txn_commit(txn, on_report, c);
}

/* Reports of the same grow in number with the time that the disk takes: afterwards one says it
 * all. */
static bool reports_later(struct vhca_engine *e)
{
	e->owes_reports |= e->disk.kind != VHCA_ERR_NONE;
	return e->disk.kind != VHCA_ERR_NONE;
}

void engine_forget_answer(struct vhca_claim *c)
{
	c->sm_answer = VHCA_ANSWER_NONE;
	c->sm_answer_ms = vhca_now_ms();
	c->sm_code = NULL;
	c->sm_answer_reason[0] = '\0';
}

void vhca_engine_prove_late(struct vhca_engine *e, struct vhca_claim *claim,
			    struct json_object *proof)
{
	if (claim->sm_answer == VHCA_ANSWER_ACCEPTED || vhca_engine_proof(e, claim))
		return;
	engine_forget_answer(claim); /* it was to a report without */
	vhca_engine_prove(claim, proof);
	engine_report(e, claim);
}

void engine_report(struct vhca_engine *e, struct vhca_claim *claim)
{
	const struct engine_commit *c;
	struct vhca_txn *txn;

	if (reports_later(e))
		return;
	/*
	 * The withdrawal is on its way to the disk: what is put now would be the newer word, and
	 * the SM's last one.
	 */
	TAILQ_FOREACH (c, &e->commits, link)
		if (c->ended == claim)
			return;
	if (claim->vf &&
	    engine_is_unborn(claim->vf)) { /* with its row: nobody would withdraw what has none */
		engine_owe(claim->vf, VHCA_OWED_REPORT);
		return;
	}
	txn = vhca_txn_new(e->args.store);
	commit_report(e, txn, engine_put_report(e, txn, claim, true));
}

/* ---- keys of guests that are to come ---- */

/* Its guest is to come; or it has come, and the SM, which wants a ticket first, has no binding. */
static bool is_coming(const struct vhca_claim *c)
{
	bool has_vf = c->vf->state == VHCA_VF_PROGRAMMED || c->vf->state == VHCA_VF_ATTACHED;

	if (c->awaited_signer[0])
		return has_vf || (c->migrating && !c->sm_code);
	/* On mlx5 they are the vGUID's own, and a stopped guest may be long in coming. */
	return c->migrating || (c->custody == VHCA_CUSTODY_RESERVED &&
				vhca_hca_identity(c->vf->hca)->host_pkey_map);
}

static uint16_t collect_coming_keys(struct vhca_engine *e, const struct vhca_hca *hca,
				    uint16_t ret[static VHCA_PKEY_TABLE_MAX])
{
	const struct vhca_claim *c;
	uint16_t n = 0;

	TAILQ_FOREACH (c, &e->model.claims, link) {
		if (vhca_claim_is_ending(c) || c->vf->hca != hca || !is_coming(c))
			continue;
		for (unsigned int i = 0; i < c->identity.n_pkeys && n < VHCA_PKEY_TABLE_MAX; i++)
			if (vhca_pkey_find(ret, n, c->identity.pkeys[i]) < 0)
				ret[n++] = c->identity.pkeys[i];
	}
	return n;
}

static void declare(struct vhca_engine *e, struct vhca_hca *hca, bool again)
{
	uint16_t keys[VHCA_PKEY_TABLE_MAX] = {0};
	uint16_t n = collect_coming_keys(e, hca, keys);
	uint64_t guid = hca->ports[hca->port - 1].port_guid;
	struct vhca_txn *txn;

	if (!guid || (!again && n == hca->n_declared &&
		      memcmp(keys, hca->declared, n * sizeof(keys[0])) == 0))
		return;
	memcpy(hca->declared, keys, sizeof(keys));
	hca->n_declared = n;
	if (!e->outbox || reports_later(e))
		return;
	txn = vhca_txn_new(e->args.store);
	commit_report(e, txn, vhca_outbox_put_members(e->outbox, txn, guid, keys, n));
}

void vhca_engine_declare_members(struct vhca_engine *e)
{
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &e->model.hcas, link)
		declare(e, hca, false);
}

void engine_declare_again(struct vhca_engine *e, struct vhca_hca *hca)
{
	declare(e, hca, true);
}

void vhca_engine_announce(struct vhca_engine *e, const struct vhca_claim *claim)
{
	struct vhca_sm_binding b = vhca_claim_binding(claim);

	make_move(claim, &b);
	if (e->outbox)
		vhca_outbox_prepare(e->outbox, &b);
}

bool engine_is_kept_for_guest(struct vhca_engine *e, const struct vhca_claim *c)
{
	return c->on_loan && c->arbitration_asked && c->vf->state == VHCA_VF_PROGRAMMED &&
	       !engine_runs_here(e, c);
}

/* Bindings first: no key that one of them needs leaves the port in between. */
void engine_report_hca(struct vhca_engine *e, struct vhca_hca *hca)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link) {
		if (!c->vf || c->vf->hca != hca || c->vf->state == VHCA_VF_UNMANAGED ||
		    c->boot == VHCA_BOOT_EARLIER || vhca_claim_is_withheld(c))
			continue;
		if (engine_is_kept_for_guest(e, c))
			vhca_engine_announce(e, c);
		else
			engine_report(e, c);
	}
	engine_declare_again(e, hca);
}

/* ---- a LID that follows: the host's, with its only guest, when that has arrived ---- */

static int lid_stays(struct vhca_error *err, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "lid_stays", 0, "%s", why);
}

/* The port's only guest has it. */
static int check_alone(const struct vhca_engine *e, const struct vhca_claim *claim,
		       struct vhca_error *err)
{
	const struct vhca_claim *c;

	if (!vhca_hca_identity(claim->vf->hca)->host_pkey_map)
		return lid_stays(err,
				 "lid_policy follow is for ConnectX-3: the VF here is a port of "
				 "its own");
	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c != claim && c->vf && c->vf->hca == claim->vf->hca &&
		    c->boot != VHCA_BOOT_EARLIER)
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "lid_stays", 0,
					      "the port has another VF's guest: %s/%s",
					      c->domain_name, c->name);
	return 0;
}

static bool is_unicast(uint16_t lid)
{
	return lid > 0 && lid < 0xc000;
}

int vhca_engine_check_lid(const struct vhca_engine *e, const struct vhca_claim *claim,
			  struct vhca_error *err)
{
	if (e->conf->lid_policy != VHCA_LID_FOLLOW)
		return lid_stays(err, "[sm] lid_policy of its host is not follow");
	if (claim->follow_lid)
		return lid_stays(err, "the LID that it had before is still on its way");
	if (!is_unicast(claim->vf->hca->ports[claim->vf->hca->port - 1].lid))
		return lid_stays(err, "the port has no LID");
	return check_alone(e, claim, err);
}

void engine_end_lid(struct vhca_engine *e, struct vhca_claim *c, const char *why)
{
	if (why)
		vhca_events_add_claim(e->args.events, "claim", c,
				      "the LID of its last host stays there: %s", why);
	else
		vhca_events_add_claim(e->args.events, "claim", c,
				      "LID %u of its last host has come with it", c->follow_lid);
	(void)snprintf(c->lid_reason, sizeof(c->lid_reason), "%s", why ? why : "");
	c->stayed_lid = why ? c->follow_lid : 0;
	c->follow_lid = 0;
	c->follow_port = 0;
}

void engine_plan_lid(struct vhca_engine *e, struct vhca_claim *c,
		     const struct vhca_reservation *res)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (e->conf->lid_policy != VHCA_LID_FOLLOW && !res->lid_follows)
		return; /* nobody asks for it */
	if (!res->lid_follows)
		(void)lid_stays(&err, res->lid_stays[0]
					      ? res->lid_stays
					      : "[sm] lid_policy of its last host is not follow");
	else if (e->conf->lid_policy != VHCA_LID_FOLLOW)
		(void)lid_stays(&err, "[sm] lid_policy of this host is not follow");
	else if (!res->from_port_guid || !is_unicast(res->from_lid))
		(void)lid_stays(&err, "its last host has not said which it is");
	else if (check_alone(e, c, &err) == 0) {
		c->follow_port = res->from_port_guid;
		c->follow_lid = res->from_lid;
		vhca_events_add_claim(e->args.events, "claim", c,
				      "LID %u of its host comes with it, when it is here",
				      c->follow_lid);
		return;
	}
	engine_end_lid(e, c, err.msg);
	c->stayed_lid = is_unicast(res->from_lid) ? res->from_lid : 0;
}

void engine_look_at_lid(struct vhca_engine *e, struct vhca_claim *c, enum vhca_vf_state to)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!c->follow_lid || to != VHCA_VF_ATTACHED)
		return;
	if (e->conf->lid_policy != VHCA_LID_FOLLOW)
		engine_end_lid(e, c, "[sm] lid_policy of this host is not follow any more");
	else if (check_alone(e, c, &err) < 0)
		engine_end_lid(e, c, err.msg);
}
