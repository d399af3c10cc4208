/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/iso.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/effect.h"
#include "agent/state/journal.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/sim/host/vtime.h"

uint32_t iso_random(struct iso *it, uint32_t n)
{
	/* xorshift64*: the run must be the same with every C library */
	it->rng ^= it->rng >> 12;
	it->rng ^= it->rng << 25;
	it->rng ^= it->rng >> 27;
	return (uint32_t)((it->rng * 0x2545f4914f6cdd1du) >> 33) % n;
}

/* ---- later ---- */

struct call {
	struct iso *it;
	void (*fn)(struct iso *it, unsigned int v);
	unsigned int v;
};

static void on_call(void *arg)
{
	struct call call = *(struct call *)arg;

	free(arg);
	call.fn(call.it, call.v);
}

void iso_later(struct iso *it, bool agent, uint64_t delay_ms,
	       void (*fn)(struct iso *it, unsigned int v), unsigned int v)
{
	struct call *call = malloc(sizeof(*call));

	assert(call);
	*call = (struct call){it, fn, v};
	vtime_after(agent ? VTIME_AGENT : VTIME_WORLD, delay_ms, on_call, call, free);
}

/* ---- the store: durable late, and heard of later still ---- */

static void on_durable(void *arg, int rc)
{
	int *ret = arg;

	*ret = rc;
}

static void on_told(void *arg)
{
	struct iso_commit *c = arg;

	TAILQ_REMOVE(&c->iso->commits, c, link);
	if (c->done)
		c->done(c->arg, c->rc);
	free(c);
}

void __real_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);

static void make_durable(struct iso_commit *c)
{
	struct iso *it = c->iso;
	struct vhca_txn *txn = c->txn;

	c->txn = NULL;
	if (it->fail_commits) {
		it->fail_commits--;
		truth_delay(&it->truth);
		iso_sm_commit(it, txn, false);
		vhca_txn_abort(txn);
		c->rc = -EIO;
		return;
	}
	c->rc = 1;
	__real_vhca_txn_commit(txn, on_durable, &c->rc);
	while (c->rc > 0) /* the store's worker is the only one that posts to the real loop */
		(void)vhca_loop_once(it->loop, -1);
	iso_sm_commit(it, txn, c->rc == 0);
	truth_reload(&it->truth);
}

static void on_commit(void *arg)
{
	struct iso_commit *c = arg;
	struct iso *it = c->iso;
	uint64_t at = vtime_now() + iso_random(it, 3);

	make_durable(c);
	it->sm_answer_ms = at > it->sm_answer_ms ? at : it->sm_answer_ms;
	vtime_after(VTIME_AGENT, it->sm_answer_ms - vtime_now(), on_told, c, NULL);
}

static struct iso *the_iso; /* what is wrapped has no argument for it */

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg)
{
	struct iso_commit *c = calloc(1, sizeof(*c));

	assert(c && txn);
	*c = (struct iso_commit){.iso = the_iso, .txn = txn, .done = done, .arg = arg};
	TAILQ_INSERT_TAIL(&the_iso->commits, c, link);
	/* The same delay for all: they become durable in their order. */
	vtime_after(VTIME_AGENT, 2, on_commit, c, NULL);
}

static void drop_commits(struct iso *it)
{
	bool durable = iso_random(it, 2);
	struct iso_commit *c;

	while ((c = TAILQ_FIRST(&it->commits))) {
		durable = durable && iso_random(it, 3);
		if (c->txn && durable)
			make_durable(c);
		if (c->txn) {
			iso_sm_commit(it, c->txn, false);
			vhca_txn_abort(c->txn);
		}
		TAILQ_REMOVE(&it->commits, c, link);
		free(c);
	}
}

int __wrap_vhca_uuid_random(struct vhca_uuid *ret);
int __wrap_vhca_uuid_random(struct vhca_uuid *ret)
{
	for (unsigned int i = 0; i < sizeof(ret->b); i++)
		ret->b[i] = (uint8_t)iso_random(the_iso, 256);
	return 0;
}

/* ---- effects on the adapter ---- */

static unsigned int vf_of(const struct vhca_vf *vf)
{
	return vf->index;
}

unsigned int iso_vf_at(const struct iso *it, struct vhca_bdf bdf)
{
	unsigned int v = 0;

	while (v < HW_VFS && strcmp(it->truth.hw.vfs[v].bdf, VHCA_BDF_STR(bdf)) != 0)
		v++;
	assert(v < HW_VFS);
	return v;
}

/* A QEMU that closes takes its time; the engine hears of nothing but errors. */
static bool breaks(const struct iso *it, struct vhca_host_job *job)
{
	if (it->broken == ISO_DEAF_LEFT && job->vf->state == VHCA_VF_DETACHING) {
		job->result.rc = -ENOTSUP; /* else it would be tried at once, for ever */
		return true;
	}
	if (it->broken == ISO_GUID_LATE)
		return job->effect == VHCA_EFFECT_PROGRAM && job->bind;
	return it->broken == ISO_NO_SCRUB && job->effect == VHCA_EFFECT_SCRUB;
}

static void on_done(void *arg)
{
	struct vhca_host_job *job = arg;

	vhca_engine_effect_done(job->engine, job->vf, job->effect, &job->result);
	free(job);
}

static void on_job(void *arg)
{
	struct vhca_host_job *job = arg;
	struct iso *it = the_iso;

	truth_before_effect(&it->truth, iso_vf_at(it, job->vf->bdf),
			    vhca_effect_to_string(job->effect));
	it->stats.scrubs += job->effect == VHCA_EFFECT_SCRUB;
	it->begun[vf_of(job->vf)]--;
	it->truth.vfs[vf_of(job->vf)].asking = job->effect == VHCA_EFFECT_REREQUEST_GUID;
	if (!breaks(it, job))
		vhca_host_job_work(job);
	it->truth.vfs[vf_of(job->vf)].asking = false;
	truth_written(&it->truth, vf_of(job->vf));
	if (job->effect == VHCA_EFFECT_REREQUEST_GUID &&
	    (job->result.rc < 0 || it->dying || job->vf->state == VHCA_VF_FREE))
		truth_taint(&it->truth, vf_of(job->vf)); /* what was asked for may still be there */
	if (it->dying) {
		free(job);
		return;
	}
	vtime_after(VTIME_AGENT, iso_random(it, 4), on_done, job, free);
}

static void start_effect(void *ctx, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct iso *it = ctx;
	struct vhca_host_job *job;

	truth_before_effect(&it->truth, iso_vf_at(it, vf->bdf), vhca_effect_to_string(effect));
	if (effect == VHCA_EFFECT_ATTACH) {
		iso_virt_attach(it, vf);
	} else if (effect == VHCA_EFFECT_DETACH) {
		iso_virt_detach(it, vf);
	} else {
		job = vhca_host_job_new(NULL, "", vhca_engine_model(it->engine), vf, effect);
		assert(job);
		it->begun[vf_of(vf)]++;
		job->engine = it->engine;
		job->at.rtnl = &it->rtnl;
		job->at.kept = it->kept;
		it->strand_ms = (it->strand_ms > vtime_now() ? it->strand_ms : vtime_now()) +
				iso_random(it, 4);
		vtime_after(VTIME_AGENT, it->strand_ms - vtime_now(), on_job, job, free);
	}
}

static void vfs_changed(void *ctx)
{
	(void)ctx;
}

/* ---- inventory ---- */

/* Where the VF at the address of v was made first (hw_init()). */
static uint16_t first_place(const struct hw *hw, unsigned int v)
{
	struct vhca_bdf bdf;

	assert(!vhca_bdf_parse(hw->vfs[v].bdf, &bdf));
	return (uint16_t)(bdf.fn - 1);
}

void iso_tell_inventory(struct iso *it)
{
	struct hw *hw = &it->truth.hw;
	struct vhca_pf_facts *pf;
	struct vhca_inventory inv = {.n_pfs = 1};

	if (!it->engine)
		return;
	inv.pfs = pf = calloc(1, sizeof(*pf));
	assert(pf && !vhca_bdf_parse(HW_PF, &pf->bdf));
	(void)vhca_strcpy(pf->driver, sizeof(pf->driver),
			  hw->card == HW_MLX4 ? "mlx4_core" : "mlx5_core");
	pf->family = hw->card == HW_MLX4 ? VHCA_FAMILY_MLX4 : VHCA_FAMILY_MLX5;
	if (hw->registered)
		(void)vhca_strcpy(pf->ibdev, sizeof(pf->ibdev), hw->ibdev);
	pf->numa_node = -1;
	pf->n_ports = (uint8_t)hw->n_ports;
	pf->ib_ports = hw->registered ? VHCA_IB_PORTS_SOME : VHCA_IB_PORTS_UNKNOWN;
	pf->n_vfs = pf->num_vfs = pf->total_vfs = HW_VFS;
	for (uint16_t v = 0; v < HW_VFS; v++) {
		struct vhca_vf_facts *vf = &pf->vfs[v];

		vf->index = it->broken == ISO_PLACE_LEFT ? first_place(hw, v) : v;
		vf->iommu_group = v + 1;
		vf->group_size = 1;
		assert(!vhca_bdf_parse(hw->vfs[v].bdf, &vf->bdf));
		(void)vhca_strcpy(vf->driver, sizeof(vf->driver), hw->vfs[v].driver);
	}
	vhca_engine_inventory(it->engine, &inv);
	free(pf);
}

/* ---- lives ---- */

static void on_log(enum vhca_log_level level, const char *msg)
{
	(void)level;
	if (getenv("VHCA_ISO_LOG"))
		fprintf(stderr, "# %llu %s\n", (unsigned long long)vtime_now(), msg);
}

static void on_tick(void *arg, uint64_t ms)
{
	struct iso *it = arg;

	if (!it->engine || !it->virt_up || !it->truth.hw.registered || vtime_asleep())
		return;
	truth_pass(&it->truth, ms);
	if (it->sm_up)
		truth_sm_pass(&it->truth, ms);
}

static void configure(struct vhca_conf *conf)
{
	vhca_conf_set_defaults(conf);
	conf->allow_default_partition = true;
	conf->n_hcas = 1;
	conf->hcas[0] = (struct vhca_conf_hca){.is_default = true,
					       .manage = true,
					       .vfs = VHCA_CONF_VFS_KEEP,
					       .fabric = "default",
					       .port = 1};
	conf->sm_pkeys = VHCA_SM_PKEYS_DYNAMIC;
}

/* Memory, if there is some: a commit waits for the disk, and nothing here is about disks. */
static void make_dir(struct iso *it)
{
	(void)snprintf(it->dir, sizeof(it->dir), "%s/vhca-iso-XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	assert(mkdtemp(it->dir));
}

static void make_adapter(struct iso *it, const struct iso_plan *plan)
{
	struct hw *hw = &it->truth.hw;

	sim_rtnl_init(&it->kernel, 4, HW_PF, HW_VFS);
	it->rtnl = (struct vhca_rtnl){iso_door_rtnl, it};
	hw_init(hw, plan->card, plan->n_keys, &it->kernel);
	for (unsigned int i = 0; i < plan->strangers; i++)
		hw->pkeys[0][1 + i] = (uint16_t)(ISO_STRANGER + i);
	memcpy(it->shown, hw->pkeys[0], sizeof(it->shown));
	for (unsigned int v = 0; v < HW_VFS; v++)
		it->truth.vfs[v].drifted = true; /* as the driver made them */
}

void iso_init(struct iso *it, const struct iso_plan *plan)
{
	memset(it, 0, sizeof(*it));
	the_iso = it;
	it->rng = plan->seed * 2654435761u + 88172645463325252u;
	it->broken = plan->broken;
	it->virt_up = it->sm_up = true;
	TAILQ_INIT(&it->commits);
	TAILQ_INIT(&it->reports);
	make_dir(it);
	vhca_log_set_level(VHCA_LOG_DEBUG);
	vhca_log_set_sink(on_log);
	vtime_reset(on_tick, it);
	configure(&it->conf);
	(void)snprintf(it->boot_id, sizeof(it->boot_id), "boot-1");
	it->truth.boot = it->boot_id;
	make_adapter(it, plan);
	iso_virt_init(it);
	iso_sm_init(it);
	iso_door_use(it);
}

void iso_start(struct iso *it)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_engine_args args = {
		.conf = &it->conf,
		.fenced = true,
		.effects = {start_effect, iso_virt_refresh, vfs_changed, it},
	};
	struct vhca_bdf pf;
	char path[96];
	int r;

	(void)snprintf(path, sizeof(path), "%s/state.db", it->dir);
	assert(vhca_bdf_parse(HW_PF, &pf) == 0 && (it->kept = vhca_identity_kept_new(pf)));
	assert(vhca_loop_new(&it->loop) == 0 && vhca_events_new(&it->events) == 0);
	r = vhca_store_open(path, vhca_journal_migrations, vhca_journal_n_migrations, it->loop,
			    &it->store, &err);
	args.loop = it->loop;
	args.store = it->store;
	args.events = it->events;
	(void)vhca_strcpy(args.boot_id, sizeof(args.boot_id), it->boot_id);
	if (r < 0 || vhca_engine_new(&args, &it->engine, &err) < 0) {
		fprintf(stderr, "# %s\n", err.msg);
		abort();
	}
	if (!it->truth.db)
		truth_open(&it->truth, path);
	/* Only its address counts: what it would be asked for is iso_sm.c's. */
	vhca_engine_set_outbox(it->engine, (struct vhca_outbox *)it);
	it->dying = false;
	it->strand_ms = it->sm_answer_ms = 0;
	iso_tell_inventory(it);
	iso_sm_start(it);
	if (it->virt_up)
		iso_virt_sync(it);
}

void iso_kill(struct iso *it)
{
	if (!it->engine)
		return;
	it->stats.kills++;
	it->die_in = 0;
	drop_commits(it);
	vtime_drop_agent();
	for (unsigned int v = 0; v < HW_VFS; v++) {
		it->truth.vfs[v].calling = false;
		it->truth.vfs[v].late = it->begun[v] = 0;
	}
	truth_delay(&it->truth);
	it->engine = vhca_engine_free(it->engine);
	vtime_drop_agent(); /* the answers to those who waited */
	iso_sm_forget(it, false);
	it->store = vhca_store_close(it->store);
	it->events = vhca_events_free(it->events);
	it->kept = vhca_identity_kept_free(it->kept);
	it->loop = vhca_loop_free(it->loop);
}

static void on_restart(struct iso *it, unsigned int v)
{
	(void)v;
	if (!it->engine)
		iso_start(it);
}

void iso_run(struct iso *it, uint64_t ms)
{
	uint64_t until = vtime_now() + ms;

	while (vtime_run_one(until) && !it->truth.violation[0]) {
		truth_check(&it->truth);
		if (!it->dying)
			continue;
		iso_kill(it);
		iso_later(it, false, iso_random(it, 3000), on_restart, 0);
	}
	truth_check(&it->truth);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void iso_done(struct iso *it)
{
	iso_kill(it);
	iso_sm_forget(it, true);
	sim_sm_done(&it->sm);
	truth_close(&it->truth);
	vtime_reset(NULL, NULL);
	(void)nftw(it->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	vhca_log_set_sink(NULL);
}
