/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/host/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <libudev.h>

#include "agent/host/effect.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "sriov/enable.h"

#define SCAN_DELAY_MS  50   /* udev events come in bursts: one per VF and link */
#define STRAND_WAIT_MS 2000 /* at shutdown, for a job that is running */
#define RETRY_FIRST_MS 500  /* after a scan that failed, if no event comes before */
#define RETRY_CAP_MS   30000
#define ENABLE_CAP_MS  300000 /* between attempts to make VFs that fail */
#define SCAN_POLLS     12     /* polls between two scans that no event asked for: a minute */

/* What has failed waits out a back-off; then a scan tries it again. */
struct pause {
	struct vhca_host *host;
	struct vhca_backoff backoff;
	struct vhca_timer *timer;
	bool waits;
};

struct pf {
	TAILQ_ENTRY(pf) link;
	struct vhca_host *host;
	struct vhca_bdf bdf;
	struct vhca_strand *strand;
	struct vhca_identity_kept *kept; /* used on the strand only; NULL = no memory for it */
	struct vhca_ports *ports;
	struct pause watching; /* after an RDMA device that went, or could not be opened */
	bool enabling;
	struct pause making; /* after an attempt to make VFs */
	uint16_t tried_vfs;  /* how many */
};

struct vhca_host {
	struct vhca_host_args args;
	struct vhca_strand *scan_strand;
	struct vhca_timer *scan_timer;
	struct vhca_timer *again_timer; /* the next scan, whatever udev says: events get lost */
	struct vhca_backoff backoff;	/* of scans that fail */
	bool scanning, scan_again;
	bool stopping; /* what a scan has found interests nobody any more */
	struct udev *udev;
	struct udev_monitor *monitor;
	struct vhca_watch *watch;
	TAILQ_HEAD(, pf) pfs;
};

/* ---- pauses ---- */

static void on_pause_over(void *arg)
{
	struct pause *p = arg;

	p->waits = false;
	vhca_host_rescan(p->host);
}

static int new_pause(struct vhca_host *host, const char *name, struct vhca_backoff backoff,
		     struct pause *ret)
{
	ret->host = host;
	ret->backoff = backoff;
	return vhca_timer_new(host->args.loop, name, on_pause_over, ret, &ret->timer);
}

static void begin_pause(struct pause *p)
{
	p->waits = true;
	vhca_timer_arm_ms(p->timer, vhca_backoff_next(&p->backoff));
}

/* ---- PFs ---- */

static struct pf *find_pf(const struct vhca_host *host, struct vhca_bdf bdf)
{
	struct pf *pf;

	TAILQ_FOREACH (pf, &host->pfs, link)
		if (vhca_bdf_cmp(pf->bdf, bdf) == 0)
			return pf;
	return NULL;
}

static void free_pauses(struct pf *pf)
{
	pf->watching.timer = vhca_timer_free(pf->watching.timer);
	pf->making.timer = vhca_timer_free(pf->making.timer);
}

static struct pf *need_pf(struct vhca_host *host, struct vhca_bdf bdf)
{
	struct pf *pf = find_pf(host, bdf);
	char name[32];

	if (pf)
		return pf;
	pf = calloc(1, sizeof(*pf));
	if (!pf)
		return NULL;
	pf->host = host;
	pf->bdf = bdf;
	(void)snprintf(name, sizeof(name), "pf %s", VHCA_BDF_STR(bdf));
	if (new_pause(host, "watch ports",
		      (struct vhca_backoff){.first_ms = SCAN_DELAY_MS, .cap_ms = RETRY_CAP_MS},
		      &pf->watching) < 0 ||
	    new_pause(host, "make VFs",
		      (struct vhca_backoff){.first_ms = RETRY_FIRST_MS, .cap_ms = ENABLE_CAP_MS},
		      &pf->making) < 0 ||
	    vhca_strand_new(host->args.loop, name, &pf->strand) < 0) {
		free_pauses(pf);
		free(pf);
		return NULL;
	}
	pf->kept = vhca_identity_kept_new(bdf);
	TAILQ_INSERT_TAIL(&host->pfs, pf, link);
	return pf;
}

uint64_t vhca_host_busy_since(const struct vhca_host *host, struct vhca_bdf bdf)
{
	const struct pf *pf = find_pf(host, bdf);

	return pf ? vhca_strand_busy_since(pf->strand) : 0;
}

/* ---- ports ---- */

static void on_port(void *arg, enum vhca_port_event event, const struct vhca_port_state *state)
{
	struct pf *pf = arg;

	vhca_engine_port(pf->host->args.engine, pf->bdf, event, state);
	if (event == VHCA_PORT_GONE) {
		pf->ports = vhca_ports_close(pf->ports);
		begin_pause(&pf->watching);
	} else {
		vhca_backoff_reset(&pf->watching.backoff);
	}
}

static void watch_ports(struct vhca_host *host, struct pf *pf)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (pf->ports || pf->watching.waits || !host->args.watch)
		return;
	if (vhca_ports_open(host->args.loop, pf->strand, host->args.sys, pf->bdf,
			    host->args.poll_ms, on_port, pf, &pf->ports, &err) < 0)
		vhca_log_warning("%s: %s", VHCA_BDF_STR(pf->bdf), err.msg);
}

/* ---- enabling ---- */

struct enable_job {
	struct pf *pf;
	struct vhca_pf_facts before, after;
	uint16_t count;
	bool replace; /* the VFs that there are go first */
	int rc;
	struct vhca_error err;
};

static void enable_work(void *arg)
{
	struct enable_job *job = arg;
	const struct vhca_host_args *a = &job->pf->host->args;

	job->rc =
		job->replace ? vhca_enable_clear(a->sys, a->dev_root, &job->before, &job->err) : 0;
	if (job->rc == 0)
		job->rc = vhca_enable_vfs(a->sys, &job->before, job->count, &job->after, &job->err);
}

static void enable_done(void *arg)
{
	VHCA_AUTO_FREE struct enable_job *job = arg;
	struct vhca_host *host = job->pf->host;

	job->pf->enabling = false;
	if (host->stopping)
		return;
	begin_pause(&job->pf->making); /* ends when a scan finds as many as are wanted */
	vhca_engine_hca_problem(host->args.engine, job->pf->bdf, job->rc < 0 ? &job->err : NULL);
	if (job->rc == 0)
		vhca_host_rescan(host);
}

/*
 * What live XML and claims say against taking all VFs of the HCA away; the vfio groups are probed
 * right before it is done.
 */
static int check_unused(struct vhca_host *host, const struct vhca_hca *hca, struct vhca_error *err)
{
	struct vhca_model *m = vhca_engine_model(host->args.engine);
	const struct vhca_vf *vf;

	if (!vhca_engine_virt_synced(host->args.engine))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "no_libvirt", EAGAIN,
				      "%s: has %u VFs, %u wanted; whether a guest has one of them "
				      "is not known before libvirt is connected",
				      VHCA_BDF_STR(hca->facts.bdf), hca->facts.num_vfs,
				      hca->want_vfs);
	TAILQ_FOREACH (vf, &hca->vfs, link) {
		const struct vhca_domain *user = vhca_model_user(m, vf->bdf, NULL);

		if (!vhca_engine_manages(host->args.engine, vf)) {
			(void)vhca_error_set(
				err, VHCA_ERR_CONFLICT, "vf_excluded", EBUSY,
				"%s: has %u VFs, %u wanted; they stay: %s is left out (exclude)",
				VHCA_BDF_STR(hca->facts.bdf), hca->facts.num_vfs, hca->want_vfs,
				VHCA_BDF_STR(vf->bdf));
			vhca_error_hint(err,
					"set vfs = %u in the configuration, or take exclude out",
					hca->facts.num_vfs);
			return -EBUSY;
		}
		if (!user && !vf->claim)
			continue;
		(void)vhca_error_set(
			err, VHCA_ERR_CONFLICT, "vf_in_use", EBUSY,
			"%s: has %u VFs, %u wanted; they stay: domain %s has %s",
			VHCA_BDF_STR(hca->facts.bdf), hca->facts.num_vfs, hca->want_vfs,
			user ? user->info->name : vf->claim->domain_name, VHCA_BDF_STR(vf->bdf));
		vhca_error_hint(
			err, "set vfs = %u in the configuration, or take the VFs from all guests",
			hca->facts.num_vfs);
		return -EBUSY;
	}
	return 0;
}

static bool lacks_infiniband(const struct vhca_hca *hca, struct vhca_error *err)
{
	if (!hca->wanted || hca->facts.ib_ports != VHCA_IB_PORTS_NONE)
		return false;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "no_infiniband", 0,
			     "%s: none of its ports is InfiniBand: it is not managed",
			     VHCA_BDF_STR(hca->facts.bdf));
	vhca_error_hint(err,
			"manage = no in [hca %s] of vhcad.conf, or make a port InfiniBand "
			"(LINK_TYPE_P1 of mlxconfig)",
			VHCA_BDF_STR(hca->facts.bdf));
	return true;
}

static void start_enable(struct pf *pf, struct vhca_hca *hca, bool replace)
{
	struct enable_job *job = calloc(1, sizeof(*job));

	if (!job)
		return;
	*job = (struct enable_job){
		.pf = pf, .before = hca->facts, .count = hca->want_vfs, .replace = replace};
	if (vhca_strand_submit(pf->strand, enable_work, enable_done, job) < 0) {
		free(job);
		return;
	}
	pf->enabling = true;
	pf->tried_vfs = hca->want_vfs;
	hca->replacing = replace;
}

static void enable(struct vhca_host *host, struct pf *pf, struct vhca_hca *hca)
{
	bool replace = hca->facts.family == VHCA_FAMILY_MLX5 && hca->facts.num_vfs;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (pf->enabling)
		return;
	hca->replacing = false;
	if (lacks_infiniband(hca, &err)) {
		vhca_engine_hca_problem(host->args.engine, pf->bdf, &err);
	} else if (!vhca_hca_gives_vfs(hca) || hca->want_vfs == VHCA_CONF_VFS_KEEP ||
		   hca->facts.num_vfs == hca->want_vfs) {
		pf->making.waits = false;
		vhca_backoff_reset(&pf->making.backoff);
		vhca_engine_hca_problem(host->args.engine, pf->bdf, NULL);
	} else if (replace && check_unused(host, hca, &err) < 0) {
		vhca_engine_hca_problem(host->args.engine, pf->bdf, &err);
	} else if (!pf->making.waits || pf->tried_vfs != hca->want_vfs) {
		start_enable(pf, hca, replace);
	}
}

/* ---- scanning ---- */

struct scan_job {
	struct vhca_host *host;
	struct vhca_inventory *inv;
	int rc;
	struct vhca_error err;
};

static void scan_work(void *arg)
{
	struct scan_job *job = arg;

	job->rc = vhca_inventory_scan(job->host->args.sys, &job->inv, &job->err);
}

static void use_inventory(struct vhca_host *host, const struct vhca_inventory *inv)
{
	struct vhca_model *m = vhca_engine_model(host->args.engine);

	vhca_engine_inventory(host->args.engine, inv);
	for (unsigned int i = 0; i < inv->n_pfs; i++) {
		struct pf *pf = need_pf(host, inv->pfs[i].bdf);
		struct vhca_hca *hca = vhca_model_hca(m, inv->pfs[i].bdf);

		if (!pf || !hca)
			continue;
		enable(host, pf, hca);
		if (inv->pfs[i].ibdev[0])
			watch_ports(host, pf);
	}
}

static void scan_later(struct vhca_host *host, const char *why)
{
	uint32_t ms = vhca_backoff_next(&host->backoff);

	vhca_log_error("inventory: %s; again in %u ms", why, ms);
	vhca_timer_arm_ms(host->scan_timer, ms);
}

static void scan_done(void *arg)
{
	VHCA_AUTO_FREE struct scan_job *job = arg;
	struct vhca_host *host = job->host;

	host->scanning = false;
	if (host->stopping) {
		vhca_inventory_free(job->inv);
		return;
	}
	if (job->rc < 0) {
		scan_later(host, job->err.msg);
	} else {
		vhca_backoff_reset(&host->backoff);
		use_inventory(host, job->inv);
	}
	vhca_inventory_free(job->inv);
	vhca_timer_arm_ms(host->again_timer, (uint64_t)SCAN_POLLS * host->args.poll_ms);
	if (host->scan_again)
		vhca_host_rescan(host);
}

static void on_again_timer(void *arg)
{
	vhca_host_rescan(arg);
}

static void on_scan_timer(void *arg)
{
	struct vhca_host *host = arg;
	struct scan_job *job;
	int r = -ENOMEM;

	host->scan_again = host->scanning;
	if (host->scanning)
		return;
	job = calloc(1, sizeof(*job));
	if (job) {
		job->host = host;
		r = vhca_strand_submit(host->scan_strand, scan_work, scan_done, job);
	}
	host->scanning = r == 0;
	if (r < 0) {
		free(job);
		scan_later(host, strerrordesc_np(-r));
	}
}

void vhca_host_rescan(struct vhca_host *host)
{
	vhca_timer_arm_ms(host->scan_timer, SCAN_DELAY_MS);
}

/* ---- effects ---- */

static void effect_done(void *arg)
{
	VHCA_AUTO_FREE struct vhca_host_job *job = arg;

	vhca_engine_effect_done(job->engine, job->vf, job->effect, &job->result);
}

void vhca_host_effect(struct vhca_host *host, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct pf *pf = need_pf(host, vf->hca->facts.bdf);
	struct vhca_host_job *job =
		vhca_host_job_new(host->args.sys, host->args.dev_root,
				  vhca_engine_model(host->args.engine), vf, effect);
	int r;

	if (!job) {
		vhca_log_error("%s: out of memory", VHCA_BDF_STR(vf->bdf));
		abort(); /* the engine would wait for ever; a restart recovers from the journal */
	}
	job->engine = host->args.engine;
	job->at.kept = pf ? pf->kept : NULL;
	r = pf ? vhca_strand_submit(pf->strand, vhca_host_job_work, effect_done, job) : -ENOMEM;
	if (r == 0)
		return;
	/* The engine's answer is owed all the same: from the loop, as the contract says. */
	job->result.rc = r;
	vhca_error_set(&job->result.err, VHCA_ERR_INTERNAL, "queue_full", -r,
		       "%s: its queue is full", VHCA_BDF_STR(vf->bdf));
	if (vhca_loop_post(host->args.loop, effect_done, job, free) < 0)
		effect_done(job);
}

/* ---- udev ---- */

static void on_udev(void *arg, uint32_t revents)
{
	/* Guests' taps and bridges come and go all day, and no scan has anything of them. */
	static const char virtual_bus[] = "/devices/virtual/";
	struct vhca_host *host = arg;
	enum vhca_pci_error error;
	struct udev_device *dev;
	struct vhca_bdf bdf;
	bool scan = false;

	(void)revents;
	while ((dev = udev_monitor_receive_device(host->monitor))) {
		const char *path = udev_device_get_devpath(dev);

		if (vhca_pci_error_parse(udev_device_get_sysname(dev),
					 udev_device_get_property_value(dev, "ERROR_EVENT"), &bdf,
					 &error) == 0)
			vhca_engine_pci_error(host->args.engine, bdf, error);
		scan = scan || !path || strncmp(path, virtual_bus, strlen(virtual_bus)) != 0;
		udev_device_unref(dev);
	}
	/* Anything may have been in what an overrun has lost. */
	if (scan || errno != EAGAIN)
		vhca_host_rescan(host);
}

static int watch_udev(struct vhca_host *host)
{
	/* "net" tells of an adapter's IPoIB interface, which comes after its RDMA device. */
	static const char *const subsystems[] = {"pci", "infiniband", "net"};

	host->udev = udev_new();
	host->monitor = host->udev ? udev_monitor_new_from_netlink(host->udev, "udev") : NULL;
	if (!host->monitor)
		return -ENOMEM;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(subsystems); i++)
		if (udev_monitor_filter_add_match_subsystem_devtype(host->monitor, subsystems[i],
								    NULL) < 0)
			return -EIO;
	if (udev_monitor_enable_receiving(host->monitor) < 0)
		return -EIO;
	return vhca_watch_new(host->args.loop, "udev", udev_monitor_get_fd(host->monitor), EPOLLIN,
			      on_udev, host, &host->watch);
}

/* ---- life ---- */

int vhca_host_new(const struct vhca_host_args *args, struct vhca_host **ret, struct vhca_error *err)
{
	struct vhca_host *host = calloc(1, sizeof(*host));
	int r;

	if (!host)
		return vhca_error_no_memory(err, "host");
	host->args = *args;
	host->backoff = (struct vhca_backoff){.first_ms = RETRY_FIRST_MS, .cap_ms = RETRY_CAP_MS};
	TAILQ_INIT(&host->pfs);
	r = vhca_strand_new(args->loop, "scan", &host->scan_strand);
	if (r == 0)
		r = vhca_timer_new(args->loop, "scan", on_scan_timer, host, &host->scan_timer);
	if (r == 0)
		r = vhca_timer_new(args->loop, "scan again", on_again_timer, host,
				   &host->again_timer);
	if (r == 0 && args->watch)
		r = watch_udev(host);
	if (r < 0) {
		vhca_host_free(host);
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "host", -r,
				      "cannot watch the hardware");
	}
	vhca_host_rescan(host);
	*ret = host;
	return 0;
}

struct vhca_host *vhca_host_free(struct vhca_host *host)
{
	struct pf *pf;

	if (!host)
		return NULL;
	host->stopping = true;
	while ((pf = TAILQ_FIRST(&host->pfs))) {
		TAILQ_REMOVE(&host->pfs, pf, link);
		pf->ports = vhca_ports_close(pf->ports);
		free_pauses(pf);
		if (!vhca_strand_free(pf->strand, STRAND_WAIT_MS))
			continue; /* its job still refers to it */
		vhca_identity_kept_free(pf->kept);
		free(pf);
	}
	vhca_watch_free(host->watch);
	udev_monitor_unref(host->monitor);
	udev_unref(host->udev);
	vhca_timer_free(host->scan_timer);
	vhca_timer_free(host->again_timer);
	if (vhca_strand_free(host->scan_strand, STRAND_WAIT_MS))
		free(host);
	return NULL;
}
