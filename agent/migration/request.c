/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What others ask of the machine: people and programs at the source; the source's agent and
 * libvirt's hook at the destination.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/migration/claims.h"
#include "agent/migration/journal.h"
#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "agent/migration/table.h"
#include "common/base/codes.h"
#include "common/base/file.h"

/* ---- source ---- */

/* Parked ones do nothing, and a drained host may have many. */
static unsigned int running(const struct vhca_migrations *ms)
{
	const struct vhca_mig *m;
	unsigned int n = 0;

	TAILQ_FOREACH (m, &ms->list, link)
		n += !vhca_mig_state_is_final(m->state) && m->state != VHCA_MIG_PARKED;
	return n;
}

static int check_start(struct vhca_migrations *ms, const struct vhca_domain *dom,
		       const struct vhca_mig_request *req, struct vhca_error *err)
{
	const struct vhca_mig *m;
	const struct vhca_claim *c;
	unsigned int n = 0;

	if (vhca_engine_check_disk(ms->args.engine, err) < 0)
		return -EIO;
	if (vhca_engine_check_readable(dom, err) < 0 || vhca_engine_check_runs(dom, err) < 0)
		return -EBUSY;
	if (req->mode != VHCA_MIG_MODE_PARK && !vhca_conf_peer(ms->args.conf, req->peer))
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_peer", 0,
				      "there is no [peer %.31s] in the configuration", req->peer);
	if (req->mode != VHCA_MIG_MODE_PARK &&
	    vhca_engine_check_memory(ms->args.engine, dom, err) < 0)
		return -ENOMEM;
	TAILQ_FOREACH (m, &ms->list, link)
		if (vhca_uuid_equal(&m->domain, &dom->info->uuid) &&
		    !vhca_mig_state_is_final(m->state))
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "migrating", EBUSY,
					      "domain %s: a migration is %s already",
					      dom->info->name, vhca_mig_state_to_string(m->state));
	VHCA_FOREACH_CLAIM_OF (c, ms->model, &dom->info->uuid) {
		n++;
		if (c->vf->state != VHCA_VF_ATTACHED || vhca_claim_is_ending(c))
			return vhca_error_set(
				err, VHCA_ERR_CONFLICT, "not_attached", EBUSY,
				"domain %s: VF %s is %s; wait until it is attached, or detach it",
				dom->info->name, c->name, vhca_vf_state_to_string(c->vf->state));
		if (c->origin == VHCA_ORIGIN_CLAIM)
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "own_hostdev", 0,
					      "domain %s: VF %s was claimed for a <hostdev> of the "
					      "domain's own, which "
					      "vhcad does not plug in again; detach it, migrate, "
					      "and attach one there",
					      dom->info->name, c->name);
	}
	if (!n)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "no_vf", 0,
				      "domain %s has no InfiniBand VF: migrate it with virsh",
				      dom->info->name);
	if (running(ms) >= VHCA_MIGRATIONS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_migrations", EBUSY,
				      "%u migrations are running", running(ms));
	return 0;
}

/*
 * From now on the claims are the migration's: written with its first step. What keeps its LID here
 * is said before anything has changed.
 */
static void take_claims(struct vhca_mig *m)
{
	bool follows =
		m->owner->args.conf->lid_policy == VHCA_LID_FOLLOW && m->mode != VHCA_MIG_MODE_PARK;
	struct vhca_claim *c;

	VHCA_FOREACH_CLAIM_OF (c, m->owner->model, &m->domain) {
		struct vhca_error why = VHCA_ERROR_INIT;

		vhca_claim_join(c, &m->id);
		if (follows && vhca_migration_check_lid(m, c, &why) < 0)
			vhca_events_add_claim(m->owner->args.events, "claim", c,
					      "the host's LID does not go with it: %s", why.msg);
	}
}

int vhca_migrations_request(struct vhca_migrations *ms, const struct vhca_mig_request *req,
			    const struct vhca_mig **ret, struct vhca_error *err)
{
	struct vhca_domain *dom = vhca_model_domain(ms->model, &req->domain);
	struct vhca_mig *m;
	struct vhca_uuid id;
	int r;

	if (!dom)
		return vhca_engine_no_such_domain(ms->args.engine, VHCA_UUID_STR(&req->domain),
						  err);
	r = check_start(ms, dom, req, err);
	if (r < 0)
		return r;
	if (req->id)
		id = *req->id;
	m = !req->id && vhca_uuid_random(&id) < 0 ? NULL : mig_new(ms, &id);
	if (!m)
		return vhca_error_no_memory(err, "migration");
	m->source = true;
	m->mode = req->mode;
	m->lease_ms = req->lease_ms ? req->lease_ms : ms->args.conf->external_lease_ms;
	if (req->lease_ms == VHCA_MIG_NO_LEASE)
		m->lease_ms = 0;
	m->copy = req->copy ? *req->copy : ms->args.conf->copy;
	m->domain = req->domain;
	(void)vhca_strcpy(m->domain_name, sizeof(m->domain_name), dom->info->name); /* same size */
	if (req->mode != VHCA_MIG_MODE_PARK)
		(void)vhca_strcpy(m->peer, sizeof(m->peer), req->peer); /* a configured name */
	mig_displace(m);
	take_claims(m);
	mig_event(m, MIG_ON_START);
	*ret = m;
	return 0;
}

int vhca_migrations_start(struct vhca_migrations *ms, const struct vhca_uuid *domain,
			  const char *peer, const struct vhca_mig **ret, struct vhca_error *err)
{
	struct vhca_mig_request req = {.domain = *domain, .peer = peer};

	return vhca_migrations_request(ms, &req, ret, err);
}

static int find_own(struct vhca_migrations *ms, const struct vhca_uuid *id, struct vhca_mig **ret,
		    struct vhca_error *err)
{
	*ret = mig_find(ms, id);
	if (*ret && (*ret)->source)
		return 0;
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0, "migration %s",
			      VHCA_UUID_STR(id));
}

int vhca_migrations_extend(struct vhca_migrations *ms, const struct vhca_uuid *id,
			   uint64_t lease_ms, struct vhca_error *err)
{
	struct vhca_mig *m;
	int r = find_own(ms, id, &m, err);

	if (r < 0)
		return r;
	if (m->mode == VHCA_MIG_MODE_MANAGED || mig_is_cancelled(m) || m->failure.kind ||
	    (m->state > VHCA_MIG_PARKED))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "no_lease", 0,
				      "migration of %s is %s and waits for nobody", m->domain_name,
				      vhca_mig_state_to_string(m->state));
	if (mig_is_committing(m))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "busy", EAGAIN,
				      "migration of %s is going on just now; ask again",
				      m->domain_name);
	m->lease_ms = lease_ms;
	mig_event(m, MIG_ON_EXTEND);
	return 0;
}

int vhca_migrations_cancel(struct vhca_migrations *ms, const struct vhca_uuid *id,
			   struct vhca_error *err)
{
	struct vhca_mig *m;
	int r = find_own(ms, id, &m, err);

	if (r < 0)
		return r;
	if (vhca_mig_state_is_final(m->state) || m->state == VHCA_MIG_FINISHING)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_TOO_LATE, 0,
				      "migration of %s is %s", m->domain_name,
				      vhca_mig_state_to_string(m->state));
	mig_cancel(m);
	return 0;
}

/* ---- destination ---- */

static bool is_reserved(const struct vhca_mig *m, const struct vhca_reservation *vf)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!strcmp(c->name, vf->req.vf.name))
			return true;
	return false;
}

static unsigned int count_missing(const struct vhca_mig *m, const struct vhca_mig_offer *offer)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < offer->n_vfs; i++)
		n += !is_reserved(m, &offer->vfs[i]);
	return n;
}

static int reserve_missing(struct vhca_mig *m, const struct vhca_mig_offer *offer,
			   struct vhca_error *err)
{
	struct vhca_claim *c;

	for (unsigned int i = 0; i < offer->n_vfs; i++) {
		int r;

		if (is_reserved(m, &offer->vfs[i]))
			continue;
		r = vhca_engine_reserve(m->owner->args.engine, &offer->vfs[i], &c, err);

		if (r < 0) {
			vhca_error_prefix(err, "VF %s", offer->vfs[i].req.vf.name);
			return r;
		}
	}
	return 0;
}

/*
 * Each VF's claim is a transaction of its own: an agent that was killed between them knows of some
 * VFs only. The source has had no answer then, and offers all of them again.
 */
static int complete(struct vhca_mig *m, const struct vhca_mig_offer *offer, struct vhca_error *err)
{
	int r;

	if (m->source || mig_is_cancelled(m) || m->state > VHCA_MIG_RESERVED ||
	    !count_missing(m, offer))
		return 0;
	if (mig_is_committing(m))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "busy", EAGAIN,
				      "migration of %s is going on just now; ask again",
				      m->domain_name);
	r = reserve_missing(m, offer, err);
	if (r < 0) {
		mig_fail(m, err);
		mig_cancel(m);
		return r;
	}
	mig_event(m, MIG_ON_OFFER);
	return 0;
}

/* It migrated away from here, and comes back before that has come to its end. */
static bool is_still_leaving(const struct vhca_migrations *ms, const struct vhca_uuid *domain)
{
	const struct vhca_mig *m;
	const struct vhca_claim *c;

	TAILQ_FOREACH (m, &ms->list, link)
		if (m->state == VHCA_MIG_FINISHING && vhca_migration_claim(m, NULL) &&
		    vhca_uuid_equal(&m->domain, domain))
			return true;
	VHCA_FOREACH_CLAIM_OF (c, ms->model, domain)
		if (vhca_claim_is_ending(c) && !vhca_model_domain(ms->model, domain))
			return true;
	return false;
}

static int new_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
		     struct vhca_mig **ret, struct vhca_error *err)
{
	struct vhca_mig *m;

	if (vhca_engine_check_disk(ms->args.engine, err) < 0)
		return -EIO;
	if (running(ms) >= VHCA_MIGRATIONS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_migrations", EBUSY,
				      "%u migrations are running", running(ms));
	if (is_still_leaving(ms, &offer->domain))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "busy", EAGAIN,
				      "domain %s is still leaving here; ask again",
				      offer->domain_name);
	if (vhca_model_domain(ms->model, &offer->domain))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "domain_exists", EEXIST,
				      "domain %s runs here", offer->domain_name);
	if (vhca_guest_memory_check_limit(&offer->memory, offer->domain_name, &offer->domain, err) <
	    0)
		return -ENOMEM;
	m = mig_new(ms, &offer->id);
	if (!m)
		return vhca_error_no_memory(err, "migration");
	m->domain = offer->domain;
	m->mode = offer->mode;
	(void)vhca_strcpy(m->domain_name, sizeof(m->domain_name),
			  offer->domain_name); /* same size */
	m->memory = offer->memory;
	(void)snprintf(m->peer, sizeof(m->peer), "%s", offer->node);
	mig_displace(m);
	*ret = m;
	return 0;
}

/* What is being written counts already. */
static enum vhca_mig_state state_to_come(const struct vhca_mig *m)
{
	return mig_is_committing(m) ? m->next : m->state;
}

static bool is_expected(const struct vhca_mig *m)
{
	enum vhca_mig_state state = state_to_come(m);

	return !m->source && !m->pinned && !mig_domain(m) && state >= VHCA_MIG_RESERVING &&
	       state <= VHCA_MIG_INCOMING;
}

uint64_t vhca_migrations_memory_coming(const struct vhca_migrations *ms,
				       const struct vhca_guest_memory *like)
{
	const struct vhca_mig *m;
	uint64_t kib = 0;

	TAILQ_FOREACH (m, &ms->list, link)
		if (is_expected(m) && m->memory.pages == like->pages &&
		    m->memory.page_kib == like->page_kib)
			kib += m->memory.kib;
	return kib;
}

void vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
			   vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_mig *m = mig_find(ms, &offer->id);
	int r = 0;

	if (!m) {
		r = new_offer(ms, offer, &m, &err);
		if (r < 0) {
			mig_answer_later(ms, fn, arg, &err);
			return;
		}
		/* What could be reserved is ended again with the migration. */
		if (reserve_missing(m, offer, &err) < 0)
			mig_fail(m, &err);
		mig_event(m, MIG_ON_OFFER);
	} else if (complete(m, offer, &err) < 0) {
		mig_answer_later(ms, fn, arg, &err);
		return;
	}
	if (m->source || mig_await(m, VHCA_MIG_RESERVED, fn, arg) < 0) {
		vhca_error_set(&err, VHCA_ERR_CONFLICT, "own_migration", 0,
			       "migration %s is one of this node's own", VHCA_UUID_STR(&offer->id));
		mig_answer_later(ms, fn, arg, &err);
		return;
	}
	if (!mig_is_committing(m))
		mig_again(m, 0);
}

/* The claim was durable, and the agent killed before the migration's state was. */
static bool has_taken(const struct vhca_claim *c, uint64_t epoch)
{
	return !vhca_claim_is_withheld(c) && c->epoch == epoch;
}

/* Whoever is at the source reads this: the peer's hint does not get there. */
static int check_handed(const struct vhca_claim *c, const struct vhca_mig_handed *all,
			unsigned int n, struct vhca_error *err)
{
	const struct vhca_mig_handed *handed = NULL;

	for (unsigned int i = 0; i < n; i++)
		if (all[i].guid == c->identity.guid)
			handed = &all[i];
	if (!handed)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_not_handed_over", 0,
				      "VF %s was offered and is not handed over: at the source it "
				      "was detached meanwhile; migrate again, and the domain goes "
				      "without it",
				      c->name);
	if (handed->epoch <= c->epoch && !has_taken(c, handed->epoch))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "stale_epoch", 0,
				      "GUID %s: epoch %llu was handed over, %llu is known",
				      VHCA_GUID_STR(c->identity.guid),
				      (unsigned long long)handed->epoch,
				      (unsigned long long)c->epoch);
	return 0;
}

static int take_epochs(struct vhca_mig *m, const struct vhca_mig_handed *handed, unsigned int n,
		       struct vhca_error *err)
{
	struct vhca_claim *c = NULL;
	int r = 0;

	while (!r && (c = vhca_migration_claim(m, c)))
		r = check_handed(c, handed, n, err);
	if (r < 0)
		return r;
	while ((c = vhca_migration_claim(m, c)))
		for (unsigned int i = 0; i < n; i++)
			if (handed[i].guid == c->identity.guid && !has_taken(c, handed[i].epoch)) {
				vhca_engine_prove(c, handed[i].proof);
				vhca_engine_return(m->owner->args.engine, c, handed[i].epoch);
			}
	return 0;
}

/* What was promised was taken before it was handed over. */
static void take_late_proofs(struct vhca_mig *m, const struct vhca_mig_handed *handed,
			     unsigned int n)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		for (unsigned int i = 0; i < n; i++)
			if (handed[i].guid == c->identity.guid && handed[i].proof &&
			    has_taken(c, handed[i].epoch))
				vhca_engine_prove_late(m->owner->args.engine, c, handed[i].proof);
}

void vhca_migrations_handover(struct vhca_migrations *ms, const struct vhca_uuid *id,
			      const struct vhca_mig_handed *handed, unsigned int n,
			      vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_mig *m = mig_find(ms, id);
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t lease_until;
	int r = 0;

	if (!m || m->source)
		r = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0, "migration %s",
				   VHCA_UUID_STR(id));
	else if (m->state < VHCA_MIG_RESERVED ||
		 (m->state == VHCA_MIG_RESERVED &&
		  (mig_is_committing(m) || !mig_all(m, mig_claim_can_take))))
		r = vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "not_reserved", EAGAIN,
				   "migration %s is not reserved yet", VHCA_UUID_STR(id));
	else if (m->state == VHCA_MIG_RESERVED)
		r = take_epochs(m, handed, n, &err);
	else
		take_late_proofs(m, handed, n);
	if (!r && mig_await(m, VHCA_MIG_INCOMING, fn, arg) < 0)
		r = vhca_error_no_memory(&err, "migration");
	if (r < 0) {
		mig_answer_later(ms, fn, arg, &err);
		return;
	}
	if (m->state == VHCA_MIG_RESERVED) {
		mig_event(m, MIG_ON_HANDED);
		return;
	}
	/*
	 * A source that was restarted asks again; one that waits for an orchestrator, or for
	 * libvirt's copy, every now and then.
	 */
	lease_until = vhca_now_ms() + ms->args.conf->lease_ms;
	if (m->lease_until < lease_until) /* a big guest may have longer already */
		m->lease_until = lease_until;
	mig_again(m, 0);
}

/* Nobody can call it back any more, whether its VFs were handed over yet or not. */
static bool has_arrived(const struct vhca_mig *m)
{
	const struct vhca_domain *dom = mig_domain(m);

	return m->state == VHCA_MIG_ATTACHING || m->state == VHCA_MIG_DONE ||
	       (m->pinned && m->state < VHCA_MIG_ENDING && dom && !dom->incoming);
}

void vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
			 vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_mig *m = mig_find(ms, id);
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!m) {
		m = mig_new(ms, id);
		if (m) {
			/* nothing to end, but a late offer must not start it */
			m->state = VHCA_MIG_ENDING;
			mig_displace(m);
		}
	}
	if (!m || m->source || has_arrived(m)) {
		mig_answer_later(ms, fn, arg, &mig_too_late);
		return;
	}
	vhca_error_set(&err, VHCA_ERR_CONFLICT, "aborted", 0, "given up by the source");
	mig_fail(m, &err);
	if (mig_await(m, VHCA_MIG_ENDED, fn, arg) < 0) {
		mig_answer_later(ms, fn, arg, &err);
		return;
	}
	mig_cancel(m);
}

static bool is_of_an_earlier_boot(const struct vhca_claim *c)
{
	return c->boot == VHCA_BOOT_EARLIER;
}

/*
 * Of a managed migration the hand-over comes while the guest does; an orchestrator has been told
 * when to begin.
 */
static bool admits(const struct vhca_mig *m)
{
	enum vhca_mig_state state = state_to_come(m);

	/* This host was restarted, and the migration has not got to that yet. */
	if (!vhca_migration_claim(m, NULL) || mig_any(m, is_of_an_earlier_boot))
		return false;
	if (m->mode == VHCA_MIG_MODE_MANAGED &&
	    (state == VHCA_MIG_RESERVED || state == VHCA_MIG_PROGRAMMING))
		return true;
	return state == VHCA_MIG_INCOMING;
}

int vhca_migrations_begin(struct vhca_migrations *ms, const struct vhca_uuid *id,
			  const struct vhca_uuid *domain, struct vhca_error *err)
{
	struct vhca_mig *m = mig_find(ms, id);
	uint64_t lease_ms;

	if (!m || m->source || !vhca_uuid_equal(&m->domain, domain) || mig_is_cancelled(m) ||
	    !admits(m))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "not_prepared", 0,
				      "this host has no InfiniBand VFs ready for migration %s of "
				      "this domain; start it with vhcactl migrate "
				      "at the source",
				      VHCA_UUID_STR(id));
	m->begun = true;
	/* durable with the next move; after a restart the lease starts anew and is long enough */
	m->pinned = true;
	/* For the domain to appear: QEMU may have to fill its huge pages with zeros first. */
	lease_ms = ms->args.conf->lease_ms + vhca_guest_memory_ms(m->memory.kib);
	m->lease_until = vhca_now_ms() + lease_ms;
	mig_again(m, lease_ms);
	return 0;
}
