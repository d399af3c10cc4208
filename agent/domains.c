/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/domains.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"

#define LIST_RETRY_FIRST_MS 1000
#define LIST_RETRY_CAP_MS   60000
/* Events get lost, and what was read may have been older than they. */
#define LIST_AGAIN_MS 600000
/* Who waits for libvirt's word gives up himself at some time: ebrctl after 10 s. */
#define LOOK_MS 3000

/* Who waits for what a call says that was begun after he asked. */
struct looker {
	TAILQ_ENTRY(looker) link;
	struct look *look;
	unsigned int call; /* by its number */
	struct vhca_timer *timer;
	void (*fn)(void *arg, bool known);
	void *arg;
};

/* A look at one domain: at most one call under way, at most one more to follow. */
struct look {
	TAILQ_ENTRY(look) link;
	struct vhca_domains *d;
	struct vhca_uuid uuid;
	unsigned int calls; /* begun so far */
	TAILQ_HEAD(, looker) lookers;
	bool again;
	/* what it brings may be older than what an event has told; another look follows */
	bool stale;
	bool failed; /* nothing is under way; the timer looks again */
};

struct vhca_domains {
	struct vhca_loop *loop;
	struct vhca_engine *engine;
	struct vhca_virt *virt;
	struct vhca_timer *list_timer;
	struct vhca_backoff list_backoff;
	struct vhca_timer *unreadable_timer;
	struct vhca_backoff unreadable_backoff;
	bool looks_later;		 /* the timer is armed */
	struct vhca_timer *failed_timer; /* of looks that failed */
	struct vhca_backoff failed_backoff;
	bool fails_later; /* it is armed: one look that fails often does not put off the others */
	bool connected;
	bool is_listed;	    /* since it was connected last */
	unsigned int news;  /* what events and looks have told, counted */
	unsigned int known; /* ...when the list was asked for */
	TAILQ_HEAD(, look) looks;
};

/* ---- looking ---- */

static void on_info(void *arg, int rc, const struct vhca_dom_info *info,
		    const struct vhca_error *request_err, const struct vhca_error *err);

/* Nobody tells when a domain can be read again. */
static void await_readable(struct vhca_domains *d)
{
	if (!vhca_engine_has_unreadable(d->engine)) {
		vhca_backoff_reset(&d->unreadable_backoff);
		return;
	}
	if (d->looks_later)
		return;
	d->looks_later = true;
	vhca_timer_arm_ms(d->unreadable_timer, vhca_backoff_next(&d->unreadable_backoff));
}

static void on_unreadable_timer(void *arg)
{
	struct vhca_domains *d = arg;
	const struct vhca_domain *dom;

	d->looks_later = false;
	TAILQ_FOREACH (dom, &vhca_engine_model(d->engine)->domains, link)
		if (dom->unreadable.kind)
			vhca_domains_refresh(d, &dom->info->uuid);
	await_readable(d);
}

static void look_at(struct look *look)
{
	look->again = look->failed = false;
	look->calls++;
	vhca_virt_info(look->d->virt, &look->uuid, on_info, look);
}

static void end_looker(struct looker *l, bool known)
{
	TAILQ_REMOVE(&l->look->lookers, l, link);
	l->fn(l->arg, known);
	vhca_timer_free(l->timer);
	free(l);
}

static void on_looker_timer(void *arg)
{
	end_looker(arg, false);
}

/* Those of the calls up to this one. */
static void tell_lookers(struct look *look, unsigned int call, bool known)
{
	struct looker *l;

	while ((l = TAILQ_FIRST(&look->lookers)) && l->call <= call)
		end_looker(l, known);
}

static void on_failed_timer(void *arg)
{
	struct vhca_domains *d = arg;
	struct look *look, *next;

	d->fails_later = false;
	for (look = TAILQ_FIRST(&d->looks); look; look = next) {
		next = TAILQ_NEXT(look, link);
		if (look->failed)
			look_at(look);
	}
}

static void on_info(void *arg, int rc, const struct vhca_dom_info *info,
		    const struct vhca_error *request_err, const struct vhca_error *err)
{
	struct look *look = arg;
	struct vhca_domains *d = look->d;
	bool is_answer = rc == 0 || rc == -ENOENT || rc == -ESRCH, is_stale = look->stale;

	(void)request_err; /* inside info, too */
	if (is_answer && !is_stale) {
		d->news++;
		if (rc == -ESRCH)
			vhca_engine_no_domain(d->engine, &look->uuid);
		else
			vhca_engine_domain(d->engine, &look->uuid, rc == 0 ? info : NULL);
	}
	if (is_answer)
		vhca_backoff_reset(&d->failed_backoff);
	look->stale = false;
	await_readable(d);
	if (!is_stale)
		tell_lookers(look, look->calls, is_answer);
	if (look->again) {
		look_at(look);
	} else if (is_answer || !d->connected) {
		/* A connection that broke is followed by a full listing. */
		TAILQ_REMOVE(&d->looks, look, link);
		free(look);
	} else {
		vhca_log_warning("%s: cannot read its XML: %s", VHCA_UUID_STR(&look->uuid),
				 err->msg);
		look->failed = true;
		if (!d->fails_later)
			vhca_timer_arm_ms(d->failed_timer, vhca_backoff_next(&d->failed_backoff));
		d->fails_later = true;
	}
}

static struct look *find_look(struct vhca_domains *d, const struct vhca_uuid *uuid)
{
	struct look *look;

	TAILQ_FOREACH (look, &d->looks, link)
		if (vhca_uuid_equal(&look->uuid, uuid))
			return look;
	look = calloc(1, sizeof(*look));
	if (!look)
		return NULL;
	look->d = d;
	look->uuid = *uuid;
	look->failed = true; /* nothing is under way */
	TAILQ_INIT(&look->lookers);
	TAILQ_INSERT_TAIL(&d->looks, look, link);
	return look;
}

static void look_once_more(struct look *look)
{
	if (look->failed)
		look_at(look);
	else
		look->again = true;
}

void vhca_domains_refresh(struct vhca_domains *d, const struct vhca_uuid *uuid)
{
	struct look *look = find_look(d, uuid);

	if (look)
		look_once_more(look);
}

void vhca_domains_look(struct vhca_domains *d, const struct vhca_uuid *uuid,
		       void (*fn)(void *arg, bool known), void *arg)
{
	struct looker *l = d->connected ? calloc(1, sizeof(*l)) : NULL;
	struct look *look = l ? find_look(d, uuid) : NULL;

	if (!look || vhca_timer_new(d->loop, "look", on_looker_timer, l, &l->timer) < 0) {
		free(l);
		fn(arg, false);
		return;
	}
	l->look = look;
	l->call = look->calls + 1;
	l->fn = fn;
	l->arg = arg;
	TAILQ_INSERT_TAIL(&look->lookers, l, link);
	vhca_timer_arm_ms(l->timer, LOOK_MS);
	look_once_more(look);
}

static void on_list(void *arg, int rc, struct vhca_dom_info *const *infos, unsigned int n,
		    const struct vhca_error *err)
{
	struct vhca_domains *d = arg;

	if (rc < 0) {
		vhca_log_warning("libvirt: cannot list domains: %s", err->msg);
		vhca_timer_arm_ms(d->list_timer, vhca_backoff_next(&d->list_backoff));
		return;
	}
	/* What was told meanwhile may be newer than the list, which is needed at the start
	 * alone. */
	if (d->is_listed && d->news != d->known) {
		vhca_timer_arm_ms(d->list_timer, vhca_backoff_next(&d->list_backoff));
		return;
	}
	vhca_log_info("libvirt: %u active domains", n);
	d->is_listed = true;
	vhca_backoff_reset(&d->list_backoff);
	vhca_timer_arm_ms(d->list_timer, LIST_AGAIN_MS);
	vhca_engine_virt_sync(d->engine, infos, n);
	await_readable(d);
}

static void list(struct vhca_domains *d)
{
	d->known = d->news;
	vhca_virt_list(d->virt, on_list, d);
}

static void on_list_timer(void *arg)
{
	struct vhca_domains *d = arg;

	if (vhca_virt_connected(d->virt))
		list(d);
}

/* ---- events ---- */

/* What a guest's blackout would wait for is known at once. */
static void tell(struct vhca_domains *d, const struct vhca_virt_event_data *data)
{
	bool is_here = data->event == VHCA_VIRT_RESUMED_MIGRATED;
	struct look *look;

	if (data->event == VHCA_VIRT_DEVICE_REMOVED)
		vhca_engine_device_removed(d->engine, &data->uuid, data->alias, data->at_us);
	else if (is_here || data->event == VHCA_VIRT_RESUMED || data->event == VHCA_VIRT_SUSPENDED)
		vhca_engine_guest_state(d->engine, &data->uuid, is_here, data->at_us);
	else
		return;
	TAILQ_FOREACH (look, &d->looks, link)
		if (!look->failed && vhca_uuid_equal(&look->uuid, &data->uuid))
			look->stale = true;
}

static void on_virt(void *arg, const struct vhca_virt_event_data *data)
{
	struct vhca_domains *d = arg;

	if (data->event == VHCA_VIRT_CONNECTED) {
		d->connected = true;
		list(d);
		return;
	}
	if (data->event == VHCA_VIRT_DISCONNECTED) {
		d->connected = d->is_listed = false;
		vhca_engine_virt_lost(d->engine);
		return;
	}
	d->news++;
	tell(d, data);
	vhca_domains_refresh(d, &data->uuid);
}

/* ---- effects ---- */

struct call {
	struct vhca_domains *d;
	struct vhca_vf *vf;
	enum vhca_effect effect;
};

static void on_call(void *arg, int rc, const struct vhca_error *err)
{
	VHCA_AUTO_FREE struct call *call = arg;
	struct vhca_effect_result res = {.rc = rc, .called_us = vhca_virt_called_us(call->d->virt)};

	if (err)
		res.err = *err;
	vhca_engine_effect_done(call->d->engine, call->vf, call->effect, &res);
}

static void on_qga(void *arg, int rc, const struct vhca_qga_answer *answer,
		   const struct vhca_error *err)
{
	VHCA_AUTO_FREE struct call *call = arg;
	struct vhca_effect_result res = {.rc = rc, .err = *err, .guest = *answer};

	vhca_engine_effect_done(call->d->engine, call->vf, call->effect, &res);
}

void vhca_domains_effect(struct vhca_domains *d, struct vhca_vf *vf, enum vhca_effect effect)
{
	const struct vhca_claim *c = vf->claim;
	struct call *call = calloc(1, sizeof(*call));
	const struct vhca_dom_hostdev *dev = NULL;
	char alias[sizeof(dev->alias)];

	if (!call) {
		vhca_log_error("%s: out of memory", VHCA_BDF_STR(vf->bdf));
		abort(); /* the engine would wait for ever; a restart recovers from the journal */
	}
	*call = (struct call){.d = d, .vf = vf, .effect = effect};
	if (effect == VHCA_EFFECT_ATTACH) {
		vhca_virt_attach(d->virt, &c->domain, vf->bdf, c->name,
				 c->has_guest ? &c->guest : NULL, on_call, call);
		return;
	}
	(void)vhca_model_user(vhca_engine_model(d->engine), vf->bdf, &dev);
	if (effect == VHCA_EFFECT_ASK_GUEST_AGENT) {
		struct vhca_qga_ask ask = {.pid = vf->escalation.pid};

		if (dev)
			ask.path = dev->path;
		vhca_virt_qga(d->virt, &c->domain, &ask, on_qga, call);
		return;
	}
	/*
	 * A device that an orchestrator, or an adopted domain's XML, brought has an alias of its
	 * own.
	 */
	if (dev && dev->alias[0])
		(void)vhca_strcpy(alias, sizeof(alias), dev->alias); /* same size */
	else
		(void)snprintf(alias, sizeof(alias), "%s%s", VHCA_ALIAS_PREFIX, c->name);
	vhca_virt_detach(d->virt, &c->domain, alias, on_call, call);
}

/* ---- migrations ---- */

struct mig_call {
	struct vhca_domains *d;
	struct vhca_mig *m;
	enum vhca_mig_effect effect;
	struct vhca_uuid domain;
};

static void mig_done(struct mig_call *call, const struct vhca_mig_result *res)
{
	vhca_domains_refresh(call->d, &call->domain);
	vhca_migrations_effect_done(call->m, call->effect, res);
	free(call);
}

static void on_mig_call(void *arg, int rc, const struct vhca_error *err)
{
	struct mig_call *call = arg;
	struct vhca_mig_result res = {.rc = rc, .called_us = vhca_virt_called_us(call->d->virt)};

	res.dirty_is_known = vhca_virt_dirty(call->d->virt).is_known;
	res.dirty_mib = vhca_virt_dirty(call->d->virt).mib;
	if (err)
		res.err = *err;
	mig_done(call, &res);
}

static void on_mig_job(void *arg, int rc, const struct vhca_virt_job *job,
		       const struct vhca_error *err)
{
	struct vhca_mig_result res = {
		.rc = rc, .active = job->active, .copying = job->migrating_out, .held = job->held};

	if (err)
		res.err = *err;
	mig_done(arg, &res);
}

/*
 * Its libvirt has undefined the domain where it came from, autostart and all. What an orchestrator
 * moves is its own business.
 */
static bool started_by_itself(struct vhca_domains *d, const struct vhca_mig *m)
{
	const struct vhca_domain *dom = vhca_model_domain(vhca_engine_model(d->engine), &m->domain);

	return !m->source && dom && dom->info->away_autostart &&
	       vhca_uuid_equal(&dom->info->away, &m->id);
}

void vhca_domains_migration(struct vhca_domains *d, const struct vhca_conf *conf,
			    struct vhca_mig *m, enum vhca_mig_effect effect)
{
	struct mig_call *call = calloc(1, sizeof(*call));
	bool is_managed = m->mode == VHCA_MIG_MODE_MANAGED;

	if (!call)
		abort(); /* the migration would wait for ever; a restart goes on from the journal */
	*call = (struct mig_call){.d = d, .m = m, .effect = effect, .domain = m->domain};
	if (effect == VHCA_MIG_EFFECT_MARK) {
		/* The first call of a migration: what the last one would wait for is begun, too. */
		if (is_managed)
			vhca_virt_expect_migration(d->virt, &m->domain, true);
		vhca_virt_set_marker(d->virt, &m->domain, &m->id, is_managed, on_mig_call, call);
	} else if (effect == VHCA_MIG_EFFECT_UNMARK) {
		if (m->source)
			vhca_virt_expect_migration(d->virt, &m->domain, false);
		vhca_virt_set_marker(d->virt, &m->domain, NULL, started_by_itself(d, m),
				     on_mig_call, call);
	} else if (effect == VHCA_MIG_EFFECT_COPY) {
		const struct vhca_conf_peer *peer = vhca_conf_peer(conf, m->peer);

		/*
		 * A peer that left the configuration: libvirt refuses the empty address, and the
		 * migration rolls back with that reason.
		 */
		vhca_virt_migrate(d->virt, &m->domain, peer ? peer->libvirt : "",
				  peer && peer->migration[0] ? peer->migration : NULL, &m->copy,
				  on_mig_call, call);
	} else if (effect == VHCA_MIG_EFFECT_CHECK) {
		struct vhca_bdf ours[VHCA_MIGRATION_VFS_MAX];
		struct vhca_claim *c = NULL;
		unsigned int n = 0;

		while (n < VHCA_ARRAY_SIZE(ours) && (c = vhca_migration_claim(m, c)))
			ours[n++] = c->vf->bdf;
		/*
		 * The dirty rate is asked for only where a bandwidth is: without one no time
		 * follows from it.
		 */
		vhca_virt_check(d->virt, &m->domain, ours, n, m->copy.bandwidth_mib > 0,
				on_mig_call, call);
	} else if (effect == VHCA_MIG_EFFECT_NO_START) {
		vhca_virt_no_start(d->virt, &m->domain, on_mig_call, call);
	} else if (effect == VHCA_MIG_EFFECT_CANCEL) {
		vhca_virt_abort_job(d->virt, &m->domain, on_mig_call, call);
	} else {
		vhca_virt_job(d->virt, &m->domain, on_mig_job, call);
	}
}

/* ---- life ---- */

int vhca_domains_new(struct vhca_loop *loop, const char *uri, struct vhca_engine *engine,
		     struct vhca_domains **ret, struct vhca_error *err)
{
	struct vhca_domains *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return vhca_error_no_memory(err, "libvirt");
	d->loop = loop;
	d->engine = engine;
	d->list_backoff =
		(struct vhca_backoff){.first_ms = LIST_RETRY_FIRST_MS, .cap_ms = LIST_RETRY_CAP_MS};
	d->unreadable_backoff = d->failed_backoff = d->list_backoff;
	TAILQ_INIT(&d->looks);
	r = vhca_timer_new(loop, "list", on_list_timer, d, &d->list_timer);
	if (r == 0)
		r = vhca_timer_new(loop, "unreadable", on_unreadable_timer, d,
				   &d->unreadable_timer);
	if (r == 0)
		r = vhca_timer_new(loop, "failed looks", on_failed_timer, d, &d->failed_timer);
	if (r == 0)
		r = vhca_virt_new(loop, uri, on_virt, d, &d->virt);
	if (r < 0) {
		vhca_domains_free(d);
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "start", -r,
				      "cannot start the libvirt adapter");
	}
	*ret = d;
	return 0;
}

struct vhca_domains *vhca_domains_free(struct vhca_domains *d)
{
	struct look *look;

	if (!d)
		return NULL;
	if (d->virt)
		vhca_virt_free(d->virt);
	vhca_timer_free(d->list_timer);
	vhca_timer_free(d->unreadable_timer);
	vhca_timer_free(d->failed_timer);
	while ((look = TAILQ_FIRST(&d->looks))) {
		tell_lookers(look, UINT_MAX, false);
		TAILQ_REMOVE(&d->looks, look, link);
		free(look);
	}
	free(d);
	return NULL;
}

struct vhca_virt *vhca_domains_virt(struct vhca_domains *d)
{
	return d->virt;
}
