/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/bindings/base_file.h"
#include "opensm/bindings/found_ports.h"
#include "opensm/bindings/publisher.h"
#include "opensm/bindings/state_file.h"

struct vhca_osm_service {
	struct vhca_osm_conf conf;
	struct vhca_osm_subnet subnet;
	struct vhca_osm_table *table;
	struct vhca_osm_reports reports; /* into the table */
	struct vhca_ratelimit refusals;
	uint64_t saved_revision, shown_needs;
	int lock_fd;
	char lock_path[VHCA_OSM_PATH_MAX], state_path[VHCA_OSM_PATH_MAX];
	char partition_path[VHCA_OSM_PATH_MAX];

	struct vhca_osm_base base;
	struct stat base_stat; /* of the file that base came from */
	atomic_bool base_check, ports_check;

	bool is_new;
	uint64_t inherited_until; /* UINT64_MAX = nothing is inherited */
	struct vhca_osm_publisher publisher;
	char *text;		/* what stands in the partition file; NULL = unknown */
	uint64_t save_retry_at; /* only while something is not saved */
	char base_problem[256], save_problem[256], write_problem[256], conf_problem[256];
	char keys_problem[64];
};

static const struct vhca_osm_limits limits = {.bindings = VHCA_OSM_BINDINGS_MAX,
					      .tombstones = VHCA_OSM_TOMBSTONES_MAX,
					      .never_bound = VHCA_OSM_NEVER_BOUND_MAX,
					      .ports = VHCA_OSM_PORTS_MAX};

static bool is_saved(const struct vhca_osm_service *s)
{
	return s->saved_revision == vhca_osm_table_revision(s->table);
}

static char *path_in(const struct vhca_osm_conf *conf, const char *name, char *buf)
{
	(void)snprintf(buf, VHCA_OSM_PATH_MAX, "%s/%s", conf->state_dir, name);
	return buf;
}

char *vhca_osm_partition_path(const struct vhca_osm_conf *conf, char buf[static VHCA_OSM_PATH_MAX])
{
	return path_in(conf, "partitions.conf", buf);
}

/* ---- base file ---- */

/*
 * The base file as of now replaces the old one; a wrong one is reported once and the old one stays.
 */
static void recheck_base(struct vhca_osm_service *s, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_base base = {0};
	struct stat st;

	if (!s->conf.base_file[0])
		return;
	if (stat(s->conf.base_file, &st) == 0 && vhca_same_file(&st, &s->base_stat)) {
		s->base_problem[0] = '\0';
		return;
	}
	if (vhca_osm_base_load(s->conf.base_file, &base, &st, &err) < 0) {
		if (strcmp(s->base_problem, err.msg) != 0)
			vhca_log_error("%s; the content read before stays in effect", err.msg);
		(void)vhca_strcpy(s->base_problem, sizeof(s->base_problem), err.msg);
		return;
	}
	vhca_log_notice("%s: changed, read again", s->conf.base_file);
	vhca_osm_base_done(&s->base);
	s->base = base;
	s->base_stat = st;
	s->base_problem[0] = '\0';
	vhca_osm_changed_ports_add_all(vhca_osm_table_changed_ports(s->table));
	vhca_osm_publisher_changed(&s->publisher, now);
}

/* Of the default partition, what was reported counts only while it may be asked for. */
void vhca_osm_service_allow(struct vhca_osm_service *s, const struct vhca_osm_policy *policy,
			    uint64_t now)
{
	s->conf.policy.n_allowed = policy->n_allowed;
	memcpy(s->conf.policy.allowed, policy->allowed, sizeof(policy->allowed));
	vhca_osm_changed_ports_add_all(vhca_osm_table_changed_ports(s->table));
	vhca_osm_publisher_changed(&s->publisher, now);
}

/* ---- partition file ---- */

/*
 * Writes the partition file if its text is not what it has to be. Returns 1 if it was replaced, 0
 * if not.
 */
static int write_partitions(struct vhca_osm_service *s, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	int r = vhca_osm_partitions_render(s->table, &s->base, &s->conf.policy, &text, &len);

	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "internal", -r, "%s",
				      s->partition_path);
	if (s->text && strcmp(s->text, text) == 0)
		return 0;
	free(s->text);
	s->text = NULL; /* one that fails may have replaced the file all the same */
	r = vhca_write_file_atomic(s->partition_path, text, len, 0640);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "partitions_not_written", -r, "%s",
				      s->partition_path);
	s->text = vhca_steal_ptr(&text);
	vhca_log_info("%s: written for %zu bindings, %zu ports", s->partition_path,
		      vhca_osm_table_bindings(s->table), vhca_osm_table_ports(s->table));
	return 1;
}

static void ask_for_sweep(const struct vhca_osm_service *s)
{
	struct vhca_osm_status status;

	s->subnet.ops->status(s->subnet.ctx, &status);
	/* A standby reads the file when it becomes master: that begins with a heavy sweep. */
	if (status.master)
		s->subnet.ops->sweep(s->subnet.ctx);
}

/*
 * A sweep asks every port of the subnet for all that there is to know: not for a key at one of
 * them, if that can be helped.
 */
static void bring_into_effect(struct vhca_osm_service *s, uint64_t now)
{
	int r = s->subnet.ops->apply(s->subnet.ctx);

	if (r == 0)
		vhca_osm_publisher_applied(&s->publisher, now);
	else if (r == -EBUSY)
		vhca_osm_publisher_postponed(&s->publisher);
	else
		ask_for_sweep(s);
}

static void publish_partitions(struct vhca_osm_service *s, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t needs = vhca_osm_table_needs_revision(s->table);
	int r = write_partitions(s, &err);
	bool apply;

	if (r < 0) {
		vhca_log_error("%s; tried again in %d ms", err.msg, VHCA_OSM_REWRITE_MS);
		(void)vhca_strcpy(s->write_problem, sizeof(s->write_problem), err.msg);
	} else {
		s->shown_needs = needs;
		s->write_problem[0] = '\0';
	}
	apply = vhca_osm_publisher_written(&s->publisher, r<0, r> 0, now);
	if (r >= 0)
		vhca_osm_changed_ports_written(vhca_osm_table_changed_ports(s->table),
					       vhca_osm_publisher_generation(&s->publisher));
	if (apply)
		bring_into_effect(s, now);
}

/* ---- inherited keys ---- */

static void start_inheritance(struct vhca_osm_service *s, uint64_t now)
{
	size_t n = vhca_osm_table_inherited(s->table);

	s->inherited_until = n ? now + (uint64_t)s->conf.inherit_s * 1000 : UINT64_MAX;
	if (n)
		vhca_log_notice("%zu keys of ports stay for %u s although no binding needs them", n,
				s->conf.inherit_s);
}

static void end_inheritance(struct vhca_osm_service *s)
{
	size_t n = vhca_osm_table_inherited(s->table);

	s->inherited_until = UINT64_MAX;
	vhca_osm_table_drop_inherited(s->table);
	vhca_log_notice("%zu inherited keys were not reported in %u s and go", n,
			s->conf.inherit_s);
	(void)vhca_osm_service_commit(s, NULL); /* tried again by publish() */
}

bool vhca_osm_service_is_new(const struct vhca_osm_service *s)
{
	return s->is_new && s->saved_revision == 0;
}

int vhca_osm_service_inherit(struct vhca_osm_service *s, uint64_t now)
{
	size_t failed =
		vhca_osm_found_keys_inherit(&s->subnet, &s->conf.policy, &s->base, s->table);

	s->is_new = false;
	s->keys_problem[0] = '\0';
	if (failed)
		(void)snprintf(s->keys_problem, sizeof(s->keys_problem),
			       "the keys of %zu ports could not be kept", failed);
	start_inheritance(s, now);
	publish_partitions(s, now); /* before it is saved: keeping is the safe side */
	/* Killed before the new one is there, this is to begin with what ports have, not with
	 * the state of an earlier time as master, which would take keys away. */
	(void)unlink(s->state_path);
	s->saved_revision = UINT64_MAX;
	return s->keys_problem[0] || s->write_problem[0] ? -EAGAIN : 0;
}

void vhca_osm_service_find_own_ports(struct vhca_osm_service *s)
{
	if (atomic_exchange(&s->ports_check, false))
		vhca_osm_own_ports_found(&s->subnet, s->table);
}

void vhca_osm_service_publish(struct vhca_osm_service *s, uint64_t now)
{
	const struct vhca_osm_subnet *subnet = &s->subnet;

	if (atomic_exchange(&s->base_check, false))
		recheck_base(s, now);
	if (now >= s->inherited_until)
		end_inheritance(s);
	if (!subnet->ops->is_busy(subnet->ctx))
		vhca_osm_service_find_own_ports(s);
	if (!is_saved(s) && now >= s->save_retry_at)
		(void)vhca_osm_service_commit(s, NULL); /* keeps its own record of a failure */
	/* What is not durable yet must not take effect. */
	if (is_saved(s) && vhca_osm_publisher_write_due(&s->publisher, now))
		publish_partitions(s, now);
	if (!subnet->ops->is_busy(subnet->ctx) && vhca_osm_publisher_apply_due(&s->publisher))
		bring_into_effect(s, now);
	if (vhca_osm_publisher_look_due(&s->publisher, now))
		vhca_osm_publisher_looked(&s->publisher,
					  !subnet->ops->is_busy(subnet->ctx) &&
						  subnet->ops->unanswered(subnet->ctx) == 0,
					  now);
	if (vhca_osm_publisher_resweep_due(&s->publisher, now))
		ask_for_sweep(s);
	vhca_osm_changed_ports_read(vhca_osm_table_changed_ports(s->table),
				    vhca_osm_publisher_read(&s->publisher));
}

uint64_t vhca_osm_service_deadline(const struct vhca_osm_service *s)
{
	uint64_t at = s->save_retry_at; /* before that nothing can be published */

	if (is_saved(s))
		at = vhca_osm_publisher_deadline(&s->publisher);
	return at < s->inherited_until ? at : s->inherited_until;
}

void vhca_osm_service_on_sweep_start(struct vhca_osm_service *s)
{
	atomic_store(&s->base_check, true);
	vhca_osm_publisher_on_sweep_start(&s->publisher);
}

void vhca_osm_service_on_discovered(struct vhca_osm_service *s)
{
	vhca_osm_publisher_on_discovered(&s->publisher);
}

void vhca_osm_service_on_subnet_up(struct vhca_osm_service *s)
{
	atomic_store(&s->ports_check, true);
	vhca_osm_publisher_on_subnet_up(&s->publisher);
}

void vhca_osm_service_on_sweep_over(struct vhca_osm_service *s)
{
	vhca_osm_publisher_on_sweep_over(&s->publisher);
}

/* ---- state ---- */

static int take_lock(struct vhca_osm_service *s, struct vhca_error *err)
{
	int r = vhca_mkdir_p(s->conf.state_dir, 0755);

	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_dir", -r, "%s",
				      s->conf.state_dir);
	s->lock_fd = open(s->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_dir", errno, "%s",
				      s->lock_path);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "state_in_use", errno,
				      "%s: in use by another OpenSM", s->conf.state_dir);
	return 0;
}

/* Remembers the failure for /readyz and for the next attempt. */
static int save_failed(struct vhca_osm_service *s, int errnum, struct vhca_error *err)
{
	struct vhca_error why = VHCA_ERROR_INIT;
	int r = vhca_error_set(&why, VHCA_ERR_UNAVAILABLE, "state_not_saved", errnum, "%s",
			       s->state_path);

	vhca_log_error("%s; tried again in %d ms", why.msg, VHCA_OSM_REWRITE_MS);
	(void)vhca_strcpy(s->save_problem, sizeof(s->save_problem), why.msg);
	s->save_retry_at = vhca_now_ms() + VHCA_OSM_REWRITE_MS;
	if (err)
		*err = why;
	return r;
}

int vhca_osm_service_commit(struct vhca_osm_service *s, struct vhca_error *err)
{
	uint64_t revision = vhca_osm_table_revision(s->table);
	int r;

	if (s->saved_revision == revision)
		return 0;
	r = vhca_osm_state_save(s->state_path, s->table);
	if (r < 0)
		return save_failed(s, -r, err);
	s->save_problem[0] = '\0';
	s->saved_revision = revision;
	if (s->shown_needs != vhca_osm_table_needs_revision(s->table))
		vhca_osm_publisher_changed(&s->publisher, vhca_now_ms());
	return 0;
}

/* ---- life ---- */

static int service_start(struct vhca_osm_service *s, struct vhca_error *err)
{
	int r = take_lock(s, err);

	if (r < 0)
		return r;
	(void)vhca_sweep_leftovers(s->state_path, 0);
	(void)vhca_sweep_leftovers(s->partition_path, 0);
	r = vhca_osm_state_load(s->state_path, s->table, err);
	if (r < 0)
		return r;
	s->is_new = r > 0;
	vhca_osm_report_drop_strangers(&s->reports);
	r = 0;
	if (s->conf.base_file[0])
		r = vhca_osm_base_load(s->conf.base_file, &s->base, &s->base_stat, err);
	if (r == 0)
		r = write_partitions(s, err);
	if (r < 0)
		return r;
	s->saved_revision = vhca_osm_table_revision(s->table);
	s->shown_needs = vhca_osm_table_needs_revision(s->table);
	vhca_osm_changed_ports_written(vhca_osm_table_changed_ports(s->table),
				       vhca_osm_publisher_generation(&s->publisher));
	start_inheritance(s, vhca_now_ms());
	return 0;
}

static void service_freep(struct vhca_osm_service **s)
{
	(void)vhca_osm_service_free(*s);
}

int vhca_osm_service_new(const struct vhca_osm_conf *conf, const struct vhca_osm_subnet_ops *ops,
			 void *ctx, struct vhca_osm_service **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(service_freep) struct vhca_osm_service *s = calloc(1, sizeof(*s));
	int r;

	if (s)
		s->lock_fd = -1;
	if (!s || vhca_osm_table_new(&limits, conf->policy.both_memberships, &s->table) < 0)
		return vhca_error_no_memory(err, "vhcasm");
	s->conf = *conf;
	s->subnet = (struct vhca_osm_subnet){.ops = ops, .ctx = ctx};
	s->reports = (struct vhca_osm_reports){.subnet = &s->subnet,
					       .table = s->table,
					       .conf = &s->conf,
					       .refusals = &s->refusals};
	(void)path_in(conf, "lock", s->lock_path);
	(void)path_in(conf, "bindings", s->state_path);
	(void)vhca_osm_partition_path(conf, s->partition_path);
	r = service_start(s, err);
	if (r == 0)
		*ret = vhca_steal_ptr(&s);
	return r;
}

struct vhca_osm_service *vhca_osm_service_free(struct vhca_osm_service *s)
{
	if (!s)
		return NULL;
	(void)vhca_osm_table_free(s->table);
	vhca_osm_base_done(&s->base);
	vhca_close_cleanup(&s->lock_fd);
	free(s->text);
	free(s);
	return NULL;
}

const char *vhca_osm_service_partition_file(const struct vhca_osm_service *s)
{
	return s->partition_path;
}

/* ---- reading ---- */

const struct vhca_osm_table *vhca_osm_service_table(const struct vhca_osm_service *s)
{
	return s->table;
}

struct vhca_osm_reports *vhca_osm_service_reports(struct vhca_osm_service *s)
{
	return &s->reports;
}

const struct vhca_osm_subnet *vhca_osm_service_subnet(const struct vhca_osm_service *s)
{
	return &s->subnet;
}

bool vhca_osm_service_is_busy(const struct vhca_osm_service *s)
{
	return s->subnet.ops->is_busy(s->subnet.ctx);
}

void vhca_osm_service_status(const struct vhca_osm_service *s, struct vhca_osm_status *ret)
{
	s->subnet.ops->status(s->subnet.ctx, ret);
}

void vhca_osm_service_smps(const struct vhca_osm_service *s, struct vhca_osm_smps *ret)
{
	s->subnet.ops->smps(s->subnet.ctx, ret);
}

bool vhca_osm_service_in_effect(const struct vhca_osm_service *s)
{
	return is_saved(s) && s->shown_needs == vhca_osm_table_needs_revision(s->table) &&
	       vhca_osm_publisher_settled(&s->publisher);
}

int vhca_osm_service_check_shown(const struct vhca_osm_service *s, uint64_t port_guid,
				 struct vhca_error *err)
{
	const char *problem = vhca_osm_service_problem(s);
	int r;

	if (!vhca_osm_changed_ports_has(vhca_osm_table_changed_ports(s->table), port_guid))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_KEYS_ON_THE_WAY, 0,
			   "OpenSM has not read the newest P_Keys of port %s yet",
			   VHCA_GUID_STR(port_guid));
	if (problem[0])
		vhca_error_hint(err, "%s", problem);
	return r;
}

static int key_left_out(uint64_t port_guid, uint16_t pkey, struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_KEYS_ON_THE_WAY, 0,
			       "port %s has not got P_Key %s", VHCA_GUID_STR(port_guid),
			       VHCA_PKEY_STR(pkey));

	vhca_error_hint(err, "OpenSM's log says why: partitions of base_file for all ports may "
			     "leave no room in its table");
	return r;
}

int vhca_osm_service_check_keys(const struct vhca_osm_service *s, uint64_t port_guid,
				struct vhca_error *err)
{
	const struct vhca_osm_port *port = vhca_osm_table_port(s->table, port_guid);

	for (size_t i = 0; port && i < port->n_needs; i++) {
		uint16_t pkey = port->needs[i].pkey;

		/* In which form it has the default one is the base file's business. */
		if (vhca_pkey_base(pkey) != VHCA_PKEY_DEFAULT &&
		    !s->subnet.ops->has_pkey(s->subnet.ctx, port_guid, pkey))
			return key_left_out(port_guid, pkey, err);
	}
	return 0;
}

bool vhca_osm_service_is_rebuilding(const struct vhca_osm_service *s)
{
	return s->inherited_until != UINT64_MAX && vhca_osm_table_inherited(s->table) > 0;
}

const char *vhca_osm_service_problem(const struct vhca_osm_service *s)
{
	if (s->keys_problem[0])
		return s->keys_problem;
	if (s->save_problem[0])
		return s->save_problem;
	if (s->write_problem[0])
		return s->write_problem;
	return s->base_problem[0] ? s->base_problem : s->conf_problem;
}

void vhca_osm_service_conf_problem(struct vhca_osm_service *s, const char *problem)
{
	(void)vhca_strcpy(s->conf_problem, sizeof(s->conf_problem), problem);
}
