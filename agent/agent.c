/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "agent/api/api.h"
#include "agent/api/configuration.h"
#include "agent/api/peer_server.h"
#include "agent/domains.h"
#include "agent/hook_server.h"
#include "agent/host/host.h"
#include "agent/migration/peer.h"
#include "agent/state/journal.h"
#include "agent/state/repeats.h"
#include "agent/vfs_file.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"

_Static_assert(VHCA_CONF_URLS_MAX == VHCA_SM_URLS_MAX, "what may be configured can be used");

#define READY_CHECK_MS 200
#define READY_MAX_MS   30000U /* libvirtd waits behind us at boot: then it must start, VFs or not */

struct vhca_agent {
	struct vhca_agent_args args;
	struct vhca_conf *conf;
	int state_fd; /* locked */
	struct vhca_loop *loop;
	struct vhca_sysfs *sys;
	struct vhca_events *events;
	struct vhca_store *store;
	struct vhca_repeats *repeats;
	struct vhca_engine *engine;
	const struct vhca_sm_ops *sm;
	struct vhca_credentials credentials;
	struct vhca_http_loop_client *http;
	struct vhca_outbox *outbox;
	struct vhca_host *host;
	struct vhca_domains *domains;
	struct vhca_vfs_file *vfs_file;
	struct vhca_peer *peer;
	struct vhca_migrations *migrations;
	struct vhca_drain *drain;
	struct vhca_host_memory *memory;
	struct vhca_peer_api *peer_api;
	struct vhca_api *api;
	struct vhca_hookd *hookd;
	struct vhca_reload *reload;
	struct vhca_timer *ready;
	uint64_t ready_deadline;
	char boot_id[VHCA_UUID_STRLEN];
};

/* ---- effects ---- */

static void start_effect(void *ctx, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct vhca_agent *a = ctx;

	if (vhca_effect_room(effect) == VHCA_EFFECT_AT_LIBVIRT)
		vhca_domains_effect(a->domains, vf, effect);
	else
		vhca_host_effect(a->host, vf, effect);
}

static void refresh_domain(void *ctx, const struct vhca_uuid *uuid)
{
	const struct vhca_agent *a = ctx;

	vhca_domains_refresh(a->domains, uuid);
}

static void look_at_domain(void *ctx, const struct vhca_uuid *uuid,
			   void (*fn)(void *arg, bool known), void *arg)
{
	const struct vhca_agent *a = ctx;

	vhca_domains_look(a->domains, uuid, fn, arg);
}

static void vfs_changed(void *ctx)
{
	const struct vhca_agent *a = ctx;

	vhca_vfs_file_changed(a->vfs_file);
}

static void start_migration_effect(void *ctx, struct vhca_mig *m, enum vhca_mig_effect effect)
{
	struct vhca_agent *a = ctx;

	if (vhca_mig_effect_asks_peer(effect))
		vhca_peer_effect(a->peer, m, effect);
	else
		vhca_domains_migration(a->domains, a->conf, m, effect);
}

static void declare_members(void *ctx)
{
	const struct vhca_agent *a = ctx;

	vhca_engine_declare_members(a->engine);
}

/* libvirt's locks are held until the hook has ended: everything is answered from memory. */
static int on_hook(void *arg, const struct vhca_hook_request *req, struct vhca_error *err)
{
	const struct vhca_agent *a = arg;

	vhca_log_debug("%s: hook %s %s", req->name, req->op, req->subop);
	if (strcmp(req->op, "migrate") == 0 && req->has_away)
		return vhca_migrations_begin(a->migrations, &req->away, &req->uuid, err);
	return vhca_engine_hook(a->engine, req, err);
}

/* ---- configuration ---- */

static void apply_conf(void *ctx)
{
	struct vhca_agent *a = ctx;

	vhca_log_set_level(a->conf->log_level);
	vhca_engine_set_conf(a->engine, a->conf);
	vhca_migrations_set_conf(a->migrations);
	vhca_http_multi_renew(vhca_http_loop_client_multi(a->http));
	vhca_host_rescan(a->host);
}

static void on_reload(void *arg, int signo)
{
	const struct vhca_agent *a = arg;
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)signo;
	(void)vhca_reload_begin(a->reload, NULL, NULL, &err); /* says in the log what comes of it */
}

static void on_stop(void *arg, int signo)
{
	const struct vhca_agent *a = arg;

	vhca_log_notice("stopping on %s; guests keep their VFs", strsignal(signo));
	(void)sd_notify(0, "STOPPING=1");
	vhca_loop_exit(a->loop, 0);
}

/* ---- readiness ---- */

static void on_ready_timer(void *arg)
{
	const struct vhca_agent *a = arg;
	struct vhca_error why = VHCA_ERROR_INIT;

	if (vhca_engine_check_ready(a->engine, &why) == 0)
		(void)vhca_engine_check_ports(a->engine, &why);
	if (why.kind && vhca_now_ms() < a->ready_deadline) {
		vhca_timer_arm_ms(a->ready, READY_CHECK_MS);
		return;
	}
	if (why.kind)
		vhca_log_warning("ready all the same after %u s: %s", READY_MAX_MS / 1000, why.msg);
	vhca_log_notice("ready");
	vhca_reload_started(a->reload);
	(void)sd_notify(0, "READY=1");
}

/* ---- life ---- */

static int read_boot_id(char buf[static VHCA_UUID_STRLEN])
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = vhca_read_file("/proc/sys/kernel/random/boot_id", 64, &text, &len);

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	return vhca_strcpy(buf, VHCA_UUID_STRLEN, text);
}

static int make_dirs(const struct vhca_conf *conf, struct vhca_error *err)
{
	const char *const dirs[] = {conf->state_dir, conf->run_dir};

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(dirs); i++) {
		int r = vhca_mkdir_p(dirs[i], 0755);

		if (r < 0)
			return vhca_error_set(err, VHCA_ERR_INTERNAL, "directory", -r,
					      "%s: cannot create", dirs[i]);
	}
	return 0;
}

/*
 * A second one finds the sockets in use only when it has already read the first one's journal, and
 * taken what that is writing for what a killed one has left.
 */
static int lock_state(struct vhca_agent *a, struct vhca_error *err)
{
	const char *dir = a->conf->state_dir;

	a->state_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->state_fd < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "directory", errno, "%s: open", dir);
	if (flock(a->state_fd, LOCK_EX | LOCK_NB) < 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "state_in_use", errno,
				      "%s: in use by another vhcad", dir);
	return 0;
}

static int open_basics(struct vhca_agent *a, struct vhca_error *err)
{
	const char *root = a->args.sysfs_root ? a->args.sysfs_root : vhca_sysfs_default_root();
	char path[160];
	int r = vhca_conf_load(a->args.conf_path, &a->conf, err);

	if (r == 0)
		r = make_dirs(a->conf, err);
	if (r == 0)
		r = lock_state(a, err);
	if (r < 0)
		return r;
	vhca_log_set_level(a->conf->log_level);
	r = read_boot_id(a->boot_id);
	if (r == 0)
		r = vhca_loop_new(&a->loop);
	if (r == 0)
		r = vhca_sysfs_open(root, &a->sys);
	if (r == 0)
		r = vhca_events_new(&a->events);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "start", -r, "cannot start");
	(void)snprintf(path, sizeof(path), "%s/state.db", a->conf->state_dir);
	return vhca_store_open(path, vhca_journal_migrations, vhca_journal_n_migrations, a->loop,
			       &a->store, err);
}

static int open_engine(struct vhca_agent *a, struct vhca_error *err)
{
	struct vhca_engine_args args = {
		.loop = a->loop,
		.store = a->store,
		.events = a->events,
		.conf = a->conf,
		.effects = {start_effect, refresh_domain, vfs_changed, a},
	};
	const char *urls[VHCA_SM_URLS_MAX];
	struct vhca_outbox_conf ob = {
		.urls = urls, .n_urls = a->conf->n_sm_urls, .timeout_ms = a->conf->sm_timeout_ms};
	int r;

	(void)vhca_strcpy(args.boot_id, sizeof(args.boot_id), a->boot_id); /* same size */
	for (unsigned int i = 0; i < a->conf->n_sm_urls; i++)
		urls[i] = a->conf->sm_urls[i];
	ob.auth = a->credentials.sm;
	ob.named_other = vhca_engine_sm_named_other;
	ob.would_answer = vhca_engine_sm_would_answer;
	ob.snapshot = vhca_engine_snapshot;
	ob.lid_stays = vhca_engine_sm_keeps_lid;
	ob.ops = a->sm = vhca_sm_find(a->conf->sm_backend);
	if (!a->sm)
		return vhca_error_set(err, VHCA_ERR_INVALID, "sm_backend", 0,
				      "sm.backend %s is unknown", a->conf->sm_backend);
	args.fenced = a->sm->sends && a->sm->fenced;
	args.no_vports = a->sm->no_vports && !vhca_conf_shows_vports(a->conf);
	r = vhca_engine_new(&args, &a->engine, err);
	if (r == 0 && vhca_http_loop_client_new(a->loop, &a->http) < 0)
		r = vhca_error_no_memory(err, "HTTP client");
	if (r == 0)
		r = vhca_outbox_new(&ob, a->loop, a->store, vhca_http_loop_client_multi(a->http),
				    vhca_engine_sm_answer, a->engine, &a->outbox, err);
	if (r == 0)
		vhca_engine_set_outbox(a->engine, a->outbox);
	return r;
}

static int open_reload(struct vhca_agent *a, struct vhca_error *err)
{
	const struct vhca_reload_args args = {
		.loop = a->loop,
		.path = a->args.conf_path,
		.conf = a->conf,
		.credentials = &a->credentials,
		.apply = apply_conf,
		.ctx = a,
	};

	return vhca_reload_new(&args, &a->reload) < 0 ? vhca_error_no_memory(err, "reload") : 0;
}

static int open_drain(struct vhca_agent *a, struct vhca_error *err)
{
	struct vhca_drain_args args = {
		.loop = a->loop,
		.store = a->store,
		.events = a->events,
		.engine = a->engine,
		.migrations = a->migrations,
		.conf = a->conf,
	};

	return vhca_drain_new(&args, &a->drain, err);
}

static int open_world(struct vhca_agent *a, struct vhca_error *err)
{
	struct vhca_host_args host = {
		.loop = a->loop,
		.sys = a->sys,
		.dev_root = a->args.dev_root ? a->args.dev_root : "/dev",
		.engine = a->engine,
		.poll_ms = a->conf->poll_ms,
		.watch = a->args.watch_hardware,
	};
	struct vhca_migrations_args mig = {
		.loop = a->loop,
		.store = a->store,
		.events = a->events,
		.engine = a->engine,
		.conf = a->conf,
		.auth = a->credentials.peer,
		.effects = {start_migration_effect, declare_members, a},
	};
	int r = vhca_vfs_file_new(a->loop, a->conf, a->engine, &a->vfs_file, err);

	if (r == 0)
		r = vhca_host_new(&host, &a->host, err);
	if (r == 0)
		r = vhca_domains_new(a->loop, a->conf->libvirt_uri, a->engine, &a->domains, err);
	if (r == 0 && vhca_peer_new(a->loop, vhca_http_loop_client_multi(a->http), a->conf,
				    a->credentials.peer, &a->peer) < 0)
		r = vhca_error_no_memory(err, "peers");
	if (r == 0)
		r = vhca_migrations_new(&mig, &a->migrations, err);
	if (r == 0)
		r = open_drain(a, err);
	if (r == 0)
		r = open_reload(a, err);
	return r;
}

static int open_peer_api(struct vhca_agent *a, struct vhca_error *err)
{
	struct vhca_peer_api_parts parts = {.migrations = a->migrations};
	int r;

	if (!a->conf->peer_listen[0])
		return 0;
	r = vhca_host_memory_new(a->loop, a->sys, NULL, &a->memory);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", -r, "peer API");
	parts.memory = a->memory;
	if (a->conf->tls_certificate[0])
		parts.auth = a->credentials.peer;
	else
		vhca_log_warning("[api] peer_listen: whoever reaches %s may ask for VFs: without "
				 "[tls] it is plain HTTP",
				 a->conf->peer_listen);
	return vhca_peer_api_new(a->loop, a->conf, &parts, &a->peer_api, err);
}

static int open_servers(struct vhca_agent *a, struct vhca_error *err)
{
	struct vhca_api_args api = {
		.loop = a->loop,
		.engine = a->engine,
		.host = a->host,
		.virt = vhca_domains_virt(a->domains),
		.outbox = a->outbox,
		.migrations = a->migrations,
		.drain = a->drain,
		.events = a->events,
		.reload = a->reload,
		.look = look_at_domain,
		.look_ctx = a,
		.sm = a->sm,
		.conf = a->conf,
		.store = a->store,
		.boot_id = a->boot_id,
		.auth = a->credentials.api,
	};
	char path[108];
	int r = vhca_repeats_new(a->store, &a->repeats, err);

	api.repeats = a->repeats;
	if (r == 0)
		r = vhca_api_new(&api, &a->api, err);

	(void)snprintf(path, sizeof(path), "%s/hook.sock", a->conf->run_dir);
	if (r == 0)
		r = vhca_hookd_new(a->loop, path, on_hook, a, &a->hookd, err);
	if (r == 0)
		r = open_peer_api(a, err);
	if (r == 0 && (vhca_timer_new(a->loop, "ready", on_ready_timer, a, &a->ready) < 0 ||
		       vhca_loop_on_signal(a->loop, SIGTERM, on_stop, a) < 0 ||
		       vhca_loop_on_signal(a->loop, SIGINT, on_stop, a) < 0 ||
		       vhca_loop_on_signal(a->loop, SIGHUP, on_reload, a) < 0))
		r = vhca_error_set(err, VHCA_ERR_INTERNAL, "start", ENOMEM, "cannot start");
	return r;
}

int vhca_agent_block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

int vhca_agent_new(const struct vhca_agent_args *args, struct vhca_agent **ret,
		   struct vhca_error *err)
{
	struct vhca_agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return vhca_error_no_memory(err, "agent");
	a->args = *args;
	a->state_fd = -1;
	r = open_basics(a, err);
	if (r == 0)
		r = vhca_credentials_load(a->conf, &a->credentials, err);
	if (r == 0)
		r = open_engine(a, err);
	if (r == 0)
		r = open_world(a, err);
	if (r == 0)
		r = open_servers(a, err);
	if (r < 0) {
		vhca_agent_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

int vhca_agent_run(struct vhca_agent *a)
{
	int r;

	a->ready_deadline = vhca_now_ms() + READY_MAX_MS;
	vhca_timer_arm_ms(a->ready, READY_CHECK_MS);
	(void)sd_event_set_watchdog(vhca_loop_event(a->loop),
				    true); /* off where the unit has no WatchdogSec */
	vhca_log_notice("node %s: started", a->conf->node_name);
	r = vhca_loop_run(a->loop);
	return r < 0 ? 1 : r;
}

struct vhca_agent *vhca_agent_free(struct vhca_agent *a)
{
	if (!a)
		return NULL;
	vhca_reload_free(a->reload); /* it is for parts that are freed after it */
	/*
	 * First what brings events in, then the store (which commits what is queued), then who is
	 * told about it.
	 */
	vhca_hookd_free(a->hookd);
	vhca_host_memory_free(a->memory);
	vhca_domains_free(a->domains);
	vhca_host_free(a->host);
	vhca_outbox_free(a->outbox);
	vhca_repeats_stop(a->repeats);
	if (a->store)
		vhca_store_close(a->store);
	vhca_peer_free(a->peer);
	vhca_drain_free(a->drain);
	vhca_migrations_free(a->migrations);
	vhca_engine_free(a->engine);
	vhca_api_free(a->api);
	vhca_repeats_free(a->repeats);
	vhca_peer_api_free(a->peer_api);
	vhca_vfs_file_free(a->vfs_file);
	if (a->http)
		vhca_http_loop_client_free(a->http);
	vhca_credentials_done(&a->credentials);
	vhca_timer_free(a->ready);
	vhca_events_free(a->events);
	vhca_sysfs_close(a->sys);
	vhca_loop_free(a->loop);
	vhca_close_cleanup(&a->state_fd); /* when nobody writes there any more */
	free(a->conf);
	free(a);
	return NULL;
}
