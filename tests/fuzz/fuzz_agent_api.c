/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests at the agent's socket: what is refused as wrong (400, 404) reached no machine and
 * changed nothing that can be read, what reaches one is within every limit, and every answer can be
 * read by our own client.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/api/api.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "tests/fuzz/kit/door.h"

#define GUID   UINT64_C(0x02c9ab0000000001)
#define LOOKS  3
#define DOMAIN 0xd0

static struct {
	struct vhca_api *api;
	struct vhca_api_args args;
	struct vhca_conf conf;
	struct vhca_model model;
	struct vhca_mig m;
	unsigned int reached;
} t;

/* ---- a host with a VF in a guest, and one that is free ---- */

static void add_vf(struct vhca_hca *hca, uint16_t index)
{
	struct vhca_bdf bdf = {.bus = 1, .fn = (uint8_t)(index + 1)};
	struct vhca_vf *vf = vhca_model_add_vf(hca, bdf, index);

	FUZZ_ASSERT(vf);
	vf->present = true;
	vf->state = VHCA_VF_FREE;
}

static void add_claim(struct vhca_vf *vf)
{
	struct vhca_claim *c = vhca_model_add_claim(&t.model);

	FUZZ_ASSERT(c);
	c->id.b[0] = 0xc0;
	c->domain.b[0] = DOMAIN;
	(void)vhca_strcpy(c->domain_name, sizeof(c->domain_name), "vm1");
	(void)vhca_strcpy(c->name, sizeof(c->name), "ib0");
	c->identity = (struct vhca_identity){.guid = GUID, .n_pkeys = 1, .pkeys = {0x8001}};
	c->vf = vf;
	vf->claim = c;
	vf->state = VHCA_VF_ATTACHED;
}

static void add_domain(void)
{
	struct vhca_dom_hostdev dev = {.host = {.bus = 1, .fn = 1}};
	const struct vhca_dom_info info = {.id = 1, .n_hostdevs = 1, .hostdevs = &dev};
	struct vhca_domain *dom = vhca_model_add_domain(&t.model);

	FUZZ_ASSERT(dom);
	dom->info = vhca_dom_info_dup(&info);
	FUZZ_ASSERT(dom->info);
	dom->info->uuid.b[0] = DOMAIN;
	(void)vhca_strcpy(dom->info->name, sizeof(dom->info->name), "vm1");
}

static void make_host(void)
{
	struct vhca_hca *hca;

	vhca_model_init(&t.model);
	hca = vhca_model_add_hca(&t.model, (struct vhca_bdf){.bus = 1});
	FUZZ_ASSERT(hca);
	hca->present = hca->managed = true;
	hca->port = 1;
	(void)vhca_strcpy(hca->facts.driver, sizeof(hca->facts.driver), "mlx4_core");
	(void)vhca_strcpy(hca->fabric, sizeof(hca->fabric), "f1");
	hca->ports[0] = (struct vhca_port_state){.port = 1, .is_ib = true, .port_guid = GUID + 1};
	add_vf(hca, 0);
	add_vf(hca, 1);
	add_claim(vhca_model_vf(&t.model, (struct vhca_bdf){.bus = 1, .fn = 1}));
	add_domain();
}

/* ---- what stands in for the production symbols ---- */

static void give_up(vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	t.reached++;
	vhca_error_set(&err, VHCA_ERR_CONFLICT, "fuzz", 0, "taken");
	fn(arg, NULL, &err);
}

static int refuse(struct vhca_error *err)
{
	t.reached++;
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "fuzz", 0, "taken");
}

/* Within every limit, whoever asks. */
static void check_wish(const struct vhca_vf_request *vf)
{
	FUZZ_ASSERT(vhca_name_is_valid(vf->name) && vhca_name_is_valid(vf->fabric));
	FUZZ_ASSERT(!vf->guid || vf->guid == VHCA_GUID_BY_SM || vhca_guid_is_valid(vf->guid));
	FUZZ_ASSERT(memchr(vf->partition, '\0', sizeof(vf->partition)));
	FUZZ_ASSERT(vf->numa >= -1 && vf->numa <= VHCA_NUMA_NODE_MAX);
}

struct vhca_model *__wrap_vhca_engine_model(struct vhca_engine *e);
struct vhca_model *__wrap_vhca_engine_model(struct vhca_engine *e)
{
	(void)e;
	return &t.model;
}

void __wrap_vhca_engine_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
			      vhca_waiter_fn fn, void *arg);
void __wrap_vhca_engine_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
			      vhca_waiter_fn fn, void *arg)
{
	(void)e;
	check_wish(&req->vf);
	FUZZ_ASSERT(memchr(req->domain_name, '\0', sizeof(req->domain_name)));
	FUZZ_ASSERT(req->origin == VHCA_ORIGIN_ATTACH || req->origin == VHCA_ORIGIN_CLAIM);
	FUZZ_ASSERT(!req->has_bdf || (req->bdf.dev <= 31 && req->bdf.fn <= 7));
	give_up(fn, arg);
}

int __wrap_vhca_engine_plan(struct vhca_engine *e, const struct vhca_dom_info *wanted,
			    const struct vhca_vf *ret[static VHCA_DOM_VFS_MAX],
			    struct vhca_error *err);
int __wrap_vhca_engine_plan(struct vhca_engine *e, const struct vhca_dom_info *wanted,
			    const struct vhca_vf *ret[static VHCA_DOM_VFS_MAX],
			    struct vhca_error *err)
{
	(void)e, (void)ret;
	FUZZ_ASSERT(memchr(wanted->name, '\0', sizeof(wanted->name)));
	FUZZ_ASSERT(wanted->n_requests <= VHCA_DOM_VFS_MAX);
	for (unsigned int i = 0; i < wanted->n_requests; i++) {
		check_wish(&wanted->requests[i]);
		FUZZ_ASSERT(vhca_dom_request(wanted, wanted->requests[i].name) ==
			    &wanted->requests[i]);
	}
	return refuse(err);
}

void __wrap_vhca_engine_claim_port(struct vhca_engine *e, const struct vhca_claim_request *req,
				   vhca_waiter_fn fn, void *arg);
void __wrap_vhca_engine_claim_port(struct vhca_engine *e, const struct vhca_claim_request *req,
				   vhca_waiter_fn fn, void *arg)
{
	FUZZ_ASSERT(req->has_bdf && req->no_partition && !req->vf.partition[0]);
	FUZZ_ASSERT((req->vf.guid >> 24 & 0xffff) == 0 && strncmp(req->vf.name, "mac-", 4) == 0);
	__wrap_vhca_engine_claim(e, req, fn, arg);
}

void __wrap_vhca_engine_release(struct vhca_engine *e, struct vhca_claim *claim,
				bool forbid_attached, vhca_waiter_fn fn, void *arg);
void __wrap_vhca_engine_release(struct vhca_engine *e, struct vhca_claim *claim,
				bool forbid_attached, vhca_waiter_fn fn, void *arg)
{
	(void)e, (void)forbid_attached;
	FUZZ_ASSERT(claim == TAILQ_FIRST(&t.model.claims));
	give_up(fn, arg);
}

void __wrap_vhca_engine_adopt(struct vhca_engine *e, const struct vhca_uuid *domain,
			      vhca_waiter_fn fn, void *arg);
void __wrap_vhca_engine_adopt(struct vhca_engine *e, const struct vhca_uuid *domain,
			      vhca_waiter_fn fn, void *arg)
{
	(void)e, (void)domain;
	give_up(fn, arg);
}

int __wrap_vhca_engine_takeover(struct vhca_engine *e, const struct vhca_uuid *domain,
				const char *evidence, struct vhca_error *err);
int __wrap_vhca_engine_takeover(struct vhca_engine *e, const struct vhca_uuid *domain,
				const char *evidence, struct vhca_error *err)
{
	(void)e, (void)domain;
	FUZZ_ASSERT(evidence[0] && strlen(evidence) <= VHCA_EVIDENCE_MAX);
	for (const char *p = evidence; *p; p++)
		FUZZ_ASSERT(!iscntrl((unsigned char)*p));
	return refuse(err);
}

int __wrap_vhca_migrations_request(struct vhca_migrations *ms, const struct vhca_mig_request *req,
				   const struct vhca_mig **ret, struct vhca_error *err);
int __wrap_vhca_migrations_request(struct vhca_migrations *ms, const struct vhca_mig_request *req,
				   const struct vhca_mig **ret, struct vhca_error *err)
{
	(void)ms, (void)ret;
	FUZZ_ASSERT(req->mode < VHCA_MIG_MODE_COUNT);
	FUZZ_ASSERT((req->mode == VHCA_MIG_MODE_PARK) == !req->peer);
	FUZZ_ASSERT(!req->lease_ms || (req->mode != VHCA_MIG_MODE_MANAGED &&
				       req->lease_ms >= 10000 && req->lease_ms <= 86400000));
	return refuse(err);
}

int __wrap_vhca_migrations_extend(struct vhca_migrations *ms, const struct vhca_uuid *id,
				  uint64_t lease_ms, struct vhca_error *err);
int __wrap_vhca_migrations_extend(struct vhca_migrations *ms, const struct vhca_uuid *id,
				  uint64_t lease_ms, struct vhca_error *err)
{
	(void)ms;
	FUZZ_ASSERT(vhca_uuid_equal(id, &t.m.id) && lease_ms >= 10000 && lease_ms <= 86400000);
	return refuse(err);
}

int __wrap_vhca_migrations_cancel(struct vhca_migrations *ms, const struct vhca_uuid *id,
				  struct vhca_error *err);
int __wrap_vhca_migrations_cancel(struct vhca_migrations *ms, const struct vhca_uuid *id,
				  struct vhca_error *err)
{
	(void)ms, (void)id;
	return refuse(err);
}

const struct vhca_mig *__wrap_vhca_migrations_find(struct vhca_migrations *ms,
						   const struct vhca_uuid *id);
const struct vhca_mig *__wrap_vhca_migrations_find(struct vhca_migrations *ms,
						   const struct vhca_uuid *id)
{
	(void)ms;
	return vhca_uuid_equal(id, &t.m.id) ? &t.m : NULL;
}

const struct vhca_mig *__wrap_vhca_migrations_first(struct vhca_migrations *ms);
const struct vhca_mig *__wrap_vhca_migrations_first(struct vhca_migrations *ms)
{
	(void)ms;
	return &t.m;
}

struct vhca_claim *__wrap_vhca_migration_claim(const struct vhca_mig *m, struct vhca_claim *after);
struct vhca_claim *__wrap_vhca_migration_claim(const struct vhca_mig *m, struct vhca_claim *after)
{
	(void)m;
	return after ? NULL : TAILQ_FIRST(&t.model.claims);
}

int __wrap_vhca_drain_begin(struct vhca_drain *d, const char *const *peers, unsigned int n,
			    struct vhca_error *err);
int __wrap_vhca_drain_begin(struct vhca_drain *d, const char *const *peers, unsigned int n,
			    struct vhca_error *err)
{
	(void)d;
	FUZZ_ASSERT(n <= VHCA_CONF_PEERS_MAX);
	for (unsigned int i = 0; i < n; i++)
		FUZZ_ASSERT(peers[i]);
	return refuse(err);
}

int __wrap_vhca_reload_begin(struct vhca_reload *rl,
			     void (*fn)(void *arg, const struct vhca_error *err), void *arg,
			     struct vhca_error *err);
int __wrap_vhca_reload_begin(struct vhca_reload *rl,
			     void (*fn)(void *arg, const struct vhca_error *err), void *arg,
			     struct vhca_error *err)
{
	(void)rl;
	FUZZ_ASSERT(fn && arg);
	return refuse(err);
}

void __wrap_vhca_drain_end(struct vhca_drain *d);
void __wrap_vhca_drain_end(struct vhca_drain *d)
{
	(void)d;
	t.reached++;
}

bool __wrap_vhca_drain_is_on(const struct vhca_drain *d);
bool __wrap_vhca_drain_is_on(const struct vhca_drain *d)
{
	(void)d;
	return false;
}

struct json_object *__wrap_vhca_drain_view(const struct vhca_drain *d);
struct json_object *__wrap_vhca_drain_view(const struct vhca_drain *d)
{
	(void)d;
	return json_object_new_object();
}

bool __wrap_vhca_engine_virt_synced(const struct vhca_engine *e);
bool __wrap_vhca_engine_virt_synced(const struct vhca_engine *e)
{
	(void)e;
	return true;
}

int __wrap_vhca_engine_no_such_domain(const struct vhca_engine *e, const char *name,
				      struct vhca_error *err);
int __wrap_vhca_engine_no_such_domain(const struct vhca_engine *e, const char *name,
				      struct vhca_error *err)
{
	(void)e;
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0, "domain %s", name);
}

int __wrap_vhca_engine_check_ready(const struct vhca_engine *e, struct vhca_error *err);
int __wrap_vhca_engine_check_ready(const struct vhca_engine *e, struct vhca_error *err)
{
	(void)e, (void)err;
	return 0;
}

int __wrap_vhca_engine_check_ports(const struct vhca_engine *e, struct vhca_error *err);
int __wrap_vhca_engine_check_ports(const struct vhca_engine *e, struct vhca_error *err)
{
	(void)e, (void)err;
	return 0;
}

int __wrap_vhca_engine_check_disk(const struct vhca_engine *e, struct vhca_error *err);
int __wrap_vhca_engine_check_disk(const struct vhca_engine *e, struct vhca_error *err)
{
	(void)e;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "state_disk", ENOSPC, "the disk is full");
}

uint64_t __wrap_vhca_host_busy_since(const struct vhca_host *host, struct vhca_bdf pf);
uint64_t __wrap_vhca_host_busy_since(const struct vhca_host *host, struct vhca_bdf pf)
{
	(void)host, (void)pf;
	return 0;
}

bool __wrap_vhca_outbox_reachable(const struct vhca_outbox *ob);
bool __wrap_vhca_outbox_reachable(const struct vhca_outbox *ob)
{
	(void)ob;
	return true;
}

size_t __wrap_vhca_outbox_pending(const struct vhca_outbox *ob);
size_t __wrap_vhca_outbox_pending(const struct vhca_outbox *ob)
{
	(void)ob;
	return 0;
}

uint64_t __wrap_vhca_outbox_oldest_ms(const struct vhca_outbox *ob);
uint64_t __wrap_vhca_outbox_oldest_ms(const struct vhca_outbox *ob)
{
	(void)ob;
	return 0;
}

struct vhca_histogram __wrap_vhca_store_commits(struct vhca_store *store);
struct vhca_histogram __wrap_vhca_store_commits(struct vhca_store *store)
{
	(void)store;
	return (struct vhca_histogram){.sum_us = 0};
}

bool __wrap_vhca_engine_reserves(const struct vhca_engine *e, const struct vhca_vf *vf);
bool __wrap_vhca_engine_reserves(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	(void)e, (void)vf;
	return false;
}

bool __wrap_vhca_engine_offers(const struct vhca_engine *e, const struct vhca_vf *vf);
bool __wrap_vhca_engine_offers(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	(void)e;
	return vf->state == VHCA_VF_FREE;
}

void __wrap_vhca_engine_release_port(struct vhca_engine *e, struct vhca_claim *claim,
				     vhca_waiter_fn fn, void *arg);
void __wrap_vhca_engine_release_port(struct vhca_engine *e, struct vhca_claim *claim,
				     vhca_waiter_fn fn, void *arg)
{
	__wrap_vhca_engine_release(e, claim, false, fn, arg);
}

void __wrap_vhca_engine_set_partitions(struct vhca_engine *e, struct vhca_claim *c,
				       const char *partitions, vhca_waiter_fn fn, void *arg);
void __wrap_vhca_engine_set_partitions(struct vhca_engine *e, struct vhca_claim *c,
				       const char *partitions, vhca_waiter_fn fn, void *arg)
{
	(void)e;
	FUZZ_ASSERT(c == TAILQ_FIRST(&t.model.claims));
	FUZZ_ASSERT(strlen(partitions) < (size_t)VHCA_VF_PKEYS_MAX * VHCA_NAME_MAX);
	give_up(fn, arg);
}

struct json_object *__wrap_vhca_outbox_to_json(const struct vhca_outbox *ob);
struct json_object *__wrap_vhca_outbox_to_json(const struct vhca_outbox *ob)
{
	(void)ob;
	return json_object_new_array();
}

/* ---- requests ---- */

static char *look(const char *path)
{
	const struct door_request get = {.method = "GET", .path = path, .body = ""};
	const struct door_answer *answer = door_ask(&get);

	FUZZ_ASSERT(answer->status == 200 && answer->body);
	return strdup(json_object_to_json_string_ext(answer->body, JSON_C_TO_STRING_PLAIN));
}

/* All that can be read of the host. */
static void look_around(char *ret[static LOOKS])
{
	static const char *const paths[LOOKS] = {"/v1/vfs", "/v1/claims", "/v1/domains"};

	for (unsigned int i = 0; i < LOOKS; i++)
		ret[i] = look(paths[i]);
}

static void each(void *ctx, const struct door_request *req)
{
	const struct door_answer *answer;
	unsigned int status;

	(void)ctx;
	t.reached = 0;
	answer = door_ask(req);
	door_leave(); /* a long poll */
	status = answer->status;
	fuzz_verdict(status < 400 || t.reached);
	FUZZ_ASSERT(t.reached <= 1);
	/* 409 is what the machines say here to whatever gets to them. */
	FUZZ_ASSERT(!t.reached || status == 409 || !strcmp(req->path, "/v1/drain"));
	if (status == 400 || status == 404 || status == 405)
		FUZZ_ASSERT(!t.reached);
}

static void open_api(void)
{
	make_host();
	vhca_conf_set_defaults(&t.conf);
	(void)vhca_strcpy(t.conf.node_name, sizeof(t.conf.node_name), "host1");
	(void)vhca_strcpy(t.conf.run_dir, sizeof(t.conf.run_dir), "/run");
	t.m = (struct vhca_mig){
		.source = true, .peer = "other", .domain_name = "vm1", .id.b = {0xe0}};
	t.args = (struct vhca_api_args){.conf = &t.conf, .sm = &vhca_sm_none, .boot_id = "boot"};
	FUZZ_ASSERT(vhca_loop_new(&t.args.loop) == 0 && vhca_events_new(&t.args.events) == 0);
	vhca_events_add(t.args.events, "fuzz", "vm1", "begun");
	FUZZ_ASSERT(vhca_api_new(&t.args, &t.api, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *before[LOOKS];
	char *after[LOOKS];

	if (!t.api) {
		open_api();
		look_around(before);
	}
	door_play(data, size, each, NULL);
	look_around(after);
	for (unsigned int i = 0; i < LOOKS; i++) {
		FUZZ_ASSERT(strcmp(before[i], after[i]) == 0);
		free(after[i]);
	}
	door_close();
	return 0;
}
