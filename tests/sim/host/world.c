/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state/journal.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/sim/host/world_int.h"
#include "tests/sim/host/world_mlx5.h"

#define SETTLE_ROUNDS 10
#define SETTLE_MS     60
#define SETTLE_MAX_MS 1500

void (*world_judge)(const char *what);

void world_must(bool ok, const char *what)
{
	if (ok)
		return;
	if (world_judge)
		world_judge(what);
	fprintf(stderr, "# world: %s\n", what);
	abort();
}

void world_later(struct world *w, void (*fn)(void *arg), void *arg)
{
	if (w->hooks)
		w->hooks->later(w, fn, arg);
	else
		world_must(vhca_loop_post(w->loop, fn, arg, free) == 0, "post");
}

bool world_told(const struct world *w, const char *text)
{
	struct json_object *doc;
	uint64_t oldest = 0;
	bool told;

	world_must(vhca_events_find(w->events, "oldest", &oldest, NULL) == 0, "oldest");
	doc = vhca_events_to_json(w->events, oldest, NULL);
	told = strstr(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN), text);
	json_object_put(doc);
	return told;
}

static void vfs_changed(void *ctx)
{
	(void)ctx;
}

/* ---- hardware as the engine sees it ---- */

static struct vhca_bdf pf_address(unsigned int pf)
{
	return (struct vhca_bdf){.bus = (uint8_t)(1 + pf)};
}

static unsigned int n_pfs(const struct world *w)
{
	return w->second_from ? 2 : 1;
}

static void tell_port(struct world *w, enum vhca_port_event event)
{
	for (unsigned int pf = 0; pf < n_pfs(w); pf++) {
		struct vhca_port_state port = {.port = 1,
					       .state = w->port_down[pf] ? VHCA_PORT_DOWN
									 : VHCA_PORT_ACTIVE,
					       .is_ib = true,
					       .lid = (uint16_t)(w->lid + pf),
					       .sm_lid = w->sm_lid,
					       .port_guid = w->port_guid + pf,
					       .n_pkeys = WORLD_KEYS};

		memcpy(port.pkeys, w->port_pkeys, sizeof(w->port_pkeys));
		vhca_engine_port(w->engine, pf_address(pf), event, &port);
	}
}

void world_set_key(struct world *w, unsigned int index, uint16_t pkey)
{
	w->port_pkeys[index] = pkey;
	if (w->engine)
		tell_port(w, VHCA_PORT_PKEYS);
}

void world_set_lid(struct world *w, uint16_t lid)
{
	w->lid = lid;
	if (w->engine)
		tell_port(w, VHCA_PORT_CHANGED);
}

void world_reregister(struct world *w)
{
	tell_port(w, VHCA_PORT_REREGISTER);
}

void world_deafen(struct world *w)
{
	w->deaf_guest = true;
	w->conf.detach_timeout_ms = 400;
}

void world_show_port(struct world *w)
{
	w->port_unseen = false;
	tell_port(w, VHCA_PORT_CHANGED);
}

void world_swap(struct world *w, unsigned int a, unsigned int b)
{
	struct vhca_bdf bdf = w->vfs[a].bdf;

	world_must(!w->vfs[a].group_open && !w->vfs[b].group_open, "a VF in use is taken away");
	w->vfs[a].bdf = w->vfs[b].bdf;
	w->vfs[b].bdf = bdf;
	if (w->engine)
		world_show_hardware(w);
}

static void show_pf(const struct world *w, unsigned int n, struct vhca_pf_facts *pf)
{
	pf->bdf = pf_address(n);
	pf->family = w->mlx5 ? VHCA_FAMILY_MLX5 : VHCA_FAMILY_MLX4;
	(void)snprintf(pf->driver, sizeof(pf->driver), "%s_core",
		       vhca_family_to_string(pf->family));
	(void)snprintf(pf->ibdev, sizeof(pf->ibdev), "%s_%u", vhca_family_to_string(pf->family), n);
	pf->device = WORLD_DEVICE;
	pf->numa_node = w->numa[n];
	pf->n_ports = 1;
	pf->ib_ports = w->ib_ports;
}

static void show_vf(const struct world *w, unsigned int v, struct vhca_pf_facts *pf,
		    unsigned int first)
{
	struct vhca_vf_facts *vf = &pf->vfs[pf->n_vfs];

	pf->total_vfs++;
	if (w->vfs[v].gone)
		return;
	*vf = (struct vhca_vf_facts){.bdf = w->vfs[v].bdf,
				     .index = (uint16_t)(v - first),
				     .iommu_group = (int)v + 1,
				     .group_size = 1};
	(void)snprintf(vf->driver, sizeof(vf->driver), "%s", w->vfs[v].driver);
	pf->num_vfs = ++pf->n_vfs;
}

void world_show_hardware(struct world *w)
{
	struct vhca_pf_facts *pfs = calloc(2, sizeof(*pfs));
	struct vhca_plugged plugged[2] = {{pf_address(0), w->plugged_device},
					  {pf_address(1), w->plugged_device}};
	struct vhca_inventory inv = {.n_pfs = w->driverless ? 0 : (uint16_t)n_pfs(w),
				     .pfs = pfs,
				     .n_plugged = n_pfs(w),
				     .plugged = plugged,
				     .n_nodes = (uint16_t)w->n_nodes,
				     .nodes = w->nodes};

	world_must(pfs != NULL, "out of memory");
	for (unsigned int n = 0; n < inv.n_pfs; n++)
		show_pf(w, n, &pfs[n]);
	for (unsigned int v = 0; v < w->n_vfs && inv.n_pfs; v++) {
		bool is_second = w->second_from && v >= w->second_from;

		show_vf(w, v, &pfs[is_second], is_second ? w->second_from : 0);
	}
	vhca_engine_inventory(w->engine, &inv);
	free(pfs);
}

/* ---- life ---- */

static void boot(struct world *w)
{
	for (unsigned int v = 0; v < WORLD_VFS_MAX; v++)
		world_vf_reset(&w->vfs[v]);
	(void)snprintf(w->boot_id, sizeof(w->boot_id), "boot-%u", ++w->boots);
}

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/vhca-world-XXXXXX");
	world_must(mkdtemp(w->dir) != NULL, "temporary directory");
	vhca_log_set_level(VHCA_LOG_ERROR);
	vhca_conf_set_defaults(&w->conf);
	w->schema = vhca_journal_migrations;
	w->n_schema = vhca_journal_n_migrations;
	w->conf.n_hcas = 1;
	w->conf.hcas[0] = (struct vhca_conf_hca){.is_default = true,
						 .manage = true,
						 .vfs = VHCA_CONF_VFS_KEEP,
						 .fabric = "default",
						 .port = 1};
	w->conf.allow_default_partition = true;
	w->conf.sm_pkeys = VHCA_SM_PKEYS_DYNAMIC;
	w->conf.poll_ms = 50;
	w->conf.sm_timeout_ms = 50;
	w->conf.pkey_timeout_ms = 600000; /* a test that waits for either says so */
	w->conf.detach_timeout_ms = 600000;
	w->conf.detach_retry_ms = 50;
	w->sm_grants = true;
	w->n_vfs = WORLD_VFS;
	w->ib_ports = VHCA_IB_PORTS_SOME;
	w->numa[0] = w->numa[1] = -1;
	w->port_guid = 0x0002c90300000011;
	w->sm_lid = 1;
	w->lid = 2;
	w->port_pkeys[0] = 0xffff;
	w->port_pkeys[1] = 0x8001;
	w->port_pkeys[2] = 0x8002;
	for (unsigned int v = 0; v < WORLD_VFS_MAX; v++) {
		w->vfs[v].bdf = (struct vhca_bdf){
			.bus = 1, .dev = (uint8_t)((v + 1) / 8), .fn = (uint8_t)((v + 1) % 8)};
		w->vfs[v].boot_guid = 0x1405000000000000u + v;
	}
	boot(w);
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		w->domains[i].info.uuid.b[15] =
			(uint8_t)(0x80 + i); /* nobody's, until it is started */
}

void world_start(struct world *w)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_engine_args args = {
		.conf = &w->conf,
		.effects = {world_start_effect, world_refresh, vfs_changed, w},
	};
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/state.db", w->dir);
	world_must(vhca_loop_new(&w->loop) == 0, "loop");
	world_must(vhca_events_new(&w->events) == 0, "events");
	if (vhca_store_open(path, w->schema, w->n_schema, w->loop, &w->store, &err) < 0)
		world_must(false, err.msg);
	args.fenced = w->fenced;
	args.no_vports = w->no_vports;
	args.adopt_ms = w->adopt_ms;
	args.absent_ms = w->absent_ms;
	args.retry_ms = w->retry_ms;
	args.request_ms = w->request_ms;
	args.word_ms = w->word_ms;
	args.loop = w->loop;
	args.store = w->store;
	args.events = w->events;
	(void)snprintf(args.boot_id, sizeof(args.boot_id), "%s", w->boot_id);
	if (vhca_engine_new(&args, &w->engine, &err) < 0)
		world_must(false, err.msg);
	if (w->started)
		w->started(w);
	world_show_hardware(w);
	if (!w->port_unseen)
		tell_port(w, VHCA_PORT_CHANGED);
	world_sync_domains(w);
}

void world_kill(struct world *w)
{
	if (!w->engine)
		return;
	/*
	 * Nothing runs any more: what was posted is dropped, what was queued for the store may or
	 * may not have become durable.
	 */
	vhca_store_close(w->store);
	if (w->stopping)
		w->stopping(w);
	vhca_engine_free(w->engine);
	vhca_events_free(w->events);
	vhca_loop_free(w->loop);
	free(w->hung);
	w->hung = NULL;
	w->engine = NULL;
	w->store = NULL;
	w->loop = NULL;
	w->events = NULL;
}

void world_reboot(struct world *w)
{
	world_kill(w);
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		if (w->domains[i].running)
			world_domain_stop(w, i);
	boot(w);
	if (w->mlx5)
		world_mlx5_reset(w);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void world_done(struct world *w)
{
	world_kill(w);
	(void)nftw(w->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void accept_reports(struct world *w)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &vhca_engine_model(w->engine)->claims, link) {
		const struct vhca_sm_binding b = vhca_claim_binding(c);

		if (!vhca_claim_is_withheld(c) && c->sm_answer != VHCA_ANSWER_ACCEPTED)
			vhca_engine_sm_answer(w->engine, &b, VHCA_SM_ACCEPTED, "", NULL);
	}
}

void world_round(struct world *w, int wait_ms)
{
	(void)vhca_loop_once(w->loop, wait_ms);
	if (w->sm_accepts)
		accept_reports(w);
	world_check(w);
	if (!w->crashed)
		return;
	w->crashed = false;
	world_kill(w);
	world_start(w);
}

/* What stood still, for whoever reads a failed test. */
static void explain(const struct world *w)
{
	const struct vhca_hca *hca = TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas);
	const struct vhca_vf *vf;

	TAILQ_FOREACH (vf, &hca->vfs, link)
		fprintf(stderr, "# %s %s effect %s claim %s/%s ending %d granted %d: %s\n",
			VHCA_BDF_STR(vf->bdf), vhca_vf_state_to_string(vf->state),
			vhca_effect_to_string(vhca_vf_effect(vf)),
			vf->claim ? vf->claim->domain_name : "-", vf->claim ? vf->claim->name : "-",
			vf->claim && vhca_claim_is_ending(vf->claim), vf->granted, vf->reason);
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++) {
		const struct vhca_domain *d =
			vhca_model_domain(vhca_engine_model(w->engine), &w->domains[i].info.uuid);
		const struct vhca_request_state *r = d ? &d->requests[0] : NULL;

		fprintf(stderr, "# domain %u %s ib0 on VF %d; %s, again in %lld ms\n", i,
			d ? "runs," : "stopped,", world_vf_of(w, i, "ib0"),
			r && r->problem.kind ? r->problem.msg : "no problem",
			r ? (long long)(r->retry_ms - vhca_now_ms()) : 0);
	}
}

bool world_until(struct world *w, bool (*cond)(const struct world *w, const void *arg),
		 const void *arg)
{
	uint64_t deadline = vhca_now_ms() + 60000; /* a busy machine */

	while (!cond(w, arg)) {
		if (vhca_now_ms() > deadline) {
			explain(w);
			return false;
		}
		world_round(w, 10);
	}
	return true;
}

/* A transaction of a VF is on its way to the disk. */
static bool is_saving(const struct world *w)
{
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	if (!w->engine)
		return false;
	TAILQ_FOREACH (hca, &vhca_engine_model(w->engine)->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (vf->committing)
				return true;
	return false;
}

/* A busy machine gives us few rounds in that time; what waited for a slow disk comes after that. */
void world_settle(struct world *w)
{
	uint64_t begun = vhca_now_ms(), quiet = begun;

	for (unsigned int n = 0; n < SETTLE_ROUNDS || vhca_now_ms() - quiet < SETTLE_MS; n++) {
		world_round(w, 10);
		if (is_saving(w) && vhca_now_ms() - begun < SETTLE_MAX_MS) {
			quiet = vhca_now_ms();
			n = 0;
		}
	}
}
