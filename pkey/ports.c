/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Everything that can block (open, query, close, sysfs) is a job on the strand with its own copies;
 * the object itself belongs to the state thread. At most one query runs: events that come meanwhile
 * are remembered and cause one more. A job holds a reference, so that the owner may close at any
 * time, also from its callback.
 */
#include "pkey/ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "pkey/verbs.h"

#define PORTS_MAX  2
#define EVENTS_MAX 256 /* taken in one go; the rest waits for the next round of the loop */

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

/* What an event asked for beside "look again". */
struct wishes {
	bool pkeys, reregister;
};

struct vhca_ports {
	struct vhca_loop *loop;
	struct vhca_strand *strand;
	struct vhca_sysfs *sys;
	struct vhca_bdf pf;
	uint32_t poll_ms;
	vhca_port_fn fn;
	void *arg;

	unsigned int refs; /* the owner, each job, each report under way */
	bool closed;	   /* the owner has gone: no more callbacks */
	bool gone;	   /* GONE was reported */
	struct vhca_verbs *verbs;
	struct vhca_watch *watch;
	struct vhca_timer *timer;
	bool querying, query_again;
	struct wishes wishes[PORTS_MAX];
	bool known[PORTS_MAX];
	struct vhca_port_state last[PORTS_MAX]; /* as reported */
};

struct open_job {
	struct vhca_ports *ports;
	struct vhca_sysfs *sys;
	struct vhca_bdf pf;
	struct vhca_verbs *verbs;
	int r;
};

struct query_job {
	struct vhca_ports *ports;
	struct vhca_sysfs *sys;
	struct vhca_bdf pf;
	struct vhca_verbs
		*verbs; /* the object's: it stays open while the job holds its reference */
	uint8_t n_ports;
	struct wishes wishes[PORTS_MAX];
	struct vhca_port_state state[PORTS_MAX];
	bool worked;
	int r;
};

static const char *const state_names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "DEFER"};

const char *vhca_port_state_to_string(uint8_t state)
{
	return state < VHCA_ARRAY_SIZE(state_names) ? state_names[state] : "unknown";
}

/* ---- the end ---- */

struct close_job {
	struct vhca_verbs *verbs;
};

static void close_work(void *arg)
{
	struct close_job *job = arg;

	job->verbs = vhca_verbs_close(job->verbs);
}

static void close_done(void *arg)
{
	close_work(arg); /* does nothing unless the strand was freed before it came to us */
	free(arg);
}

static void close_verbs(struct vhca_strand *strand, struct vhca_verbs *verbs)
{
	struct close_job *job;

	if (!verbs)
		return;
	job = malloc(sizeof(*job));
	if (job) {
		job->verbs = verbs;
		if (vhca_strand_submit(strand, close_work, close_done, job) == 0)
			return;
		free(job);
	}
	/*
	 * The strand takes nothing any more, so the program is ending: nobody waits for the state
	 * thread.
	 */
	(void)vhca_verbs_close(verbs);
}

static void unref(struct vhca_ports *ports)
{
	if (--ports->refs > 0)
		return;
	close_verbs(ports->strand, ports->verbs);
	free(ports);
}

static void stop_sources(struct vhca_ports *ports)
{
	ports->watch = vhca_watch_free(ports->watch);
	ports->timer = vhca_timer_free(ports->timer);
}

struct vhca_ports *vhca_ports_close(struct vhca_ports *ports)
{
	if (!ports)
		return NULL;
	ports->closed = true;
	stop_sources(ports);
	unref(ports);
	return NULL;
}

static void report(struct vhca_ports *ports, enum vhca_port_event event,
		   const struct vhca_port_state *state)
{
	if (!ports->closed)
		ports->fn(ports->arg, event, state);
}

static void report_gone(struct vhca_ports *ports)
{
	ports->gone = true;
	stop_sources(ports);
	report(ports, VHCA_PORT_GONE, NULL);
}

/* ---- query ---- */

static int first_name(void *ctx, const char *name)
{
	return vhca_strcpy(ctx, 64, name) < 0 ? -E2BIG : 1;
}

/* The PF's RDMA device, by the name that it has right now. */
static int open_ibdev(struct vhca_sysfs *sys, struct vhca_bdf pf, char ret_name[static 64],
		      struct vhca_sysfs_dir **ret_dir)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *pci = NULL;
	char path[160];
	int r;

	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s", VHCA_BDF_STR(pf));
	r = vhca_sysfs_opendir(sys, path, &pci);
	if (r == 0)
		r = vhca_sysfs_list(pci, "infiniband", first_name, ret_name);
	if (r < 0)
		return r;
	if (r == 0)
		return -ENODEV;
	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s/infiniband/%s", VHCA_BDF_STR(pf),
		       ret_name);
	return vhca_sysfs_opendir(sys, path, ret_dir);
}

/*
 * Through sysfs, because ibv_query_pkey() goes by the name of the device at open and fails for ever
 * after a rename.
 */
static int read_pkeys(struct vhca_sysfs_dir *dir, struct vhca_port_state *state)
{
	if (state->n_pkeys > VHCA_ARRAY_SIZE(state->pkeys))
		state->n_pkeys = VHCA_ARRAY_SIZE(state->pkeys);
	for (unsigned int i = 0; i < state->n_pkeys; i++) {
		char attr[48];
		uint64_t pkey;
		int r;

		(void)snprintf(attr, sizeof(attr), "ports/%u/pkeys/%u", state->port, i);
		r = vhca_sysfs_read_u64(dir, attr, 16, UINT16_MAX, &pkey);
		if (r < 0)
			return r;
		state->pkeys[i] = (uint16_t)pkey;
	}
	return 0;
}

static void query_work(void *arg)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;
	struct query_job *job = arg;
	char name[64];

	job->worked = true;
	job->r = open_ibdev(job->sys, job->pf, name, &dir);
	for (uint8_t i = 0; i < job->n_ports && job->r == 0; i++) {
		job->r = vhca_verbs_query(job->verbs, (uint8_t)(i + 1), &job->state[i]);
		if (job->r == 0)
			job->r = read_pkeys(dir, &job->state[i]);
	}
}

static bool same_but_table(const struct vhca_port_state *a, const struct vhca_port_state *b)
{
	return a->state == b->state && a->phys_state == b->phys_state && a->is_ib == b->is_ib &&
	       a->lid == b->lid && a->sm_lid == b->sm_lid && a->port_guid == b->port_guid &&
	       a->gid_prefix == b->gid_prefix;
}

static void report_port(struct vhca_ports *ports, unsigned int i, const struct query_job *job)
{
	const struct vhca_port_state *now = &job->state[i], *last = &ports->last[i];
	bool first = !ports->known[i];
	bool changed = first || !same_but_table(now, last);
	bool same_table = now->n_pkeys == last->n_pkeys &&
			  memcmp(now->pkeys, last->pkeys, sizeof(now->pkeys)) == 0;
	bool pkeys = job->wishes[i].pkeys || (!first && !same_table);

	ports->known[i] = true;
	ports->last[i] = *now;
	if (changed)
		report(ports, VHCA_PORT_CHANGED, now);
	if (pkeys)
		report(ports, VHCA_PORT_PKEYS, now);
	if (job->wishes[i].reregister)
		report(ports, VHCA_PORT_REREGISTER, now);
}

static void start_query(struct vhca_ports *ports);

static void use_result(struct vhca_ports *ports, const struct query_job *job)
{
	if (job->r == 0) {
		for (unsigned int i = 0; i < job->n_ports; i++)
			report_port(ports, i, job);
		return;
	}
	/* A failed query leaves its wishes to the next one. */
	for (unsigned int i = 0; i < PORTS_MAX; i++) {
		ports->wishes[i].pkeys |= job->wishes[i].pkeys;
		ports->wishes[i].reregister |= job->wishes[i].reregister;
	}
	/*
	 * sysfs says ENOENT during a rename, for which udev will make the owner open anew; the next
	 * poll looks again.
	 */
	if (job->r == -EIO || job->r == -ENODEV)
		report_gone(ports);
	else
		vhca_log_info("%s: query ports: errno %d; looking again in %u ms",
			      VHCA_BDF_STR(ports->pf), -job->r, ports->poll_ms);
}

static void query_done(void *arg)
{
	VHCA_AUTO_FREE struct query_job *job = arg;
	struct vhca_ports *ports = job->ports;

	ports->querying = false;
	if (job->worked && !ports->closed && !ports->gone)
		use_result(ports, job);
	if (!ports->closed && !ports->gone) {
		vhca_timer_arm_ms(ports->timer, ports->poll_ms);
		if (ports->query_again)
			start_query(ports);
	}
	unref(ports);
}

static struct query_job *new_query(struct vhca_ports *ports)
{
	struct query_job *job = calloc(1, sizeof(*job));
	uint8_t n = vhca_verbs_n_ports(ports->verbs);

	if (!job)
		return NULL;
	job->ports = ports;
	job->sys = ports->sys;
	job->pf = ports->pf;
	job->verbs = ports->verbs;
	job->n_ports = n < PORTS_MAX ? n : PORTS_MAX;
	memcpy(job->wishes, ports->wishes, sizeof(job->wishes));
	return job;
}

static void start_query(struct vhca_ports *ports)
{
	struct query_job *job;

	if (ports->querying) {
		ports->query_again = true;
		return;
	}
	job = new_query(ports);
	if (!job || vhca_strand_submit(ports->strand, query_work, query_done, job) < 0) {
		free(job);
		vhca_timer_arm_ms(ports->timer, ports->poll_ms); /* the wishes stay for then */
		return;
	}
	memset(ports->wishes, 0, sizeof(ports->wishes));
	ports->query_again = false;
	ports->querying = true;
	ports->refs++;
}

void vhca_ports_poll(struct vhca_ports *ports)
{
	if (ports->verbs && !ports->gone)
		start_query(ports);
}

static void on_timer(void *arg)
{
	vhca_ports_poll(arg);
}

/* ---- events ---- */

/* Takes what waits, so that a burst (GID_CHANGE comes once for each entry) costs one query. */
static int drain(struct vhca_ports *ports, bool *ret_query)
{
	for (unsigned int n = 0; n < EVENTS_MAX; n++) {
		enum vhca_verbs_event event;
		uint8_t port = 0;
		int r = vhca_verbs_next_event(ports->verbs, &event, &port);

		if (r < 0)
			return r;
		if (event == VHCA_VERBS_FATAL)
			return -ENODEV;
		if (event == VHCA_VERBS_NONE)
			return 0;
		if (event == VHCA_VERBS_OTHER)
			continue;
		*ret_query = true;
		if (port < 1 || port > PORTS_MAX)
			continue; /* an event without a port */
		if (event == VHCA_VERBS_PKEYS)
			ports->wishes[port - 1].pkeys = true;
		if (event == VHCA_VERBS_REREGISTER)
			ports->wishes[port - 1].reregister = true;
	}
	return 0;
}

static void on_events(void *arg, uint32_t revents)
{
	struct vhca_ports *ports = arg;
	bool query = false;
	int r = drain(ports, &query);

	if (r == 0 && (revents & (EPOLLERR | EPOLLHUP)) != 0)
		r = -EIO;
	if (r < 0) {
		vhca_log_notice("%s: RDMA device has gone (errno %d)", VHCA_BDF_STR(ports->pf), -r);
		report_gone(ports);
		return;
	}
	if (query)
		start_query(ports);
}

/* ---- open ---- */

static void open_work(void *arg)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;
	struct open_job *job = arg;
	char name[64];

	job->r = open_ibdev(job->sys, job->pf, name, &dir);
	if (job->r == 0)
		job->r = vhca_verbs_open(name, &job->verbs);
}

static void open_done(void *arg)
{
	VHCA_AUTO_FREE struct open_job *job = arg;
	struct vhca_ports *ports = job->ports;
	int r = job->r;

	ports->verbs = job->verbs; /* closed with the object, whatever comes now */
	if (r == 0 && !ports->closed)
		r = vhca_watch_new(ports->loop, "verbs events", vhca_verbs_fd(ports->verbs),
				   EPOLLIN, on_events, ports, &ports->watch);
	if (r < 0) {
		vhca_log_notice("%s: open RDMA device: errno %d", VHCA_BDF_STR(ports->pf), -r);
		report_gone(ports);
	} else if (!ports->closed) {
		start_query(ports); /* events have no history: look once they are watched */
	}
	unref(ports);
}

static int submit_open(struct vhca_ports *ports)
{
	VHCA_AUTO_FREE struct open_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->ports = ports;
	job->sys = ports->sys;
	job->pf = ports->pf;
	job->r = -ECANCELED; /* if the strand drops it */
	r = vhca_strand_submit(ports->strand, open_work, open_done, job);
	if (r < 0)
		return r;
	ports->refs++;
	(void)vhca_steal_ptr(&job); /* open_done() frees it */
	return 0;
}

VHCA_DEFINE_CLEANUP(struct vhca_ports, vhca_ports_close)

int vhca_ports_open(struct vhca_loop *loop, struct vhca_strand *strand, struct vhca_sysfs *sys,
		    struct vhca_bdf pf, uint32_t poll_ms, vhca_port_fn fn, void *arg,
		    struct vhca_ports **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_ports_closep) struct vhca_ports *ports = calloc(1, sizeof(*ports));
	int r;

	if (!ports)
		return vhca_error_no_memory(err, "watch ports");
	*ports = (struct vhca_ports){.loop = loop,
				     .strand = strand,
				     .sys = sys,
				     .pf = pf,
				     .poll_ms = poll_ms,
				     .fn = fn,
				     .arg = arg,
				     .refs = 1};
	r = vhca_timer_new(loop, "port poll", on_timer, ports, &ports->timer);
	if (r == 0)
		r = submit_open(ports);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "ports_failed", -r,
				      "%s: watch the ports", VHCA_BDF_STR(pf));
	*ret = vhca_steal_ptr(&ports);
	return 0;
}
