/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

#define EPOCHS_AT_ONCE 1024 /* are forgotten: to sort them for each would be a waste */

static const char *const origin_names[] = {"metadata", "attach", "claim"};

static const char *const custody_names[] = {"here",	"restored", "leaving",
					    "withheld", "bare",	    "reserved"};

static const struct {
	const char *name;
	enum vhca_effect_room room;
} effects[] = {
	[VHCA_EFFECT_NONE] = {"none", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_PROBE] = {"probe", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_PREPARE] = {"prepare", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_PROGRAM] = {"program", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_UNMAP] = {"unmap", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_READ] = {"read", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_REREQUEST_GUID] = {"kick", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_AWAIT_SM_GUID] = {"choose", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_SCRUB] = {"scrub", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_SCRUB_IN_GUEST] = {"strip", VHCA_EFFECT_AT_HOST},
	[VHCA_EFFECT_ATTACH] = {"attach", VHCA_EFFECT_AT_LIBVIRT},
	[VHCA_EFFECT_DETACH] = {"detach", VHCA_EFFECT_AT_LIBVIRT},
	[VHCA_EFFECT_ASK_GUEST_AGENT] = {"ask", VHCA_EFFECT_AT_LIBVIRT},
};

const char *vhca_origin_to_string(enum vhca_origin origin)
{
	return origin_names[origin];
}

int vhca_origin_parse(const char *word, enum vhca_origin *ret)
{
	int i = vhca_word_find(origin_names, VHCA_ARRAY_SIZE(origin_names), word);

	if (i < 0)
		return i;
	*ret = (enum vhca_origin)i;
	return 0;
}

const char *vhca_effect_to_string(enum vhca_effect effect)
{
	return effects[effect].name;
}

enum vhca_effect_room vhca_effect_room(enum vhca_effect effect)
{
	return effects[effect].room;
}

const char *vhca_custody_to_string(enum vhca_custody custody)
{
	return custody_names[custody];
}

int vhca_custody_parse(const char *word, enum vhca_custody *ret)
{
	int i = vhca_word_find(custody_names, VHCA_ARRAY_SIZE(custody_names), word);

	if (i < 0)
		return i;
	*ret = (enum vhca_custody)i;
	return 0;
}

bool vhca_claim_is_ending(const struct vhca_claim *claim)
{
	return claim->end == VHCA_END_ASKED || claim->end == VHCA_END_FORCED;
}

bool vhca_claim_is_withheld(const struct vhca_claim *claim)
{
	return claim->custody == VHCA_CUSTODY_WITHHELD || claim->custody == VHCA_CUSTODY_BARE ||
	       claim->custody == VHCA_CUSTODY_RESERVED;
}

void vhca_port_name(uint64_t guid, char ret[static VHCA_NAME_MAX])
{
	(void)snprintf(ret, VHCA_NAME_MAX, "mac-%06x%06x", (unsigned int)(guid >> 40),
		       (unsigned int)(guid & 0xffffff)); /* 24 bits each */
}

bool vhca_claim_is_port(const struct vhca_claim *claim)
{
	char name[VHCA_NAME_MAX];

	vhca_port_name(claim->identity.guid, name);
	return claim->origin == VHCA_ORIGIN_CLAIM && strcmp(claim->name, name) == 0;
}

bool vhca_claim_is_refused(const struct vhca_claim *claim)
{
	return claim->sm_answer == VHCA_ANSWER_REFUSED ||
	       claim->sm_answer == VHCA_ANSWER_SUPERSEDED;
}

void vhca_claim_refusal_hint(const struct vhca_claim *claim, char ret[static VHCA_REFUSAL_HINT_MAX])
{
	if (claim->sm_answer == VHCA_ANSWER_SUPERSEDED && claim->sm_code && claim->vf)
		(void)snprintf(
			ret, VHCA_REFUSAL_HINT_MAX,
			"if its owner is dead and fenced, on OpenSM's host: vhcasmctl owner "
			"%s %s; then here: vhcactl takeover %s EVIDENCE",
			VHCA_GUID_STR(claim->identity.guid),
			VHCA_GUID_STR(claim->vf->hca->ports[claim->vf->hca->port - 1].port_guid),
			VHCA_UUID_STR(&claim->domain));
	else if (claim->sm_answer == VHCA_ANSWER_SUPERSEDED)
		(void)snprintf(ret, VHCA_REFUSAL_HINT_MAX,
			       "if the host that has it is dead and fenced: vhcactl takeover %s "
			       "EVIDENCE",
			       VHCA_UUID_STR(&claim->domain));
	else
		(void)snprintf(ret, VHCA_REFUSAL_HINT_MAX,
			       "see where the SM has it, on its host: vhcasmctl bindings %s",
			       VHCA_GUID_STR(claim->identity.guid));
}

enum vhca_claim_await vhca_claim_awaits(const struct vhca_claim *claim)
{
	if (!claim->vf || claim->vf->state != VHCA_VF_CLAIMED || !vhca_claim_is_port(claim))
		return VHCA_AWAITS_NOTHING;
	if (claim->custody == VHCA_CUSTODY_RESERVED)
		return VHCA_AWAITS_DOMAIN;
	return claim->sm_answer == VHCA_ANSWER_SUPERSEDED || claim->disputed ? VHCA_AWAITS_SM
									     : VHCA_AWAITS_NOTHING;
}

const char *vhca_claim_await_to_string(enum vhca_claim_await awaits)
{
	static const char *const words[] = {NULL, "domain", "sm"};

	return words[awaits];
}

struct vhca_identity vhca_claim_shows(const struct vhca_claim *claim)
{
	static const struct vhca_identity nobodys = {.guid = VHCA_GUID_ALL1};

	if (vhca_claim_is_withheld(claim) || claim->stripped)
		return nobodys;
	/* What only the SM has counts when it says so: a link that is down waits for that. */
	if (claim->sm_answer != VHCA_ANSWER_ACCEPTED && claim->vf &&
	    !vhca_hca_identity(claim->vf->hca)->host_pkey_map)
		return (struct vhca_identity){.guid = claim->identity.guid};
	return claim->identity;
}

void vhca_model_init(struct vhca_model *m)
{
	memset(m, 0, sizeof(*m));
	TAILQ_INIT(&m->hcas);
	TAILQ_INIT(&m->claims);
	TAILQ_INIT(&m->domains);
	TAILQ_INIT(&m->suppressed);
}

void vhca_model_drop_hca(struct vhca_model *m, struct vhca_hca *hca)
{
	struct vhca_vf *vf;

	TAILQ_REMOVE(&m->hcas, hca, link);
	while ((vf = TAILQ_FIRST(&hca->vfs))) {
		TAILQ_REMOVE(&hca->vfs, vf, link);
		vhca_timer_free(vf->timer);
		free(vf);
	}
	free(hca);
}

void vhca_model_done(struct vhca_model *m)
{
	struct vhca_suppressed *s;

	while (TAILQ_FIRST(&m->claims))
		vhca_model_drop_claim(m, TAILQ_FIRST(&m->claims));
	while (TAILQ_FIRST(&m->domains))
		vhca_model_drop_domain(m, TAILQ_FIRST(&m->domains));
	while ((s = TAILQ_FIRST(&m->suppressed))) {
		TAILQ_REMOVE(&m->suppressed, s, link);
		free(s);
	}
	while (TAILQ_FIRST(&m->hcas))
		vhca_model_drop_hca(m, TAILQ_FIRST(&m->hcas));
	free(m->epochs);
	memset(m, 0, sizeof(*m));
}

bool vhca_hca_gives_vfs(const struct vhca_hca *hca)
{
	return hca->managed && hca->facts.ib_ports == VHCA_IB_PORTS_SOME;
}

struct vhca_hca *vhca_model_next_fabric(const struct vhca_model *m, const struct vhca_hca *prev,
					bool only_wanted)
{
	struct vhca_hca *hca = prev ? TAILQ_NEXT(prev, link) : TAILQ_FIRST(&m->hcas), *first;

	for (; hca; hca = TAILQ_NEXT(hca, link)) {
		first = TAILQ_FIRST(&m->hcas);
		while (first != hca && !((first->wanted || !only_wanted) &&
					 strcmp(first->fabric, hca->fabric) == 0))
			first = TAILQ_NEXT(first, link);
		if (first == hca && (hca->wanted || !only_wanted))
			return hca;
	}
	return NULL;
}

const struct vhca_identity_ops *vhca_hca_identity(const struct vhca_hca *hca)
{
	static const struct vhca_identity_ops *const backs[] = {
		[VHCA_FAMILY_MLX4] = &vhca_identity_mlx4,
		[VHCA_FAMILY_MLX5] = &vhca_identity_mlx5,
	};

	return backs[hca->facts.family];
}

struct vhca_hca *vhca_model_hca(struct vhca_model *m, struct vhca_bdf bdf)
{
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &m->hcas, link)
		if (vhca_bdf_cmp(hca->facts.bdf, bdf) == 0)
			return hca;
	return NULL;
}

struct vhca_hca *vhca_model_add_hca(struct vhca_model *m, struct vhca_bdf bdf)
{
	struct vhca_hca *hca = calloc(1, sizeof(*hca)), *next;

	if (!hca)
		return NULL;
	TAILQ_INIT(&hca->vfs);
	hca->facts.bdf = bdf;
	hca->port = 1;
	TAILQ_FOREACH (next, &m->hcas, link)
		if (vhca_bdf_cmp(next->facts.bdf, bdf) > 0)
			break;
	if (next)
		TAILQ_INSERT_BEFORE(next, hca, link);
	else
		TAILQ_INSERT_TAIL(&m->hcas, hca, link);
	return hca;
}

struct vhca_vf *vhca_model_vf(struct vhca_model *m, struct vhca_bdf bdf)
{
	struct vhca_vf *vf;

	VHCA_FOREACH_VF (vf, m)
		if (vhca_bdf_cmp(vf->bdf, bdf) == 0)
			return vf;
	return NULL;
}

struct vhca_vf *vhca_model_next_vf(const struct vhca_model *m, const struct vhca_vf *prev)
{
	const struct vhca_hca *hca = prev ? TAILQ_NEXT(prev->hca, link) : TAILQ_FIRST(&m->hcas);
	struct vhca_vf *vf = prev ? TAILQ_NEXT(prev, link) : NULL;

	for (; !vf && hca; hca = TAILQ_NEXT(hca, link))
		vf = TAILQ_FIRST(&hca->vfs);
	return vf;
}

static void insert_vf(struct vhca_hca *hca, struct vhca_vf *vf, uint16_t index)
{
	struct vhca_vf *next;

	vf->hca = hca;
	vf->index = index;
	TAILQ_FOREACH (next, &hca->vfs, link)
		if (next->index > index)
			break;
	if (next)
		TAILQ_INSERT_BEFORE(next, vf, link);
	else
		TAILQ_INSERT_TAIL(&hca->vfs, vf, link);
}

struct vhca_vf *vhca_model_add_vf(struct vhca_hca *hca, struct vhca_bdf bdf, uint16_t index)
{
	struct vhca_vf *vf = calloc(1, sizeof(*vf));

	if (!vf)
		return NULL;
	vf->bdf = bdf;
	vf->iommu_group = -1;
	vf->missing = VHCA_MISSING_UNKNOWN;
	insert_vf(hca, vf, index);
	return vf;
}

void vhca_model_move_vf(struct vhca_vf *vf, struct vhca_hca *hca, uint16_t index)
{
	TAILQ_REMOVE(&vf->hca->vfs, vf, link);
	insert_vf(hca, vf, index);
}

struct vhca_claim *vhca_model_claim(struct vhca_model *m, const struct vhca_uuid *id)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &m->claims, link)
		if (vhca_uuid_equal(&c->id, id))
			return c;
	return NULL;
}

struct vhca_claim *vhca_model_claim_or_next(struct vhca_model *m, const struct vhca_uuid *id)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &m->claims, link)
		if (vhca_uuid_equal(&c->id, id) || vhca_uuid_equal(&c->stands_for, id))
			return c;
	return NULL;
}

struct vhca_claim *vhca_model_claim_of(struct vhca_model *m, const struct vhca_uuid *domain,
				       const char *name)
{
	struct vhca_claim *c;

	VHCA_FOREACH_CLAIM_OF (c, m, domain)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

struct vhca_claim *vhca_model_next_claim(const struct vhca_model *m, const struct vhca_uuid *domain,
					 const struct vhca_claim *prev)
{
	struct vhca_claim *c = prev ? TAILQ_NEXT(prev, link) : TAILQ_FIRST(&m->claims);

	while (c && !vhca_uuid_equal(&c->domain, domain))
		c = TAILQ_NEXT(c, link);
	return c;
}

struct vhca_claim *vhca_model_claim_by_guid(struct vhca_model *m, uint64_t guid)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &m->claims, link)
		if (c->identity.guid == guid)
			return c;
	return NULL;
}

struct vhca_claim *vhca_model_add_claim(struct vhca_model *m)
{
	struct vhca_claim *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->numa = -1;
	c->number = ++m->last_claim;
	STAILQ_INIT(&c->waiters);
	TAILQ_INSERT_TAIL(&m->claims, c, link);
	return c;
}

void vhca_model_drop_claim(struct vhca_model *m, struct vhca_claim *claim)
{
	struct vhca_waiter *w;

	while ((w = STAILQ_FIRST(&claim->waiters))) {
		STAILQ_REMOVE_HEAD(&claim->waiters, link);
		free(w);
	}
	if (claim->vf)
		claim->vf->claim = NULL;
	TAILQ_REMOVE(&m->claims, claim, link);
	json_object_put(claim->proof);
	free(claim);
}

struct vhca_domain *vhca_model_domain(struct vhca_model *m, const struct vhca_uuid *uuid)
{
	struct vhca_domain *d;

	TAILQ_FOREACH (d, &m->domains, link)
		if (d->info && vhca_uuid_equal(&d->info->uuid, uuid))
			return d;
	return NULL;
}

struct vhca_domain *vhca_model_domain_by_name(struct vhca_model *m, const char *name)
{
	struct vhca_domain *d;

	TAILQ_FOREACH (d, &m->domains, link)
		if (d->info && strcmp(d->info->name, name) == 0)
			return d;
	return NULL;
}

static const struct vhca_request_state *find_request(const struct vhca_domain *dom,
						     const char *name)
{
	for (unsigned int i = 0; i < VHCA_DOM_VFS_MAX; i++)
		if (strcmp(dom->requests[i].name, name) == 0)
			return &dom->requests[i];
	return NULL;
}

const struct vhca_error *vhca_domain_problem(const struct vhca_domain *dom, const char *name)
{
	const struct vhca_request_state *st = find_request(dom, name);

	return st && st->problem.kind ? &st->problem : NULL;
}

const struct vhca_error *vhca_domain_failed(const struct vhca_domain *dom, const char *name)
{
	const struct vhca_request_state *st = find_request(dom, name);

	return st && st->failed.kind ? &st->failed : NULL;
}

void vhca_domain_served(struct vhca_domain *dom, const char *name)
{
	for (unsigned int i = 0; i < VHCA_DOM_VFS_MAX; i++)
		if (strcmp(dom->requests[i].name, name) == 0)
			dom->requests[i].problem = dom->requests[i].failed =
				(struct vhca_error)VHCA_ERROR_INIT;
}

struct vhca_domain *vhca_model_add_domain(struct vhca_model *m)
{
	struct vhca_domain *d = calloc(1, sizeof(*d));

	if (d)
		TAILQ_INSERT_TAIL(&m->domains, d, link);
	return d;
}

void vhca_model_drop_domain(struct vhca_model *m, struct vhca_domain *dom)
{
	TAILQ_REMOVE(&m->domains, dom, link);
	free(dom->info);
	free(dom);
}

bool vhca_model_suppressed(const struct vhca_model *m, const struct vhca_uuid *domain,
			   const char *name)
{
	struct vhca_suppressed *s;

	TAILQ_FOREACH (s, &m->suppressed, link)
		if (vhca_uuid_equal(&s->domain, domain) && strcmp(s->name, name) == 0)
			return true;
	return false;
}

int vhca_model_suppress(struct vhca_model *m, const struct vhca_uuid *domain, const char *name)
{
	struct vhca_suppressed *s;

	if (vhca_model_suppressed(m, domain, name))
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->domain = *domain;
	(void)vhca_strcpy(s->name, sizeof(s->name), name); /* valid names fit */
	TAILQ_INSERT_TAIL(&m->suppressed, s, link);
	return 0;
}

bool vhca_model_unsuppress(struct vhca_model *m, const struct vhca_uuid *domain, const char *name)
{
	struct vhca_suppressed *s, *next;
	bool found = false;

	for (s = TAILQ_FIRST(&m->suppressed); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!vhca_uuid_equal(&s->domain, domain) || (name && strcmp(s->name, name) != 0))
			continue;
		TAILQ_REMOVE(&m->suppressed, s, link);
		free(s);
		found = true;
	}
	return found;
}

static struct vhca_epoch *find_epoch(const struct vhca_model *m, uint64_t guid)
{
	for (size_t i = 0; i < m->n_epochs; i++)
		if (m->epochs[i].guid == guid)
			return &m->epochs[i];
	return NULL;
}

uint64_t vhca_model_epoch(const struct vhca_model *m, uint64_t guid)
{
	const struct vhca_epoch *e = find_epoch(m, guid);

	return e ? e->epoch : 0;
}

int vhca_model_set_epoch(struct vhca_model *m, uint64_t guid, uint64_t epoch)
{
	struct vhca_epoch *e = find_epoch(m, guid);

	if (!e && m->n_epochs == m->epochs_size) {
		size_t size = m->epochs_size ? m->epochs_size * 2 : 64;
		struct vhca_epoch *p = reallocarray(m->epochs, size, sizeof(*p));

		if (!p)
			return -ENOMEM;
		m->epochs = p;
		m->epochs_size = size;
	}
	if (!e) {
		e = &m->epochs[m->n_epochs++];
		*e = (struct vhca_epoch){.guid = guid};
	}
	if (e->epoch != epoch)
		e->owned = e->stranded = false;
	e->epoch = epoch;
	e->used = ++m->epoch_uses;
	return 0;
}

void vhca_model_strand_epoch(struct vhca_model *m, uint64_t guid, const struct vhca_uuid *migration)
{
	struct vhca_epoch *e = find_epoch(m, guid);

	if (!e)
		return;
	e->stranded = true;
	e->migration = *migration;
}

const struct vhca_epoch *vhca_model_stranded(const struct vhca_model *m,
					     const struct vhca_uuid *migration)
{
	for (size_t i = 0; i < m->n_epochs; i++)
		if (m->epochs[i].stranded && vhca_uuid_equal(&m->epochs[i].migration, migration))
			return &m->epochs[i];
	return NULL;
}

static int by_use(const void *a, const void *b)
{
	const struct vhca_epoch *x = a, *y = b;

	return (x->used < y->used) - (x->used > y->used);
}

void vhca_model_forget_epochs(struct vhca_model *m, void (*forgotten)(void *ctx, uint64_t guid),
			      void *ctx)
{
	size_t kept = 0;

	if (m->n_epochs <= VHCA_EPOCHS_MAX)
		return;
	qsort(m->epochs, m->n_epochs, sizeof(*m->epochs), by_use);
	for (size_t i = 0; i < m->n_epochs; i++) {
		struct vhca_epoch e = m->epochs[i];

		if (i < VHCA_EPOCHS_MAX - EPOCHS_AT_ONCE || vhca_model_claim_by_guid(m, e.guid))
			m->epochs[kept++] = e;
		else
			forgotten(ctx, e.guid);
	}
	m->n_epochs = kept;
}

bool vhca_epoch_begins_generation(uint64_t epoch)
{
	return epoch && !(epoch & UINT32_MAX);
}

bool vhca_epoch_next_generation(uint64_t epoch, uint64_t *ret)
{
	*ret = ((epoch >> 32) + 1) << 32;
	return epoch >> 32 < INT32_MAX; /* the SM takes no epoch above INT64_MAX */
}

void vhca_model_own_epoch(struct vhca_model *m, uint64_t guid, uint64_t epoch)
{
	struct vhca_epoch *e = find_epoch(m, guid);

	if (e && e->epoch == epoch)
		e->owned = true;
}

void vhca_model_dispute(struct vhca_model *m, uint64_t guid, bool disputed)
{
	struct vhca_epoch *e = find_epoch(m, guid);

	if (e)
		e->disputed = disputed;
}

bool vhca_model_is_disputed(const struct vhca_model *m, uint64_t guid)
{
	const struct vhca_epoch *e = find_epoch(m, guid);

	return e && e->disputed;
}

uint64_t vhca_model_next_epoch(const struct vhca_model *m, uint64_t guid)
{
	const struct vhca_epoch *e = find_epoch(m, guid);

	if (!e || !e->epoch)
		return 1;
	return e->owned ? e->epoch + 1 : e->epoch;
}

struct vhca_domain *vhca_model_user(const struct vhca_model *m, struct vhca_bdf vf,
				    const struct vhca_dom_hostdev **ret_dev)
{
	struct vhca_domain *d;

	TAILQ_FOREACH (d, &m->domains, link) {
		for (unsigned int i = 0; d->info && i < d->info->n_hostdevs; i++) {
			if (vhca_bdf_cmp(d->info->hostdevs[i].host, vf) != 0)
				continue;
			if (ret_dev)
				*ret_dev = &d->info->hostdevs[i];
			return d;
		}
	}
	return NULL;
}

bool vhca_vf_rests(const struct vhca_vf *vf)
{
	return !vf->claim && vhca_now_ms() < vf->rests_until_ms;
}

bool vhca_vf_is_probed(const struct vhca_vf *vf)
{
	return vf->use == VHCA_USE_NOBODY || vf->use == VHCA_USE_SOMEBODY;
}

bool vhca_vf_seems_in_use(const struct vhca_vf *vf)
{
	return vf->use == VHCA_USE_SOMEBODY || vf->use == VHCA_USE_PROBE_AGAIN;
}

struct vhca_slot *vhca_vf_slot(struct vhca_vf *vf, enum vhca_effect effect)
{
	return vhca_effect_room(effect) == VHCA_EFFECT_AT_LIBVIRT ? &vf->virt : &vf->host;
}

enum vhca_effect vhca_vf_effect(const struct vhca_vf *vf)
{
	return vf->host.effect != VHCA_EFFECT_NONE ? vf->host.effect : vf->virt.effect;
}

bool vhca_model_is_unused(struct vhca_model *m, const struct vhca_vf *vf)
{
	return vf->state == VHCA_VF_CLAIMED && !vhca_model_user(m, vf->bdf, NULL);
}

const struct vhca_domain *vhca_model_stranger(const struct vhca_model *m, const struct vhca_vf *vf)
{
	const struct vhca_domain *d;

	if (!vf->claim)
		return NULL;
	TAILQ_FOREACH (d, &m->domains, link) {
		if (!d->info || vhca_uuid_equal(&d->info->uuid, &vf->claim->domain))
			continue;
		for (unsigned int i = 0; i < d->info->n_hostdevs; i++)
			if (vhca_bdf_cmp(d->info->hostdevs[i].host, vf->bdf) == 0)
				return d;
	}
	return NULL;
}
