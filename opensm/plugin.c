/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvhcasm.so as OpenSM sees it: create, report, delete.
 *
 * Threads: one of our own serves HTTP, moves LIDs and has all files written, by another one
 * (disk.h) that only waits for the disk and for OpenSM's P_Key manager. Where the first waits for
 * OpenSM's lock (osm/lock.h) or for the second, it serves health. OpenSM's sweeper calls report():
 * that sets atomics and writes to an eventfd. It waits for our thread in two places, both bounded:
 * await_take_over(), and gate.h for moves in progress. LFT_CHANGE and TRAP come with OpenSM's lock
 * held: the one is counted, the other ignored, before anything could take it again. delete() is
 * followed by dlclose(): the thread is joined there, else OpenSM would crash at exit.
 * wait_for_pending_transactions() is never called: it wakes a single waiter, and that has to be
 * OpenSM's sweeper.
 */
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "config.h"
#include "opensm/disk.h"
#include "opensm/http/api.h"
#include "opensm/lids/dynamic.h"
#include "opensm/http/file_stamp.h"
#include "opensm/lids/gate.h"
#include "opensm/lids/mover.h"
#include "opensm/osm/dynamic.h"
#include "opensm/osm/guid_tables.h"
#include "opensm/osm/idle.h"
#include "opensm/osm/lid_file.h"
#include "opensm/osm/lids.h"
#include "opensm/osm/lock.h"
#include "opensm/osm/past_master.h"
#include "opensm/osm/places.h"
#include "opensm/osm/routing.h"
#include "opensm/osm/subnet.h"
#include "opensm/bindings/service.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_log.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_version.h>

#define DEFAULT_CONF	 VHCA_SYSCONFDIR "/vhcad/vhcasm.conf"
#define TAKE_OVER_LONG_S 5
#define TAKE_OVER_MS	 1000U
#define LOOK_MS		 2000U
#define BUSY_LOOK_MS	 5
#define GIVE_BACK_MS	 5000U
#define POLL_PAUSE_NS	 100000000

struct plugin {
	osm_opensm_t *osm;
	struct vhca_osm_opensm subnet;
	struct vhca_osm_conf conf;
	struct vhca_osm_service *service;
	struct vhca_osm_gate gate; /* the sweeper, and moves */
	struct vhca_osm_routing *routing;
	struct vhca_osm_dynamic_lids dynamic;
	char dynamic_path[VHCA_OSM_PATH_MAX];
	struct vhca_osm_kept_snapshot kept;
	struct vhca_osm_lids lids;
	struct vhca_osm_lid_file lid_file; /* the thread's */
	struct vhca_osm_mover *mover;
	struct vhca_osm_api *api;
	int wake_fd;
	atomic_bool stop;
	atomic_bool service_is_new;
	atomic_bool take_over_wanted; /* by the sweeper, which waits for take_over_done */
	atomic_bool was_standby;
	/*
	 * At the files of the API's door and at vhcasm.conf: OpenSM forgets a SIGHUP during a
	 * sweep.
	 */
	uint64_t look_at;
	struct vhca_osm_file_stamp conf_read, conf_seen;
	uint64_t take_over_at;	   /* what was not complete is tried again; UINT64_MAX = nothing */
	atomic_bool swept;	   /* OpenSM may have written its file of LIDs */
	atomic_bool swept_errors;  /* the last sweep that has ended had some */
	struct vhca_osm_idle idle; /* the thread's */
	uint64_t give_back_at;	   /* what is idle is free; UINT64_MAX = nothing is */
	sem_t take_over_done;
	bool busy;		   /* OpenSM changes its tables; the thread's */
	bool rebuilding;	   /* as the last look at idle LIDs found it, once for all lines */
	struct vhca_osm_disk disk; /* the thread's */
	bool running;
	pthread_t thread;
	char *opensm_partition_file; /* OpenSM's own string, given back in delete() */
	char *our_partition_file;    /* what stands in its place meanwhile */
};

/* The log sink of common/base has no context argument; one OpenSM runs in a process. */
static osm_log_t *opensm_log;

static void to_opensm_log(enum vhca_log_level level, const char *msg)
{
	static const osm_log_level_t levels[] = {[VHCA_LOG_ERROR] = OSM_LOG_ERROR,
						 [VHCA_LOG_WARNING] = OSM_LOG_ERROR,
						 [VHCA_LOG_NOTICE] = OSM_LOG_INFO,
						 [VHCA_LOG_INFO] = OSM_LOG_VERBOSE,
						 [VHCA_LOG_DEBUG] = OSM_LOG_DEBUG};

	osm_log(opensm_log, levels[level], "vhcasm: %s\n", msg);
}

/* ---- the thread ---- */

static void wake(const struct plugin *p)
{
	const uint64_t one = 1;

	/* Can only fail when the counter is full: then the thread is awake anyway. */
	(void)!write(p->wake_fd, &one, sizeof(one));
}

static int poll_timeout(const struct plugin *p)
{
	int http = vhca_osm_api_timeout_ms(p->api);
	uint64_t now = vhca_now_ms(), at = vhca_osm_service_deadline(p->service);
	uint64_t move = vhca_osm_mover_deadline(p->mover, now);
	int own = -1;

	if (move < at)
		at = move;
	if (p->look_at < at)
		at = p->look_at;
	if (p->take_over_at < at)
		at = p->take_over_at;
	if (p->give_back_at < at)
		at = p->give_back_at;
	if (at != UINT64_MAX)
		own = at <= now ? 0 : (int)(at - now < 60000 ? at - now : 60000);
	if (p->busy) /* for a moment if LIDs move, for no sweep goes on then */
		own = move <= now + 1 ? 1 : BUSY_LOOK_MS;
	if (own < 0 || (http >= 0 && http < own))
		return http;
	return own;
}

static void save_dynamic(const struct plugin *p)
{
	if (vhca_osm_dynamic_lids_save(p->dynamic_path, &p->dynamic) < 0)
		vhca_log_error("%s: not written; move it away before OpenSM is started again, "
			       "unless a dynamic LID is given or freed before",
			       p->dynamic_path);
}

/* First the partition file, the only one that OpenSM waits for. Killed before the others are
 * written, this becomes master anew, by what the ports show. */
static void take_over(struct plugin *p)
{
	bool was_standby = atomic_load(&p->was_standby);

	p->take_over_at = UINT64_MAX;
	if (was_standby) { /* what the other master has done since is not on this disk */
		vhca_osm_dynamic_forget(p->osm, &p->dynamic);
		vhca_osm_idle_lids_done(&p->idle.lids);
	}
	if (p->conf.inherit_s && vhca_osm_service_inherit(p->service, vhca_now_ms()) < 0) {
		p->take_over_at = vhca_now_ms() + TAKE_OVER_MS;
		return;
	}
	vhca_osm_api_take_over(p->api, was_standby);
	atomic_store(&p->was_standby, false);
	(void)sem_post(&p->take_over_done);
	(void)vhca_osm_service_commit(p->service, NULL); /* tried again by publish() */
	if (was_standby)
		save_dynamic(p);
}

/* ---- vhcasm.conf, read again ---- */

static const char *conf_path(const struct plugin *p)
{
	const char *path = p->osm->subn.opt.event_plugin_options;

	return path && *path ? path : DEFAULT_CONF;
}

static void say_read_again(const struct plugin *p)
{
	char text[256];
	struct vhca_strbuf keys;
	const char *key;

	vhca_strbuf_init(&keys, text, sizeof(text));
	for (size_t i = 0; (key = vhca_osm_conf_read_again(i)); i++)
		vhca_strbuf_add(&keys, "%s%s", i ? ", " : "", key);
	vhca_log_notice("%s: %s were read again; what else has changed there needs a restart of "
			"OpenSM",
			conf_path(p), text);
}

static void read_conf_again(struct plugin *p)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_conf conf;
	bool more;

	if (vhca_osm_conf_load(conf_path(p), &conf, &err) < 0) {
		vhca_log_error("%s; what was read before stays", err.msg);
		vhca_osm_service_conf_problem(p->service, err.msg);
		return;
	}
	vhca_osm_service_allow(p->service, &conf.policy, vhca_now_ms());
	p->lids.drain = conf.drain;
	p->conf.keep_s = conf.keep_s; /* what is idle by now may be due, or not be yet */
	p->give_back_at = conf.keep_s && p->conf.lids_move ? vhca_now_ms() : UINT64_MAX;
	more = conf.dynamic > p->dynamic.max;
	if (conf.dynamic != p->dynamic.max)
		vhca_osm_dynamic_limit(p->osm, &p->dynamic, conf.dynamic);
	if (more && p->conf.lids_move)
		vhca_osm_opensm_ops.sweep(&p->subnet);
	vhca_osm_conf_done(&conf);
	vhca_osm_service_conf_problem(p->service, "");
	say_read_again(p);
}

/* A file that has changed is read when it has not changed any more since the look before. */
static void look_at_conf(struct plugin *p)
{
	struct vhca_osm_file_stamp now;
	bool rests;

	vhca_osm_file_stamp_take(conf_path(p), &now);
	rests = memcmp(&now, &p->conf_seen, sizeof(now)) == 0;
	p->conf_seen = now;
	if (!rests || memcmp(&now, &p->conf_read, sizeof(now)) == 0)
		return;
	p->conf_read = now;
	read_conf_again(p);
}

/* ---- LIDs that nobody comes back for ---- */

/*
 * As long as agents are waited for, nobody is known to have gone. What had no port of its own when
 * it was bound may be a host that is off, whose GUID anybody can bind and withdraw.
 */
static enum vhca_osm_lid_claim find_claim(void *ctx, uint64_t guid)
{
	const struct plugin *p = ctx;
	const struct vhca_osm_table *table = vhca_osm_service_table(p->service);
	const struct vhca_osm_binding *b = vhca_osm_table_find(table, guid);

	if (p->rebuilding || (b && !b->withdrawn) || vhca_osm_table_port(table, guid) ||
	    vhca_osm_table_pinned(table, guid) || vhca_osm_agents_at(&p->conf.agents, guid))
		return VHCA_OSM_LID_CLAIMED;
	return b && b->own_port ? VHCA_OSM_LID_WITHDRAWN : VHCA_OSM_LID_UNCLAIMED;
}

/*
 * A guest without a port of its own tells nothing of the ports that there are. What an operator has
 * said to be gone (bindings/reports.h) leaves no VF behind.
 */
static bool has_guests(void *ctx, uint64_t pf_guid)
{
	const struct plugin *p = ctx;

	return find_claim(ctx, pf_guid) == VHCA_OSM_LID_WITHDRAWN ||
	       vhca_osm_table_own_ports_at(vhca_osm_service_table(p->service), pf_guid) > 0;
}

/* Not while a move is under way: what it is refused for it would put back. */
static void give_back_lids(struct plugin *p)
{
	uint64_t now = vhca_now_ms(), grace = (uint64_t)p->conf.keep_s * 1000;
	struct vhca_osm_mover_stats moves;
	int r = -EAGAIN;

	vhca_osm_mover_stats(p->mover, &moves);
	if (moves.queued == 0)
		r = vhca_osm_idle_give_back(&p->idle, grace, now);
	if (r < 0 && r != -EAGAIN)
		vhca_log_error("LIDs of guests that have gone are kept: %s", strerror(-r));
	p->give_back_at = vhca_osm_idle_lids_deadline(&p->idle.lids, grace);
	if (r < 0)
		p->give_back_at = now + GIVE_BACK_MS;
}

/* While OpenSM's tables can be had. What another master does meanwhile begins each grace anew. */
static void run_lids(struct plugin *p)
{
	bool swept = atomic_exchange(&p->swept, false);
	bool due =
		p->conf.lids_move && p->conf.keep_s && (swept || vhca_now_ms() >= p->give_back_at);

	if (p->osm->subn.sm_state != IB_SMINFO_STATE_MASTER) {
		vhca_osm_idle_lids_done(&p->idle.lids);
		p->give_back_at = UINT64_MAX;
		return;
	}
	if (swept || due)
		p->rebuilding = vhca_osm_service_is_rebuilding(p->service);
	if (swept) {
		p->idle.errors = atomic_load(&p->swept_errors);
		vhca_osm_service_find_own_ports(p->service);	   /* they are guests to the look */
		(void)vhca_osm_idle_look(&p->idle, vhca_now_ms()); /* else the next sweep's */
		vhca_osm_lid_file_check(&p->lid_file, p->osm, &p->gate);
	}
	if (due)
		give_back_lids(p);
}

/* While a file is written, or OpenSM has its tables locked: health is answered, all else waits. */
static void serve_meanwhile(void *ctx, int done_fd)
{
	const struct plugin *p = ctx;
	struct pollfd fds[] = {{.fd = done_fd, .events = POLLIN},
			       {.fd = vhca_osm_api_fd(p->api), .events = POLLIN}};

	while (!fds[0].revents)
		if (poll(fds, VHCA_ARRAY_SIZE(fds), vhca_osm_api_receive_timeout_ms(p->api)) >= 0)
			vhca_osm_api_receive(p->api);
}

static void serve(void *ctx)
{
	const struct plugin *p = ctx;

	vhca_osm_api_receive(p->api);
}

static void *thread_main(void *arg)
{
	struct plugin *p = arg;
	struct pollfd fds[] = {{.fd = p->wake_fd, .events = POLLIN},
			       {.fd = vhca_osm_api_fd(p->api), .events = POLLIN}};
	uint64_t count;

	vhca_osm_lock_meanwhile(serve, p);
	if (vhca_osm_disk_open(&p->disk, serve_meanwhile, p) < 0)
		vhca_log_error(
			"no thread for the disk: while a file is written, nobody is answered");
	while (!atomic_load(&p->stop)) {
		if (poll(fds, VHCA_ARRAY_SIZE(fds), poll_timeout(p)) < 0 && errno != EINTR) {
			/* OpenSM waits for this thread at a take-over: it has to go on. */
			vhca_log_error("poll: %s", strerror(errno));
			(void)nanosleep(&(struct timespec){.tv_nsec = POLL_PAUSE_NS}, NULL);
			continue;
		}
		if (fds[0].revents)
			(void)!read(p->wake_fd, &count,
				    sizeof(count)); /* non-blocking, a counter */
		if (atomic_exchange(&p->take_over_wanted, false) ||
		    vhca_now_ms() >= p->take_over_at)
			take_over(p);
		p->busy = vhca_osm_service_is_busy(p->service);
		if (!p->busy)
			run_lids(p);
		if (vhca_now_ms() >= p->look_at) {
			vhca_osm_api_look(p->api);
			if (!p->busy) /* it is in force when it is read */
				look_at_conf(p);
			p->look_at = vhca_now_ms() + LOOK_MS;
		}
		if (!p->busy)
			vhca_osm_mover_run(p->mover, vhca_now_ms()); /* its answers leave at once */
		vhca_osm_api_run(p->api);
		vhca_osm_service_publish(p->service, vhca_now_ms());
	}
	vhca_osm_disk_close(&p->disk);
	return NULL;
}

/* Signals belong to OpenSM's own threads. */
static int start_thread(struct plugin *p)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&p->thread, NULL, thread_main, p);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	p->running = r == 0;
	return -r;
}

/* ---- taking over ---- */

/*
 * Is OpenSM about to distribute partitions and LIDs as a master that may know less than its
 * predecessor?
 */
static bool takes_over(const struct plugin *p)
{
	const osm_subn_t *subn = &p->osm->subn;

	return subn->coming_out_of_standby ||
	       (p->conf.inherit_s && subn->sm_state == IB_SMINFO_STATE_DISCOVERING &&
		atomic_load(&p->service_is_new));
}

/*
 * The one thing for which the sweeper waits: once in a mastership, before the partition file is
 * read. The thread never waits for the sweeper while it does this. OpenSM takes away all keys that
 * are not in that file, from guests that run; so it waits for as long as this takes, unless it is
 * to end.
 */
static void await_take_over(struct plugin *p, bool another_was_master)
{
	struct timespec until;
	int r;

	while (sem_trywait(&p->take_over_done) == 0)
		; /* the late end of an earlier one */
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	atomic_store(&p->service_is_new, false);
	if (another_was_master || p->osm->subn.coming_out_of_standby)
		atomic_store(&p->was_standby, true);
	atomic_store(&p->take_over_wanted, true);
	wake(p);
	for (unsigned int s = 0; !osm_exit_flag; s++) {
		if (s == TAKE_OVER_LONG_S)
			vhca_log_error("OpenSM waits until the keys that ports have are kept: it "
				       "would take them away; see the disk of %s, or set inherit "
				       "= 0",
				       p->conf.state_dir);
		until.tv_sec++;
		while ((r = sem_clockwait(&p->take_over_done, CLOCK_MONOTONIC, &until)) < 0 &&
		       errno == EINTR)
			;
		if (r == 0)
			return;
	}
}

/* ---- OpenSM's options ---- */

/*
 * Without a base_file of our own, the partitions of an OpenSM that was configured before stay in
 * force.
 */
static void adopt_partition_file(struct plugin *p)
{
	const char *theirs = p->osm->subn.opt.partition_config_file;
	char ours[VHCA_OSM_PATH_MAX];

	if (p->conf.base_file[0] || !theirs || access(theirs, F_OK) != 0 ||
	    strcmp(theirs, vhca_osm_partition_path(&p->conf, ours)) == 0)
		return;
	if (strlen(theirs) >= sizeof(p->conf.base_file))
		return;
	(void)snprintf(p->conf.base_file, sizeof(p->conf.base_file), "%s", theirs);
	vhca_log_notice("%s is merged in as base_file", theirs);
}

/*
 * Lets OpenSM read our partition file. The option's old string may be shared with OpenSM's main():
 * it is kept and put back, not freed.
 */
static int redirect_partitions(struct plugin *p)
{
	osm_subn_opt_t *opt = &p->osm->subn.opt;
	const char *ours = vhca_osm_service_partition_file(p->service);

	if (opt->partition_config_file && strcmp(opt->partition_config_file, ours) == 0)
		return 0;
	p->our_partition_file = strdup(ours);
	if (!p->our_partition_file)
		return -ENOMEM;
	vhca_log_warning(
		"partition_config_file was %s, now %s; write the latter into opensm.conf, so that "
		"partitions also hold when the plugin cannot be loaded",
		opt->partition_config_file ? opt->partition_config_file : "not set", ours);
	p->opensm_partition_file = opt->partition_config_file;
	opt->partition_config_file = p->our_partition_file;
	return 0;
}

/* VFs map physical indexes of the port's table: OpenSM must not move a key that stays. */
static void keep_pkey_indexes(osm_opensm_t *osm)
{
	if (osm->subn.opt.keep_pkey_indexes)
		return;
	vhca_log_warning("keep_pkey_indexes FALSE is overruled: VFs map keys by index");
	osm->subn.opt.keep_pkey_indexes = TRUE;
}

/* ---- life ---- */

static void plugin_free(struct plugin *p)
{
	if (!p)
		return;
	if (p->running) {
		atomic_store(&p->stop, true);
		wake(p);
		(void)pthread_join(p->thread, NULL);
	}
	(void)vhca_osm_mover_free(p->mover); /* before the requests that it would answer */
	(void)vhca_osm_api_free(p->api);
	vhca_osm_kept_snapshot_done(&p->kept);
	(void)vhca_osm_routing_free(p->routing);
	vhca_osm_idle_done(&p->idle);
	vhca_osm_dynamic_lids_done(&p->dynamic);
	vhca_osm_gate_done(&p->gate);
	if (p->our_partition_file) {
		p->osm->subn.opt.partition_config_file = p->opensm_partition_file;
		free(p->our_partition_file);
	}
	vhca_osm_pkeys_done(&p->subnet.pkeys);
	vhca_osm_physical_done(&p->subnet.physical);
	(void)vhca_osm_service_free(p->service);
	vhca_osm_conf_done(&p->conf);
	vhca_close_cleanup(&p->wake_fd);
	(void)sem_destroy(&p->take_over_done);
	vhca_log_set_sink(NULL);
	free(p);
}
VHCA_DEFINE_CLEANUP(struct plugin, plugin_free)

static int make_socket_dir(const struct plugin *p, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *dir = NULL;
	char *slash;
	int r;

	if (strncmp(p->conf.listen, "unix:", 5) != 0)
		return 0;
	dir = strdup(p->conf.listen + 5);
	slash = dir ? strrchr(dir, '/') : NULL;
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	r = vhca_mkdir_p(dir, 0755);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "listen_dir", -r, "%s", dir);
	return 0;
}

/* The state directory is locked. */
static int load_dynamic(struct plugin *p, struct vhca_error *err)
{
	int r;

	p->dynamic.max = p->conf.dynamic;
	(void)snprintf(p->dynamic_path, sizeof(p->dynamic_path), "%s/dynamic-lids",
		       p->conf.state_dir);
	(void)vhca_sweep_leftovers(p->dynamic_path, 0);
	r = vhca_osm_dynamic_lids_load(p->dynamic_path, &p->dynamic, err);
	if (r < 0 || p->conf.lids_move || p->dynamic.n == 0)
		return r;
	/*
	 * What ports have stays theirs, as any other LID. Whether it is given to a guest is asked
	 * anew when LIDs may move again.
	 */
	vhca_log_notice("%zu dynamic LIDs are ordinary ones now: [lids] enable is no",
			p->dynamic.n);
	vhca_osm_dynamic_lids_clear(&p->dynamic);
	save_dynamic(p);
	return r;
}

static int check_shown(void *ctx, uint64_t port_guid, struct vhca_error *err)
{
	return vhca_osm_service_check_shown(ctx, port_guid, err);
}

static int check_keys(void *ctx, uint64_t port_guid, struct vhca_error *err)
{
	return vhca_osm_service_check_keys(ctx, port_guid, err);
}

static int make_mover(struct plugin *p, struct vhca_error *err)
{
	int r = vhca_osm_routing_new(p->osm, &p->dynamic, &p->kept.sweeping, &p->routing);

	p->lids = (struct vhca_osm_lids){
		.osm = p->osm,
		.subnet = &p->subnet,
		.keys = {.check_shown = check_shown, .check_keys = check_keys, .ctx = p->service},
		.routing = p->routing,
		.dynamic = &p->dynamic,
		.dynamic_path = p->dynamic_path,
		.kept = &p->kept,
		.counted = &p->idle.counts,
		.enabled = p->conf.lids_move,
		.drain = p->conf.drain,
	};
	p->idle = (struct vhca_osm_idle){
		.osm = p->osm,
		.gate = &p->gate,
		.dynamic = &p->dynamic,
		.claims = {.find = find_claim, .has_guests = has_guests, .ctx = p},
	};
	if (r == 0)
		r = vhca_osm_mover_new(&vhca_osm_opensm_lid_ops, &p->lids, &p->gate, &p->mover);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", -r, "vhcasm");
	return 0;
}

static int plugin_start(struct plugin *p, struct vhca_error *err)
{
	int r;

	vhca_osm_file_stamp_take(conf_path(p), &p->conf_read); /* first: a change is seen then */
	r = vhca_osm_conf_load(conf_path(p), &p->conf, err);
	p->conf.policy.both_memberships = p->osm->subn.opt.allow_both_pkeys;
	if (r < 0)
		return r;
	adopt_partition_file(p);
	r = vhca_osm_service_new(&p->conf, &vhca_osm_opensm_ops, &p->subnet, &p->service, err);
	if (r == 0)
		r = make_socket_dir(p, err);
	if (r == 0)
		r = load_dynamic(p, err);
	if (r == 0)
		r = make_mover(p, err);
	if (r == 0)
		r = vhca_osm_api_new(&p->conf, p->service, p->mover, &p->api, err);
	if (r < 0)
		return r;
	atomic_store(&p->service_is_new, vhca_osm_service_is_new(p->service));
	vhca_osm_lid_file_begin();
	r = redirect_partitions(p);
	if (r == 0)
		r = start_thread(p);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "start", -r, "thread");
	keep_pkey_indexes(p->osm);
	return 0;
}

static void *create(osm_opensm_t *osm)
{
	VHCA_CLEANUP(plugin_freep) struct plugin *p = calloc(1, sizeof(*p));
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!p)
		return NULL;
	opensm_log = &osm->log;
	vhca_log_set_sink(to_opensm_log);
	p->osm = osm;
	p->subnet.osm = osm;
	p->subnet.gate = &p->gate;
	p->subnet.seen_ms = vhca_now_ms();
	p->take_over_at = p->give_back_at = UINT64_MAX;
	(void)sem_init(&p->take_over_done, 0, 0);
	(void)vhca_osm_gate_init(&p->gate);
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0 || plugin_start(p, &err) < 0) {
		vhca_log_error("not started: %s%s%s", err.kind ? err.msg : strerror(errno),
			       err.hint[0] ? "; " : "", err.hint);
		return NULL;
	}
	vhca_log_notice("version " VHCA_VERSION " serves %s, state in %s", p->conf.listen,
			p->conf.state_dir);
	return vhca_steal_ptr(&p);
}

static void delete (void *data)
{
	plugin_free(data);
}

/* ---- where LIDs move ---- */

static void report(void *data, osm_epi_event_id_t id, void *event)
{
	struct plugin *p = data;
	bool another;

	if (id == OSM_EVENT_ID_LFT_CHANGE) {
		if (!vhca_osm_mover_answered(p->mover))
			return;
	} else if (id == OSM_EVENT_ID_HEAVY_SWEEP_START) {
		if (!vhca_osm_gate_sweep_begin(&p->gate))
			vhca_log_error("a sweep begins although a move has not ended, or guid2lid "
				       "is being written");
		if (p->conf.lids_move) {
			vhca_osm_kept_snapshot_swept(&p->kept, true);
			vhca_osm_places_unlist(p->osm);
			vhca_osm_routing_wrap(p->routing);
			vhca_osm_dynamic_reserve(p->osm, &p->dynamic);
		}
		vhca_osm_pkeys_sweep_begins(p->osm, &p->subnet.pkeys);
		vhca_osm_opensm_swept(&p->subnet, false);
		vhca_osm_service_on_sweep_start(p->service);
	} else if (id == OSM_EVENT_ID_HEAVY_SWEEP_DONE) {
		keep_pkey_indexes(p->osm); /* a changed opensm.conf was read a moment ago */
		another = vhca_osm_past_master_heed(p->osm, p->conf.lids_move);
		if (another || takes_over(p))
			await_take_over(p, another);
		if (p->conf.lids_move)
			vhca_osm_places_unlist(p->osm);
		vhca_osm_open_guid_tables(p->osm); /* some have another GUIDCap now */
		vhca_osm_pkeys_discovered(p->osm, &p->subnet.pkeys);
		vhca_osm_service_on_discovered(p->service);
	} else if (id == OSM_EVENT_ID_UCAST_ROUTING_DONE &&
		   (uintptr_t)event == UCAST_ROUTING_HEAVY_SWEEP) {
		/* It has computed and sent the switches' tables, and the ports' keys before. */
		vhca_osm_pkeys_sent(p->osm, &p->subnet.pkeys);
	} else if (id == OSM_EVENT_ID_SUBNET_UP) {
		vhca_osm_open_guid_tables(p->osm);
		/* Notes which ports are physical, which the service looks at. */
		vhca_osm_opensm_swept(&p->subnet, true);
		vhca_osm_service_on_subnet_up(p->service);
		if (p->conf.lids_move) {
			vhca_osm_kept_snapshot_swept(&p->kept, false);
			vhca_osm_dynamic_let_go(p->osm, &p->dynamic);
		}
		/* The next sweep forgets it at once, and keeps this one's tables for a while. */
		atomic_store(&p->swept_errors, p->osm->subn.subnet_initialization_error);
		vhca_osm_gate_sweep_end(&p->gate);
		atomic_store(&p->swept, true);
		vhca_osm_service_on_sweep_over(p->service);
	} else if (id == OSM_EVENT_ID_STATE_CHANGE) {
		vhca_osm_opensm_swept(&p->subnet, false);
	} else {
		return;
	}
	wake(p);
}

#if OSM_EVENT_PLUGIN_INTERFACE_VER != 2
#error "this OpenSM has another plugin interface"
#endif

__attribute__((visibility("default"))) extern osm_event_plugin_t osm_event_plugin;
osm_event_plugin_t osm_event_plugin = {
	.osm_version = OSM_VERSION,
	.create = create,
	.delete = delete,
	.report = report,
};
