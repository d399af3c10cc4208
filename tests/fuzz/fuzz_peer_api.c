/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What another agent asks: an offer or a hand-over is refused and nothing hears of it, or it is
 * within every limit. An offer that was taken is put into the words of this agent's own source: the
 * destination has to take the same from it.
 */
#include <stdio.h>
#include <string.h>

#include "agent/api/peer_server.h"
#include "agent/migration/list.h"
#include "agent/migration/peer.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "sm/proof.h"
#include "tests/fuzz/kit/door.h"

static struct {
	struct vhca_peer_api *api;
	struct vhca_conf conf;
	struct vhca_mig_offer offer;
	unsigned int offers, handovers, ends;
	char *sent; /* the body that the source sent */
	struct door_request here;
} t;

/* ---- what stands in for the production symbols ---- */

static void refuse(vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	vhca_error_set(&err, VHCA_ERR_CONFLICT, "fuzz", 0, "taken");
	fn(arg, NULL, &err);
}

void __wrap_vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
				  vhca_mig_waiter_fn fn, void *arg);
void __wrap_vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
				  vhca_mig_waiter_fn fn, void *arg)
{
	(void)ms;
	t.offer = *offer;
	t.offers++;
	refuse(fn, arg);
}

void __wrap_vhca_migrations_handover(struct vhca_migrations *ms, const struct vhca_uuid *id,
				     const struct vhca_mig_handed *handed, unsigned int n,
				     vhca_mig_waiter_fn fn, void *arg);
void __wrap_vhca_migrations_handover(struct vhca_migrations *ms, const struct vhca_uuid *id,
				     const struct vhca_mig_handed *handed, unsigned int n,
				     vhca_mig_waiter_fn fn, void *arg)
{
	(void)ms, (void)id;
	FUZZ_ASSERT(n >= 1 && n <= VHCA_MIGRATION_VFS_MAX);
	for (unsigned int i = 0; i < n; i++)
		FUZZ_ASSERT(
			handed[i].epoch < UINT64_MAX &&
			(!handed[i].proof || vhca_sm_proof_check(handed[i].proof, handed[i].guid,
								 handed[i].epoch, NULL) == 0));
	t.handovers++;
	refuse(fn, arg);
}

void __wrap_vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
				vhca_mig_waiter_fn fn, void *arg);
void __wrap_vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
				vhca_mig_waiter_fn fn, void *arg)
{
	(void)ms, (void)id;
	t.ends++;
	refuse(fn, arg);
}

const struct vhca_mig *__wrap_vhca_migrations_find(struct vhca_migrations *ms,
						   const struct vhca_uuid *id);
const struct vhca_mig *__wrap_vhca_migrations_find(struct vhca_migrations *ms,
						   const struct vhca_uuid *id)
{
	(void)ms, (void)id;
	return NULL;
}

int __wrap_vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
				 vhca_http_done_fn done, void *arg);
int __wrap_vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
				 vhca_http_done_fn done, void *arg)
{
	(void)m, (void)done, (void)arg;
	FUZZ_ASSERT(strcmp(args->method, "PUT") == 0 && args->body);
	t.sent = strdup(json_object_to_json_string_ext(args->body, JSON_C_TO_STRING_PLAIN));
	return 0;
}

/* ---- an offer that was taken ---- */

static void check_vf(const struct vhca_reservation *vf, const struct vhca_mig_offer *offer)
{
	FUZZ_ASSERT(vhca_name_is_valid(vf->req.vf.name) && vhca_name_is_valid(vf->req.vf.fabric));
	FUZZ_ASSERT(vf->req.origin <= VHCA_ORIGIN_CLAIM && vf->req.vf.numa == -1);
	FUZZ_ASSERT(vhca_guid_is_valid(vf->identity.guid) && vf->epoch < UINT64_MAX);
	FUZZ_ASSERT(vf->identity.n_pkeys <= VHCA_VF_PKEYS_MAX);
	for (unsigned int i = 0; i < vf->identity.n_pkeys; i++)
		FUZZ_ASSERT(vhca_pkey_base(vf->identity.pkeys[i]) != 0);
	FUZZ_ASSERT(vhca_uuid_equal(&vf->migration, &offer->id) &&
		    vhca_uuid_equal(&vf->req.domain, &offer->domain));
	FUZZ_ASSERT(!vf->has_guest || (vf->guest.dev <= 31 && vf->guest.fn <= 7));
}

static void check_offer(const struct vhca_mig_offer *offer)
{
	FUZZ_ASSERT(offer->n_vfs >= 1 && offer->n_vfs <= VHCA_MIGRATION_VFS_MAX);
	FUZZ_ASSERT(memchr(offer->domain_name, '\0', sizeof(offer->domain_name)));
	FUZZ_ASSERT(memchr(offer->node, '\0', sizeof(offer->node)));
	FUZZ_ASSERT(offer->mode < VHCA_MIG_MODE_COUNT && offer->memory.pages < VHCA_PAGES_COUNT);
	FUZZ_ASSERT(offer->memory.kib <= UINT64_MAX / 1024);
	for (unsigned int i = 0; i < offer->n_vfs; i++)
		check_vf(&offer->vfs[i], offer);
}

/* The source as it would be that made this offer. */
struct source {
	struct vhca_model model;
	struct vhca_migrations ms;
	struct vhca_mig m;
};

static void add_claim(struct source *s, const struct vhca_reservation *vf, unsigned int i)
{
	struct vhca_hca *hca =
		vhca_model_add_hca(&s->model, (struct vhca_bdf){.bus = (uint8_t)(i + 1)});
	struct vhca_claim *c = vhca_model_add_claim(&s->model);

	FUZZ_ASSERT(hca && c);
	c->vf = vhca_model_add_vf(hca, (struct vhca_bdf){.bus = (uint8_t)(i + 1), .fn = 1}, 0);
	FUZZ_ASSERT(c->vf);
	c->vf->claim = c;
	c->vf->hw_known = true;
	c->vf->hw.gid_index = vf->from_gid_index;
	hca->port = c->port = 1;
	hca->ports[0] = (struct vhca_port_state){
		.port = 1, .is_ib = true, .port_guid = vf->from_port_guid, .lid = vf->from_lid};
	(void)vhca_strcpy(c->name, sizeof(c->name), vf->req.vf.name);
	(void)vhca_strcpy(c->fabric, sizeof(c->fabric), vf->req.vf.fabric);
	c->origin = vf->req.origin;
	c->identity = vf->identity;
	c->epoch = vf->epoch;
	c->has_guest = vf->has_guest;
	c->guest = vf->guest;
	c->migrating = true;
	c->migration = s->m.id;
}

static void add_guest(struct source *s, const struct vhca_mig_offer *offer)
{
	const struct vhca_dom_info none = {.id = 1};
	struct vhca_domain *dom = vhca_model_add_domain(&s->model);

	FUZZ_ASSERT(dom);
	dom->info = vhca_dom_info_dup(&none);
	FUZZ_ASSERT(dom->info);
	dom->info->uuid = offer->domain;
	dom->info->memory = offer->memory;
}

static void send_again(const struct vhca_mig_offer *offer)
{
	struct source s = {.m = {.source = true, .peer = "other", .mode = offer->mode}};
	struct vhca_peer *p = NULL;

	vhca_model_init(&s.model);
	s.ms.model = &s.model;
	s.m.owner = &s.ms;
	s.m.id = offer->id;
	s.m.domain = offer->domain;
	(void)vhca_strcpy(s.m.domain_name, sizeof(s.m.domain_name), offer->domain_name);
	(void)vhca_strcpy(t.conf.node_name, sizeof(t.conf.node_name), offer->node);
	for (unsigned int i = 0; i < offer->n_vfs; i++)
		add_claim(&s, &offer->vfs[i], i);
	add_guest(&s, offer);
	FUZZ_ASSERT(vhca_peer_new(NULL, NULL, &t.conf, NULL, &p) == 0);
	vhca_peer_effect(p, &s.m, VHCA_MIG_EFFECT_CLAIM);
	(void)vhca_peer_free(p);
	vhca_model_done(&s.model);
}

static bool same_identity(const struct vhca_identity *a, const struct vhca_identity *b)
{
	return a->guid == b->guid && a->n_pkeys == b->n_pkeys &&
	       memcmp(a->pkeys, b->pkeys, a->n_pkeys * sizeof(a->pkeys[0])) == 0;
}

static void check_same_vf(const struct vhca_reservation *a, const struct vhca_reservation *b)
{
	FUZZ_ASSERT(strcmp(a->req.vf.name, b->req.vf.name) == 0 &&
		    strcmp(a->req.vf.fabric, b->req.vf.fabric) == 0 &&
		    a->req.origin == b->req.origin);
	FUZZ_ASSERT(same_identity(&a->identity, &b->identity) && a->epoch == b->epoch);
	FUZZ_ASSERT(a->has_guest == b->has_guest &&
		    (!a->has_guest || vhca_bdf_cmp(a->guest, b->guest) == 0));
	FUZZ_ASSERT(a->from_port_guid == b->from_port_guid);
	if (a->from_port_guid)
		FUZZ_ASSERT(a->from_gid_index == b->from_gid_index && a->from_lid == b->from_lid);
}

static void check_same_memory(const struct vhca_guest_memory *a, const struct vhca_guest_memory *b)
{
	FUZZ_ASSERT(a->kib == b->kib && a->hard_limit_kib == b->hard_limit_kib &&
		    a->pages == b->pages && a->page_kib == b->page_kib);
}

static void check_round_trip(const struct vhca_mig_offer *first)
{
	struct door_request again = t.here;

	send_again(first);
	FUZZ_ASSERT(t.sent);
	again.body = t.sent;
	again.body_len = strlen(t.sent);
	t.offers = 0;
	(void)door_ask(&again);
	FUZZ_ASSERT(t.offers == 1 && t.offer.n_vfs == first->n_vfs && t.offer.mode == first->mode);
	FUZZ_ASSERT(strcmp(t.offer.domain_name, first->domain_name) == 0 &&
		    strcmp(t.offer.node, first->node) == 0);
	if (first->memory.kib)
		check_same_memory(&t.offer.memory, &first->memory);
	for (unsigned int i = 0; i < first->n_vfs; i++)
		check_same_vf(&t.offer.vfs[i], &first->vfs[i]);
	free(t.sent);
	t.sent = NULL;
}

static void each(void *ctx, const struct door_request *req)
{
	const struct door_answer *answer;
	struct vhca_mig_offer first;

	(void)ctx;
	t.offers = t.handovers = t.ends = 0;
	t.here = *req;
	answer = door_ask(req);
	FUZZ_ASSERT(answer->status >= 400 && answer->status < 500);
	fuzz_verdict(answer->status == 409);
	/* 409 is what the machine says here to whatever gets to it. */
	FUZZ_ASSERT((answer->status == 409) == (t.offers + t.handovers + t.ends == 1));
	if (!t.offers)
		return;
	first = t.offer;
	check_offer(&first);
	check_round_trip(&first);
}

static void open_api(void)
{
	const struct vhca_peer_api_parts parts = {.migrations = NULL};

	(void)vhca_strcpy(t.conf.peers[0].name, VHCA_NAME_MAX, "other");
	(void)vhca_strcpy(t.conf.peers[0].agent, sizeof(t.conf.peers[0].agent), "http://other");
	t.conf.n_peers = 1;
	FUZZ_ASSERT(vhca_peer_api_new(NULL, &t.conf, &parts, &t.api, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!t.api)
		open_api();
	door_play(data, size, each, NULL);
	door_close();
	return 0;
}
