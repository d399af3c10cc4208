/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/world.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "agent/journal.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/sim/world_mlx5.h"

#define PF "0000:01:00.0"

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# world: %s\n", what);
	abort();
}

/* ---- ground truth ---- */

static struct world_vf *truth(struct world *w, struct vhca_bdf bdf)
{
	for (unsigned int i = 0; i < w->n_vfs; i++)
		if (!vhca_bdf_cmp(w->vfs[i].bdf, bdf))
			return &w->vfs[i];
	abort();
}

/* What the mlx4 driver leaves behind when it loads: virtual 0 -> physical 0, a random GUID. */
static void driver_reset(struct world_vf *vf, unsigned int i)
{
	vf->guid = 0x1405000000000000u + i;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		vf->map[k] = k ? -1 : 0;
}

bool world_clean(const struct world *w, unsigned int v)
{
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		if (w->vfs[v].map[k] >= 0)
			return false;
	return w->vfs[v].guid == VHCA_GUID_ALL1;
}

bool world_told(const struct world *w, const char *text)
{
	struct json_object *doc = vhca_events_to_json(w->events, 0);
	bool told = strstr(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN), text);

	json_object_put(doc);
	return told;
}

static bool has(const struct world *w, unsigned int i, unsigned int v)
{
	return w->vfs[v].group_open && vhca_uuid_equal(&w->vfs[v].user, &w->domains[i].info.uuid);
}

int world_vf_of(const struct world *w, unsigned int i, const char *name)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (has(w, i, v) && !strcmp(w->vfs[v].name, name))
			return (int)v;
	return -1;
}

bool world_has_vf(const struct world *w, unsigned int i)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (has(w, i, v))
			return true;
	return false;
}

static const struct world_domain *domain_of(const struct world *w, const struct vhca_uuid *uuid)
{
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		if (vhca_uuid_equal(&w->domains[i].info.uuid, uuid))
			return &w->domains[i];
	return NULL;
}

/* Is the P_Key one that the domain's metadata asks for? */
static bool asked_for(const struct world_domain *d, uint16_t pkey)
{
	for (unsigned int r = 0; d && r < d->info.n_requests; r++)
		if (strstr(d->info.requests[r].partition, VHCA_PKEY_STR(pkey)))
			return true;
	return false;
}

void world_check(const struct world *w)
{
	for (unsigned int v = 0; v < w->n_vfs; v++) {
		const struct world_vf *vf = &w->vfs[v];

		/* A VF in a guest shows no key but its tenant's (VFs plugged by others have no name of ours). */
		for (unsigned int k = 0; !w->hostile_sm && vf->group_open && vf->name[0] == 'i' &&
					 k < VHCA_VF_PKEYS_MAX;
		     k++)
			if (vf->map[k] >= 0 && w->port_pkeys[vf->map[k]])
				must(asked_for(domain_of(w, &vf->user), w->port_pkeys[vf->map[k]]),
				     "a guest's VF maps a key that its tenant did not ask for");
		for (unsigned int o = 0; o < v; o++)
			must(vf->guid == VHCA_GUID_ALL1 || vf->guid != w->vfs[o].guid,
			     "two VFs request one GUID");
	}
}

/* ---- the journal, seen from outside ---- */

static void journaled(const struct world *w, struct vhca_bdf bdf, char ret[static 32])
{
	char path[96];
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;

	if (w->hooks) {
		w->hooks->journaled(w, bdf, ret);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/state.db", w->dir);
	must(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK,
	     "open the journal");
	must(sqlite3_prepare_v2(db, "SELECT state FROM vfs WHERE bdf = ?1", -1, &st, NULL) ==
		     SQLITE_OK,
	     "read the journal");
	sqlite3_bind_text(st, 1, VHCA_BDF_STR(bdf), -1, SQLITE_TRANSIENT);
	(void)snprintf(ret, 32, "%s",
		       sqlite3_step(st) == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0)
						      : "");
	sqlite3_finalize(st);
	sqlite3_close(db);
}

/* Intent before effect: the durable state must be one that stands for the effect. */
static void check_intent(const struct world *w, const struct vhca_vf *vf, enum vhca_effect effect)
{
	static const char *const want[] = {
		[VHCA_EFFECT_PREPARE] = "preparing",
		[VHCA_EFFECT_PROGRAM] = "claimed programmed attached",
		[VHCA_EFFECT_SCRUB] = "scrubbing",
		[VHCA_EFFECT_STRIP] = "quarantined",
		[VHCA_EFFECT_ATTACH] = "programmed",
		[VHCA_EFFECT_DETACH] = "detaching",
		[VHCA_EFFECT_ASK] = "detaching",
		[VHCA_EFFECT_KICK] = "attached free",
		[VHCA_EFFECT_CHOOSE] = "claimed",
	};
	char state[32];

	if (effect >= VHCA_ARRAY_SIZE(want) || !want[effect])
		return;
	journaled(w, vf->bdf, state);
	must(state[0] && strstr(want[effect], state), "an effect without its durable intent");
}

/* ---- effects ---- */

struct world_job {
	struct world *w;
	struct vhca_engine *engine; /* the life it belongs to */
	struct vhca_vf *vf;
	enum vhca_effect effect;
	struct vhca_identity want;
	uint64_t epoch;
	struct vhca_uuid domain;
	char name[VHCA_NAME_MAX];
	bool has_guest;
	struct vhca_bdf guest;
	uint64_t pid; /* of the program in the guest */
	enum world_fault fault;
};

static int fill_hw(const struct world *w, const struct world_vf *t, struct vhca_effect_result *res)
{
	struct vhca_identity_state *hw = &res->hw;

	if (w->mlx5)
		return world_mlx5_read(w, (unsigned int)(t - w->vfs), hw, &res->err);
	memset(hw, 0, sizeof(*hw));
	hw->requested = t->guid;
	hw->granted =
		w->sm_grants && t->guest_driver && t->guid != VHCA_GUID_ALL1 ? t->guid : t->held;
	hw->n_virtual = VHCA_VF_PKEYS_MAX;
	hw->other_maps = t->other_maps;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++) {
		hw->map[k] = t->map[k];
		hw->value[k] = t->map[k] >= 0 ? w->port_pkeys[t->map[k]] : 0;
	}
	return 0;
}

static void clear(struct world_vf *t)
{
	t->guid = VHCA_GUID_ALL1;
	t->other_maps = 0;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		t->map[k] = -1;
}

/* An SM that was away does not know what the port holds (pkey/mlx4_grant.c). */
static void scrub(const struct world *w, struct world_vf *t)
{
	if (!w->sm_deaf)
		t->held = 0;
	else if (t->guid != VHCA_GUID_ALL1)
		t->held = t->guid;
	clear(t);
}

static unsigned int program(const struct world *w, struct world_vf *t,
			    const struct vhca_identity *want)
{
	unsigned int missing = 0;

	clear(t);
	t->guid = want->guid;
	for (unsigned int k = 0; k < want->n_pkeys; k++) {
		t->map[k] = (int16_t)vhca_pkey_find(w->port_pkeys, WORLD_KEYS, want->pkeys[k]);
		missing += t->map[k] < 0;
	}
	return missing;
}

static bool has_at(const struct world *w, const struct vhca_uuid *domain, struct vhca_bdf guest)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (w->vfs[v].group_open && vhca_uuid_equal(&w->vfs[v].user, domain) &&
		    !vhca_bdf_cmp(w->vfs[v].guest, guest))
			return true;
	return false;
}

/* Another one each time: whoever has to give a VF its old address back must have remembered that. */
static struct vhca_bdf choose_address(struct world *w, const struct vhca_uuid *domain)
{
	struct vhca_bdf ret;

	do
		ret = (struct vhca_bdf){.bus = (uint8_t)(1 + w->plugs++ % 250)};
	while (has_at(w, domain, ret));
	return ret;
}

static int plug(struct world *w, struct world_vf *t, const struct world_job *job,
		struct vhca_error *err)
{
	const struct world_domain *d = domain_of(w, &job->domain);

	if (!d || !d->running)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "domain_gone", 0, "no such domain");
	must(!d->incoming, "attach to a guest that is still coming in");
	must(!t->group_open || vhca_uuid_equal(&t->user, &job->domain),
	     "attach of a VF that another guest has");
	must(!strcmp(t->driver, "vfio-pci"), "attach of a VF that is not on vfio-pci");
	must(t->guid == job->want.guid, "attach of a VF whose GUID is not programmed");
	if (t->group_open)
		return 0; /* is there already */
	if (job->has_guest && has_at(w, &job->domain, job->guest))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "address_in_use", 0,
				      "the guest has another device at this address");
	t->guest = job->has_guest ? job->guest : choose_address(w, &job->domain);
	t->group_open = t->guest_driver = true;
	t->user = job->domain;
	(void)snprintf(t->name, sizeof(t->name), "%s", job->name);
	return 0;
}

static void tell_removed(const struct world *w, const struct world_vf *t)
{
	char alias[80];

	(void)snprintf(alias, sizeof(alias), "%s%s", VHCA_ALIAS_PREFIX, t->name);
	if (w->engine && !w->virt_down && !w->events_lost)
		vhca_engine_device_removed(w->engine, &t->user, alias, vhca_now_us());
}

static void unplug(struct world_vf *t)
{
	t->group_open = t->guest_driver = false;
	t->name[0] = '\0';
}

static int ask_guest(struct world *w, struct world_vf *t, uint64_t pid,
		     struct vhca_effect_result *res)
{
	if (!t->group_open)
		return vhca_error_set(&res->err, VHCA_ERR_NOT_FOUND, "domain_gone", 0, "too late");
	if (w->guest_agent == WORLD_AGENT_NONE)
		return vhca_error_set(&res->err, VHCA_ERR_CONFLICT, "no_guest_agent", 0,
				      "no guest agent");
	w->asked += !pid;
	res->guest = (struct vhca_qga_answer){
		.pid = 7,
		.exited = pid && w->guest_agent != WORLD_AGENT_HANGS,
		.exit_code = w->guest_agent == WORLD_AGENT_NO_SLOT ? 11 : 0,
	};
	if (w->guest_agent == WORLD_AGENT_HELPS) {
		tell_removed(w, t);
		unplug(t);
	}
	return 0;
}

static int apply(struct world *w, const struct world_job *job, struct vhca_effect_result *res)
{
	struct world_vf *t = truth(w, job->vf->bdf);
	struct vhca_error *err = &res->err;
	unsigned int v = (unsigned int)(t - w->vfs);

	switch (job->effect) {
	case VHCA_EFFECT_PROBE:
		res->in_use = t->group_open;
		return 0;
	case VHCA_EFFECT_PREPARE:
	case VHCA_EFFECT_SCRUB:
		res->in_use = t->group_open;
		if (t->group_open)
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_in_use", EBUSY,
					      "group open");
		(void)snprintf(t->driver, sizeof(t->driver), "vfio-pci");
		if (w->vfs_lie)
			return vhca_error_set(err, VHCA_ERR_DEVICE, "readback_differs", 0,
					      "read-back differs");
		if (w->mlx5)
			return world_mlx5_apply(w, v, job->effect, &job->want, res);
		scrub(w, t);
		return 0;
	case VHCA_EFFECT_STRIP:
		if (w->mlx5)
			return world_mlx5_apply(w, v, VHCA_EFFECT_SCRUB, &job->want, res);
		scrub(w, t);
		return 0;
	case VHCA_EFFECT_PROGRAM:
		if (w->programming && job->want.guid != VHCA_GUID_ALL1)
			w->programming(w, job->want.guid, job->epoch);
		t->epoch = job->epoch;
		if (w->mlx5)
			return world_mlx5_apply(w, v, job->effect, &job->want, res);
		res->missing = program(w, t, &job->want);
		return 0;
	case VHCA_EFFECT_CHOOSE:
		if (!w->sm_choice)
			return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "no_guid_from_sm", EAGAIN,
					      "the SM has not chosen a GUID yet");
		t->guid = w->sm_choice;
		return 0;
	case VHCA_EFFECT_ATTACH:
		res->called_us = vhca_now_us();
		return plug(w, t, job, err);
	case VHCA_EFFECT_DETACH:
		if (!w->deaf_guest && !(w->deaf_vfs & 1U << v) && t->group_open) {
			tell_removed(w, t);
			unplug(t);
		}
		return 0;
	case VHCA_EFFECT_ASK:
		return ask_guest(w, t, job->pid, res);
	case VHCA_EFFECT_KICK:
		if (!w->sm_deaf)
			t->held = 0;
		return 0;
	case VHCA_EFFECT_READ:
	case VHCA_EFFECT_NONE:
		break;
	}
	return 0;
}

static void on_job(void *arg)
{
	struct world_job *job = arg;
	struct world *w = job->w;
	struct vhca_effect_result res = {.rc = 0};

	if (w->hooks)
		job->fault = w->hooks->interfere(w, job->vf, job->effect);
	if (job->fault == WORLD_CRASH_BEFORE) {
		w->crashed = true;
		free(job);
		return;
	}
	if (job->fault == WORLD_FAIL)
		res.rc = vhca_error_set(&res.err, VHCA_ERR_DEVICE, "injected", EIO,
					"injected failure");
	else
		res.rc = apply(w, job, &res);
	world_check(w);
	if (w->hooks && res.rc == 0)
		w->hooks->happened(w, (unsigned int)(truth(w, job->vf->bdf) - w->vfs), job->effect);
	if (res.rc == 0 && job->effect <= VHCA_EFFECT_STRIP && job->effect != VHCA_EFFECT_PROBE) {
		res.rc = fill_hw(w, truth(w, job->vf->bdf), &res);
		res.has_hw = res.rc == 0;
	}
	if (job->fault == WORLD_CRASH_AFTER)
		w->crashed = true;
	else
		vhca_engine_effect_done(job->engine, job->vf, &res);
	free(job);
}

static void later(struct world *w, void (*fn)(void *arg), void *arg)
{
	if (w->hooks)
		w->hooks->later(w, fn, arg);
	else
		must(vhca_loop_post(w->loop, fn, arg, free) == 0, "post");
}

static void start_effect(void *ctx, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct world *w = ctx;
	struct world_job *job = calloc(1, sizeof(*job));

	check_intent(w, vf, effect);
	must(job != NULL, "out of memory");
	*job = (struct world_job){
		.w = w, .engine = w->engine, .vf = vf, .effect = effect, .pid = vf->escalation.pid};
	if (vf->claim) {
		job->want = vhca_claim_shows(vf->claim);
		job->epoch = vf->claim->epoch;
		job->domain = vf->claim->domain;
		job->has_guest = vf->claim->has_guest;
		job->guest = vf->claim->guest;
		(void)snprintf(job->name, sizeof(job->name), "%s", vf->claim->name);
	}
	if ((w->fault_effect == VHCA_EFFECT_NONE || w->fault_effect == effect) &&
	    ++w->effects == w->fault_at)
		job->fault = w->fault;
	if (job->fault == WORLD_HANG)
		w->hung = job;
	else
		later(w, on_job, job);
}

void world_release(struct world *w)
{
	must(w->hung != NULL, "nothing hangs");
	later(w, on_job, w->hung);
	w->hung = NULL;
}

/* ---- libvirt ---- */

static const struct vhca_dom_info *live_info(const struct world *w, unsigned int i,
					     struct vhca_dom_info *ret)
{
	*ret = w->domains[i].info;
	ret->held = w->domains[i].incoming;
	ret->n_hostdevs = 0;
	for (unsigned int v = 0; v < w->n_vfs; v++) {
		if (!w->vfs[v].group_open || !vhca_uuid_equal(&w->vfs[v].user, &ret->uuid))
			continue;
		ret->hostdevs[ret->n_hostdevs] =
			(struct vhca_dom_hostdev){.host = w->vfs[v].bdf,
						  .has_guest_addr = true,
						  .guest = w->vfs[v].guest,
						  .path = {.n = w->odd_bus ? 0 : 2}};
		(void)snprintf(ret->hostdevs[ret->n_hostdevs].alias, sizeof(ret->hostdevs[0].alias),
			       "%s%s",
			       strncmp(w->vfs[v].name, "hostdev", 7) ? VHCA_ALIAS_PREFIX : "",
			       w->vfs[v].name);
		ret->n_hostdevs++;
	}
	ret->free_root_ports = 4 - ret->n_hostdevs;
	return ret;
}

static void tell_domain(struct world *w, unsigned int i)
{
	struct vhca_dom_info info;

	if (w->engine && !w->virt_down)
		vhca_engine_domain(w->engine, &w->domains[i].info.uuid,
				   w->domains[i].running ? live_info(w, i, &info) : NULL);
}

struct look {
	struct world *w;
	struct vhca_uuid uuid;
};

static void on_look(void *arg)
{
	struct look *look = arg;

	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		if (vhca_uuid_equal(&look->w->domains[i].info.uuid, &look->uuid))
			tell_domain(look->w, i);
	free(look);
}

static void refresh(void *ctx, const struct vhca_uuid *uuid)
{
	struct look *look = calloc(1, sizeof(*look));

	must(look != NULL, "out of memory");
	*look = (struct look){.w = ctx, .uuid = *uuid};
	later(look->w, on_look, look);
}

static void vfs_changed(void *ctx)
{
	(void)ctx;
}

void world_sync_domains(struct world *w)
{
	struct vhca_dom_info infos[WORLD_DOMAINS], *list[WORLD_DOMAINS];
	unsigned int n = 0;

	if (!w->engine || w->virt_down)
		return;
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++) {
		if (!w->domains[i].running)
			continue;
		list[n] = &infos[n];
		(void)live_info(w, i, &infos[n++]);
	}
	vhca_engine_virt_sync(w->engine, list, n);
}

static void add_request(struct vhca_dom_info *info, const char *name, const char *partition)
{
	struct vhca_vf_request *r = &info->requests[info->n_requests++];

	(void)snprintf(r->name, sizeof(r->name), "%s", name);
	(void)snprintf(r->fabric, sizeof(r->fabric), "default");
	(void)snprintf(r->partition, sizeof(r->partition), "%s", partition);
	r->numa = -1;
}

struct vhca_uuid world_domain_start(struct world *w, unsigned int i, const char *partition)
{
	struct vhca_dom_info *info = &w->domains[i].info;

	memset(info, 0, sizeof(*info));
	info->uuid.b[0] = 0xd0;
	info->uuid.b[15] = (uint8_t)i;
	(void)snprintf(info->name, sizeof(info->name), "vm%u", i);
	info->root_ports = 4;
	if (partition)
		add_request(info, "ib0", partition);
	w->domains[i].running = true;
	tell_domain(w, i);
	return info->uuid;
}

void world_ask(struct world *w, unsigned int i, const char *name, const char *partition)
{
	add_request(&w->domains[i].info, name, partition);
	tell_domain(w, i);
}

void world_domain_stop(struct world *w, unsigned int i)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (has(w, i, v))
			unplug(&w->vfs[v]);
	w->domains[i].running = w->domains[i].incoming = false;
	w->domains[i].stopped_ms = vhca_now_ms();
	tell_domain(w, i);
}

void world_look(struct world *w, unsigned int i)
{
	tell_domain(w, i);
}

void world_incoming(struct world *w, unsigned int i, bool incoming)
{
	w->domains[i].running = true;
	w->domains[i].incoming = incoming;
	if (!incoming && w->engine && !w->virt_down && !w->events_lost)
		vhca_engine_guest_state(w->engine, &w->domains[i].info.uuid, true, vhca_now_us());
	tell_domain(w, i);
}

void world_plug(struct world *w, unsigned int v, unsigned int i, const char *name)
{
	(void)snprintf(w->vfs[v].driver, sizeof(w->vfs[v].driver), "vfio-pci");
	w->vfs[v].group_open = true;
	w->vfs[v].user = w->domains[i].info.uuid;
	(void)snprintf(w->vfs[v].name, sizeof(w->vfs[v].name), "%s", name);
	tell_domain(w, i);
}

/* ---- hardware as the engine sees it ---- */

static void tell_port(struct world *w, enum vhca_port_event event)
{
	struct vhca_port_state port = {.port = 1,
				       .state = 4,
				       .is_ib = true,
				       .lid = 2,
				       .sm_lid = 1,
				       .port_guid = w->port_guid,
				       .n_pkeys = WORLD_KEYS};
	struct vhca_bdf pf;

	(void)vhca_bdf_parse(PF, &pf);
	memcpy(port.pkeys, w->port_pkeys, sizeof(w->port_pkeys));
	vhca_engine_port(w->engine, pf, event, &port);
}

void world_set_key(struct world *w, unsigned int index, uint16_t pkey)
{
	w->port_pkeys[index] = pkey;
	if (w->engine)
		tell_port(w, VHCA_PORT_PKEYS);
}

static void tell_inventory(struct world *w)
{
	struct vhca_pf_facts *pf = calloc(1, sizeof(*pf));
	struct vhca_inventory inv = {.n_pfs = 1, .pfs = pf};

	must(pf != NULL, "out of memory");
	(void)vhca_bdf_parse(PF, &pf->bdf);
	pf->family = w->mlx5 ? VHCA_FAMILY_MLX5 : VHCA_FAMILY_MLX4;
	(void)snprintf(pf->driver, sizeof(pf->driver), "%s_core",
		       vhca_family_to_string(pf->family));
	(void)snprintf(pf->ibdev, sizeof(pf->ibdev), "%s_0", vhca_family_to_string(pf->family));
	pf->numa_node = -1;
	pf->n_ports = 1;
	pf->n_vfs = pf->num_vfs = pf->total_vfs = (uint16_t)w->n_vfs;
	for (uint16_t v = 0; v < w->n_vfs; v++) {
		pf->vfs[v] = (struct vhca_vf_facts){
			.bdf = w->vfs[v].bdf, .index = v, .iommu_group = v + 1, .group_size = 1};
		(void)snprintf(pf->vfs[v].driver, sizeof(pf->vfs[v].driver), "%s",
			       w->vfs[v].driver);
	}
	vhca_engine_inventory(w->engine, &inv);
	free(pf);
}

/* ---- life ---- */

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/vhca-world-XXXXXX");
	must(mkdtemp(w->dir) != NULL, "temporary directory");
	vhca_log_set_level(VHCA_LOG_ERROR);
	vhca_conf_set_defaults(&w->conf);
	w->conf.n_hcas = 1;
	w->conf.hcas[0] = (struct vhca_conf_hca){.is_default = true,
						 .manage = true,
						 .vfs = VHCA_CONF_VFS_KEEP,
						 .fabric = "default",
						 .port = 1};
	w->conf.sm_pkeys = VHCA_SM_PKEYS_DYNAMIC;
	w->conf.poll_ms = 50;
	w->conf.sm_timeout_ms = 50;
	w->conf.pkey_timeout_ms = 300;
	w->conf.detach_timeout_ms = 400;
	w->conf.detach_retry_ms = 50;
	w->sm_grants = true;
	w->n_vfs = WORLD_VFS;
	w->port_guid = 0x0002c90300000011;
	w->port_pkeys[0] = 0xffff;
	w->port_pkeys[1] = 0x8001;
	w->port_pkeys[2] = 0x8002;
	(void)snprintf(w->boot_id, sizeof(w->boot_id), "boot-1");
	for (unsigned int v = 0; v < WORLD_VFS_MAX; v++) {
		w->vfs[v].bdf = (struct vhca_bdf){
			.bus = 1, .dev = (uint8_t)((v + 1) / 8), .fn = (uint8_t)((v + 1) % 8)};
		driver_reset(&w->vfs[v], v);
	}
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		w->domains[i].info.uuid.b[15] =
			(uint8_t)(0x80 + i); /* nobody's, until it is started */
}

void world_start(struct world *w)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_engine_args args = {
		.conf = &w->conf,
		.effects = {start_effect, refresh, vfs_changed, w},
	};
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/state.db", w->dir);
	must(vhca_loop_new(&w->loop) == 0, "loop");
	must(vhca_events_new(&w->events) == 0, "events");
	if (vhca_store_open(path, vhca_journal_migrations, vhca_journal_n_migrations, w->loop,
			    &w->store, &err) < 0)
		must(false, err.msg);
	args.fenced = w->fenced;
	args.no_vports = w->no_vports;
	args.adopt_ms = w->adopt_ms;
	args.loop = w->loop;
	args.store = w->store;
	args.events = w->events;
	(void)snprintf(args.boot_id, sizeof(args.boot_id), "%s", w->boot_id);
	if (vhca_engine_new(&args, &w->engine, &err) < 0)
		must(false, err.msg);
	if (w->started)
		w->started(w);
	tell_inventory(w);
	tell_port(w, VHCA_PORT_CHANGED);
	world_sync_domains(w);
}

void world_kill(struct world *w)
{
	if (!w->engine)
		return;
	/* Nothing runs any more: what was posted is dropped, what was queued for the store may or may not have become durable. */
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
	for (unsigned int v = 0; v < w->n_vfs; v++) {
		unplug(&w->vfs[v]);
		driver_reset(&w->vfs[v], v);
		w->vfs[v].driver[0] = '\0';
	}
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		w->domains[i].running = false;
	(void)snprintf(w->boot_id, sizeof(w->boot_id), "boot-2");
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
		const struct vhca_sm_binding b = {
			.vguid = c->identity.guid, .epoch = c->epoch, .bound = true};

		if (!c->away && c->told != VHCA_TOLD_ACCEPTED)
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
			vhca_effect_to_string(vf->effect), vf->claim ? vf->claim->domain_name : "-",
			vf->claim ? vf->claim->name : "-", vf->claim && vf->claim->ending,
			vf->granted, vf->reason);
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
	uint64_t deadline = vhca_now_ms() + 5000;

	while (!cond(w, arg)) {
		if (vhca_now_ms() > deadline) {
			explain(w);
			return false;
		}
		world_round(w, 10);
	}
	return true;
}

void world_settle(struct world *w)
{
	uint64_t deadline = vhca_now_ms() + 60;

	while (vhca_now_ms() < deadline)
		world_round(w, 10);
}
