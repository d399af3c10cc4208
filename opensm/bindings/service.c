/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "opensm/bindings/own_ports.h"
#include "opensm/bindings/publisher.h"
#include "opensm/bindings/state_file.h"

struct vhca_osm_service {
	struct vhca_osm_conf conf;
	const struct vhca_osm_subnet_ops *ops;
	void *ctx;
	struct vhca_osm_table *table;
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
	char heirs_problem[64];
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

static int load_base(const struct vhca_osm_service *s, struct vhca_osm_base *ret,
		     struct stat *ret_stat, struct vhca_error *err)
{
	const char *path = s->conf.base_file;
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	int r;

	/* Read after stat: a change in between is seen as a change the next time. */
	if (stat(path, ret_stat) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_base_file", errno, "%s", path);
	r = vhca_read_file(path, VHCA_OSM_BASE_MAX, &text, &len);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_base_file", -r, "%s", path);
	if (strlen(text) != len)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_base_file", 0, "%s: NUL byte",
				      path);
	return vhca_osm_base_parse(path, text, ret, err);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

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
	if (stat(s->conf.base_file, &st) == 0 && same_file(&st, &s->base_stat)) {
		s->base_problem[0] = '\0';
		return;
	}
	if (load_base(s, &base, &st, &err) < 0) {
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
	r = vhca_write_file_atomic(s->partition_path, text, len, 0644);
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

	s->ops->status(s->ctx, &status);
	/* A standby reads the file when it becomes master: that begins with a heavy sweep. */
	if (status.master)
		s->ops->sweep(s->ctx);
}

/*
 * A sweep asks every port of the subnet for all that there is to know: not for a key at one of
 * them, if that can be helped.
 */
static void bring_into_effect(struct vhca_osm_service *s, uint64_t now)
{
	int r = s->ops->apply(s->ctx);

	if (r == 0)
		vhca_osm_publisher_applied(&s->publisher, now);
	else if (r == -EBUSY)
		vhca_osm_publisher_postponed(&s->publisher);
	else
		ask_for_sweep(s);
}

static void look_for_answers(struct vhca_osm_service *s, uint64_t now)
{
	bool all = !s->ops->is_busy(s->ctx) && s->ops->unanswered(s->ctx) == 0;

	vhca_osm_publisher_looked(&s->publisher, all, now);
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

/* A port and the keys that it keeps, which stand in heirs.pkeys from `first` on. */
struct heir {
	uint64_t guid;
	size_t first, n;
};

struct heirs {
	const struct vhca_osm_service *s;
	struct heir *v;
	size_t n, room;
	uint16_t *pkeys;
	size_t n_pkeys, pkeys_room;
	size_t failed; /* ports that are not among them, for want of memory */
};

static void heirs_done(struct heirs *h)
{
	free(h->v);
	free(h->pkeys);
}

static bool reserve_heir(struct heirs *h)
{
	size_t room = h->room * 2 + 1024, pkeys_room = h->pkeys_room * 2 + VHCA_OSM_TABLE_MAX;
	struct heir *v;
	uint16_t *pkeys;

	if (h->n == h->room) {
		v = reallocarray(h->v, room, sizeof(*v));
		if (!v)
			return false;
		h->v = v;
		h->room = room;
	}
	if (h->pkeys_room - h->n_pkeys < VHCA_OSM_TABLE_MAX) {
		pkeys = reallocarray(h->pkeys, pkeys_room, sizeof(*pkeys));
		if (!pkeys)
			return false;
		h->pkeys = pkeys;
		h->pkeys_room = pkeys_room;
	}
	return true;
}

static bool is_kept(const struct vhca_osm_service *s, uint16_t pkey)
{
	return vhca_pkey_base(pkey) != VHCA_PKEY_DEFAULT &&
	       vhca_osm_policy_allows(&s->conf.policy, pkey) &&
	       !vhca_osm_base_find(&s->base, vhca_pkey_base(pkey));
}

/* With OpenSM's lock held: memory only. */
static void add_heir(void *arg, uint64_t port_guid, const uint16_t *pkeys, size_t n)
{
	struct heirs *h = arg;
	struct heir heir = {.guid = port_guid, .first = h->n_pkeys};

	if (!reserve_heir(h)) {
		h->failed++;
		return;
	}
	for (size_t i = 0; i < n && i < VHCA_OSM_TABLE_MAX; i++)
		if (is_kept(h->s, pkeys[i]))
			h->pkeys[heir.first + heir.n++] = pkeys[i];
	if (!heir.n)
		return;
	h->n_pkeys += heir.n;
	h->v[h->n++] = heir;
}

static int by_guid(const void *a, const void *b)
{
	const struct heir *x = a, *y = b;

	return (x->guid > y->guid) - (x->guid < y->guid);
}

/* In the order of the table, which else moves half of its ports for each: seconds with 65536. */
static void inherit_all(struct vhca_osm_service *s, struct heirs *h)
{
	if (h->n)
		qsort(h->v, h->n, sizeof(*h->v), by_guid);
	for (size_t i = 0; i < h->n; i++) {
		const struct heir *heir = &h->v[i];

		h->failed += vhca_osm_table_inherit(s->table, heir->guid, h->pkeys + heir->first,
						    heir->n, NULL) < 0;
	}
}

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
	VHCA_CLEANUP(heirs_done) struct heirs heirs = {.s = s};

	s->is_new = false;
	s->ops->each_port(s->ctx, add_heir, &heirs);
	inherit_all(s, &heirs);
	s->heirs_problem[0] = '\0';
	if (heirs.failed)
		(void)snprintf(s->heirs_problem, sizeof(s->heirs_problem),
			       "the keys of %zu ports could not be kept", heirs.failed);
	start_inheritance(s, now);
	publish_partitions(s, now); /* before it is saved: keeping is the safe side */
	/* Killed before the new one is there, this is to begin with what ports have, not with
	 * the state of an earlier time as master, which would take keys away. */
	(void)unlink(s->state_path);
	s->saved_revision = UINT64_MAX;
	return s->heirs_problem[0] || s->write_problem[0] ? -EAGAIN : 0;
}

void vhca_osm_service_publish(struct vhca_osm_service *s, uint64_t now)
{
	if (atomic_exchange(&s->base_check, false))
		recheck_base(s, now);
	if (now >= s->inherited_until)
		end_inheritance(s);
	if (atomic_load(&s->ports_check) && !s->ops->is_busy(s->ctx)) {
		atomic_store(&s->ports_check, false);
		vhca_osm_own_ports_found(s->ops, s->ctx, s->table);
	}
	if (!is_saved(s) && now >= s->save_retry_at)
		(void)vhca_osm_service_commit(s, NULL); /* keeps its own record of a failure */
	/* What is not durable yet must not take effect. */
	if (is_saved(s) && vhca_osm_publisher_write_due(&s->publisher, now))
		publish_partitions(s, now);
	if (!s->ops->is_busy(s->ctx) && vhca_osm_publisher_apply_due(&s->publisher))
		bring_into_effect(s, now);
	if (vhca_osm_publisher_look_due(&s->publisher, now))
		look_for_answers(s, now);
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

static int load_state(struct vhca_osm_service *s, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	int r = vhca_read_file(s->state_path, VHCA_OSM_STATE_MAX, &text, &len);

	s->is_new = r == -ENOENT;
	if (s->is_new)
		return 0;
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_unreadable", -r, "%s",
				      s->state_path);
	if (strlen(text) != len)
		r = vhca_error_set(err, VHCA_ERR_INVALID, "state_damaged", 0, "NUL byte");
	else
		r = vhca_osm_state_parse(text, s->table, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", s->state_path);
	return r;
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
	VHCA_AUTO_FREE char *text = NULL;
	uint64_t revision = vhca_osm_table_revision(s->table);
	size_t len;
	int r;

	if (s->saved_revision == revision)
		return 0;
	r = vhca_osm_state_format(s->table, &text, &len);
	if (r == 0)
		r = vhca_write_file_atomic(s->state_path, text, len, 0644);
	if (r < 0)
		return save_failed(s, -r, err);
	s->save_problem[0] = '\0';
	s->saved_revision = revision;
	if (s->shown_needs != vhca_osm_table_needs_revision(s->table))
		vhca_osm_publisher_changed(&s->publisher, vhca_now_ms());
	return 0;
}

static void drop_pin(struct vhca_osm_service *s, uint64_t port_guid, const char *why)
{
	vhca_log_notice("port %s is not %s's any more: %s", VHCA_GUID_STR(port_guid),
			vhca_osm_table_pinned(s->table, port_guid), why);
	(void)vhca_osm_table_unpin(s->table, port_guid);
}

/* Of a node that has another name now, or is none any more: nobody else would be let in there. */
static void drop_strangers_pins(struct vhca_osm_service *s)
{
	const struct vhca_osm_agents *agents = &s->conf.agents;

	for (size_t i = vhca_osm_table_pins(s->table); agents->listed && i-- > 0;) {
		const struct vhca_osm_pin *pin = vhca_osm_table_pin_at(s->table, i);

		if (strncmp(pin->node, "token:", 6) == 0 || vhca_osm_agents_have(agents, pin->node))
			continue;
		drop_pin(s, pin->guid, "it does not stand in [agents]");
	}
}

/* ---- life ---- */

static int service_start(struct vhca_osm_service *s, struct vhca_error *err)
{
	int r = take_lock(s, err);

	if (r == 0)
		r = load_state(s, err);
	if (r == 0)
		drop_strangers_pins(s);
	if (r == 0 && s->conf.base_file[0])
		r = load_base(s, &s->base, &s->base_stat, err);
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

	if (!s || vhca_osm_table_new(&limits, conf->policy.both_memberships, &s->table) < 0)
		return vhca_error_no_memory(err, "vhcasm");
	s->conf = *conf;
	s->ops = ops;
	s->ctx = ctx;
	s->lock_fd = -1;
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

/* ---- reports ---- */

static int check_master(const struct vhca_osm_service *s, struct vhca_error *err)
{
	struct vhca_osm_status status;

	s->ops->status(s->ctx, &status);
	return vhca_osm_check_master(&status, err);
}

/* For keys beside the default partition's one or two. */
static size_t room_at(const struct vhca_osm_service *s, const struct vhca_osm_port_info *info)
{
	unsigned int reserved = s->conf.policy.both_memberships ? 2 : 1;

	if (!info->pkey_cap || info->pkey_cap >= VHCA_OSM_PORT_PKEYS_MAX + reserved)
		return VHCA_OSM_PORT_PKEYS_MAX;
	return info->pkey_cap > reserved ? info->pkey_cap - reserved : 0;
}

static int check_port(const struct vhca_osm_service *s, uint64_t guid, size_t *ret_pkeys_max,
		      struct vhca_error *err)
{
	struct vhca_osm_port_info info;
	int r;

	if (!s->ops->find_port(s->ctx, guid, &info)) {
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				   "port %s is not in the subnet now", VHCA_GUID_STR(guid));
		vhca_error_hint(err, "the port must be up and discovered by the subnet manager");
		return r;
	}
	*ret_pkeys_max = room_at(s, &info);
	return 0;
}

static int check_pkeys(const struct vhca_osm_service *s, const uint16_t *pkeys, size_t n,
		       struct vhca_error *err)
{
	int r;

	for (size_t i = 0; i < n; i++) {
		/*
		 * The default partition is the base file's business, see partitions.h; naming it
		 * changes nothing.
		 */
		if (vhca_pkey_base(pkeys[i]) == VHCA_PKEY_DEFAULT ||
		    vhca_osm_policy_allows(&s->conf.policy, pkeys[i]))
			continue;
		r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_UNKNOWN_PARTITION, 0,
				   "partition %s may not be asked for", VHCA_PKEY_STR(pkeys[i]));
		vhca_error_hint(err, "see `allowed` in vhcasm.conf on the subnet manager's host");
		return r;
	}
	return 0;
}

/* Its keys would be those of whoever has that port, and go with the binding. */
static int check_vguid(const struct vhca_osm_service *s, const struct vhca_osm_binding *want,
		       struct vhca_error *err)
{
	int r;

	if (want->vguid != want->port_guid && !vhca_osm_table_is_port(s->table, want->vguid) &&
	    !vhca_osm_node_of(&s->conf.agents, s->table, want->vguid) &&
	    !s->ops->is_physical(s->ctx, want->vguid))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_GUID_IS_A_PORT, 0,
			   "%s is a port of the subnet, and no virtual one",
			   VHCA_GUID_STR(want->vguid));
	vhca_error_hint(err, "give the VF another GUID; guid=\"auto\" is nobody else's");
	return r;
}

/* The last epoch there is would be nobody's to raise. */
static int check_jump(const struct vhca_osm_service *s, uint64_t vguid, uint64_t epoch,
		      struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(s->table, vguid);
	uint64_t max = known ? known->epoch + VHCA_OSM_EPOCH_JUMP : 0;
	int r;

	if (max < VHCA_OSM_EPOCH_FREE)
		max = VHCA_OSM_EPOCH_FREE;
	if (epoch <= max)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "epoch_too_high", 0,
			   "%s: epoch %" PRIu64 " is above %" PRIu64
			   ", the highest that may be next",
			   VHCA_GUID_STR(vguid), epoch, max);
	vhca_error_hint(err,
			"whoever has the role admin may have it forgotten: DELETE "
			"/v1/epochs/%s",
			VHCA_GUID_STR(vguid));
	return r;
}

/* ---- whose word ---- */

/* A port of the node's that the subnet has not got, 0 = none: its place is free. */
static uint64_t gone_pin(const struct vhca_osm_service *s, const char *node)
{
	for (size_t i = 0; i < vhca_osm_table_pins(s->table); i++) {
		const struct vhca_osm_pin *pin = vhca_osm_table_pin_at(s->table, i);
		struct vhca_osm_port_info info;

		if (strcmp(pin->node, node) == 0 && !s->ops->find_port(s->ctx, pin->guid, &info))
			return pin->guid;
	}
	return 0;
}

static bool has_all_pins(const struct vhca_osm_service *s, const struct vhca_osm_node *by)
{
	return vhca_osm_table_pins_of(s->table, by->name) >= VHCA_OSM_NODE_PORTS_MAX;
}

static int check_pins(const struct vhca_osm_service *s, const struct vhca_osm_node *by,
		      uint64_t port_guid, struct vhca_error *err)
{
	if (vhca_osm_node_of(&s->conf.agents, s->table, port_guid) || !has_all_pins(s, by) ||
	    gone_pin(s, by->name))
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "port %s: %s has %d ports", VHCA_GUID_STR(port_guid), by->name,
			      VHCA_OSM_NODE_PORTS_MAX);
}

int vhca_osm_service_check_speaker(const struct vhca_osm_service *s, const struct vhca_osm_node *by,
				   uint64_t port_guid, struct vhca_error *err)
{
	int r = by ? check_master(s, err) : 0;
	bool physical;

	if (!by || r < 0)
		return r;
	physical = s->ops->is_physical(s->ctx, port_guid);
	r = vhca_osm_node_check(&s->conf.agents, s->table, by, port_guid, physical, err);
	return r < 0 ? r : check_pins(s, by, port_guid, err);
}

int vhca_osm_service_pin(struct vhca_osm_service *s, const struct vhca_osm_node *by,
			 uint64_t port_guid, struct vhca_error *err)
{
	struct vhca_osm_port_info info;
	uint64_t gone;
	int r;

	if (!by || vhca_osm_node_of(&s->conf.agents, s->table, port_guid) ||
	    !s->ops->find_port(s->ctx, port_guid, &info))
		return 0;
	gone = has_all_pins(s, by) ? gone_pin(s, by->name) : 0;
	if (gone)
		drop_pin(s, gone, "it has gone, and the node has a new one");
	r = vhca_osm_table_pin(s->table, port_guid, by->name, err);
	if (r == 0)
		vhca_log_notice("port %s is %s's from now on", VHCA_GUID_STR(port_guid), by->name);
	return r;
}

int vhca_osm_service_check_withdrawer(const struct vhca_osm_service *s,
				      const struct vhca_osm_node *by, uint64_t vguid,
				      uint64_t epoch, uint64_t port_guid, struct vhca_error *err)
{
	int r = by ? check_master(s, err) : 0;

	if (r == 0 && port_guid)
		r = vhca_osm_service_check_speaker(s, by, port_guid, err);
	return r < 0 ? r
		     : vhca_osm_node_check_withdrawal(&s->conf.agents, s->table, by, vguid, epoch,
						      port_guid, err);
}

int vhca_osm_service_unpin(struct vhca_osm_service *s, uint64_t port_guid, struct vhca_error *err)
{
	int r;

	if (vhca_osm_table_unpin(s->table, port_guid))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_NOT_FOUND, "unknown_pin", 0, "port %s is pinned to nobody",
			   VHCA_GUID_STR(port_guid));
	vhca_error_hint(err, "a port in a line of [agents] in vhcasm.conf is released there");
	return r;
}

/* ---- checks ---- */

/*
 * Above half of the table nobody binds all that is left; what is there stays. Of an epoch that is
 * over, the table says so.
 */
static int check_share(const struct vhca_osm_service *s, const struct vhca_osm_binding *want,
		       struct vhca_error *err)
{
	const struct vhca_osm_binding *old = vhca_osm_table_find(s->table, want->vguid);
	size_t here = vhca_osm_table_bindings_at(s->table, want->port_guid);

	if ((old && want->epoch <= old->epoch) ||
	    (old && !old->withdrawn && old->port_guid == want->port_guid) ||
	    here < VHCA_OSM_BINDINGS_AT_MAX ||
	    vhca_osm_table_bindings(s->table) <= VHCA_OSM_BINDINGS_MAX / 2)
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "%s: port %s has %zu bindings, and more than half of %d are in use",
			      VHCA_GUID_STR(want->vguid), VHCA_GUID_STR(want->port_guid), here,
			      VHCA_OSM_BINDINGS_MAX);
}

static int check_report(const struct vhca_osm_service *s, const struct vhca_osm_binding *want,
			size_t *ret_pkeys_max, struct vhca_error *err)
{
	int r = check_master(s, err);

	if (r == 0)
		r = check_pkeys(s, want->pkeys, want->n_pkeys, err);
	if (r == 0)
		r = check_port(s, want->port_guid, ret_pkeys_max, err);
	if (r == 0)
		r = check_vguid(s, want, err);
	if (r == 0)
		r = check_jump(s, want->vguid, want->epoch, err);
	if (r == 0)
		r = check_share(s, want, err);
	if (r == 0 && want->own_port) /* one that has gone for a while is as large as the other */
		(void)check_port(s, want->vguid, ret_pkeys_max, NULL);
	return r;
}

int vhca_osm_service_prepare(const struct vhca_osm_service *s, const struct vhca_osm_binding *want,
			     uint64_t from_port, struct vhca_osm_eviction *ret,
			     struct vhca_error *err)
{
	struct vhca_osm_binding b = vhca_osm_own_port_of(s->ops, s->ctx, s->table, want);
	size_t pkeys_max = 0;
	int r = check_report(s, &b, &pkeys_max, err);

	if (r == 0)
		r = vhca_osm_table_check(s->table, &b, pkeys_max, err);
	if (r == 0)
		vhca_osm_eviction_plan(s->ops, s->ctx, s->table, want, from_port, ret);
	return r;
}

int vhca_osm_service_put(struct vhca_osm_service *s, const struct vhca_osm_binding *want,
			 uint64_t from_port, struct vhca_osm_eviction *ret, struct vhca_error *err)
{
	struct vhca_osm_binding b = vhca_osm_own_port_of(s->ops, s->ctx, s->table, want);
	size_t pkeys_max = 0;
	uint64_t revision;
	int r = check_report(s, &b, &pkeys_max, err);

	if (r < 0)
		return r;
	revision = vhca_osm_table_revision(s->table);
	vhca_osm_eviction_plan(s->ops, s->ctx, s->table, want, from_port, ret);
	r = vhca_osm_table_put(s->table, &b, pkeys_max, err);
	if (r == 0)
		vhca_osm_eviction_run(s->ops, s->ctx, want->vguid, ret);
	if (r == 0 && revision != vhca_osm_table_revision(s->table))
		vhca_log_info("%s: bound to port %s index %u at epoch %" PRIu64 ", %u keys",
			      VHCA_GUID_STR(want->vguid), VHCA_GUID_STR(want->port_guid),
			      want->gid_index, want->epoch, want->n_pkeys);
	return r;
}

int vhca_osm_service_check_place(const struct vhca_osm_service *s,
				 const struct vhca_osm_binding *want, uint16_t vport,
				 struct vhca_error *err)
{
	struct vhca_osm_binding b = vhca_osm_own_port_of(s->ops, s->ctx, s->table, want);
	struct vhca_osm_port_info info;
	int r;

	if (!s->ops->find_vport(s->ctx, want->port_guid, vport, &info))
		return 0;
	r = vhca_osm_table_check_place(s->table, &b, room_at(s, &info), err);
	if (r < 0)
		vhca_error_prefix(err, "vport %u of the HCA with port %s", vport,
				  VHCA_GUID_STR(want->port_guid));
	return r;
}

int vhca_osm_service_withdraw(struct vhca_osm_service *s, uint64_t vguid, uint64_t epoch,
			      uint64_t port_guid, struct vhca_error *err)
{
	uint64_t revision = vhca_osm_table_revision(s->table);
	int r = check_master(s, err);

	if (r == 0)
		r = check_jump(s, vguid, epoch, err);
	if (r < 0)
		return r;
	r = vhca_osm_table_withdraw(s->table, vguid, epoch, port_guid, err);
	if (r == 0 && revision != vhca_osm_table_revision(s->table))
		vhca_log_info("%s: withdrawn at epoch %" PRIu64, VHCA_GUID_STR(vguid), epoch);
	return r;
}

int vhca_osm_service_forget(struct vhca_osm_service *s, uint64_t vguid, struct vhca_error *err)
{
	int r = check_master(s, err);

	return r < 0 ? r : vhca_osm_table_forget(s->table, vguid, err);
}

int vhca_osm_service_declare(struct vhca_osm_service *s, uint64_t port_guid, const uint16_t *pkeys,
			     size_t n, struct vhca_error *err)
{
	size_t pkeys_max = 0;
	int r = check_master(s, err);

	if (r == 0)
		r = check_pkeys(s, pkeys, n, err);
	if (r == 0 && n > 0) /* a port that has gone may still give back its keys */
		r = check_port(s, port_guid, &pkeys_max, err);
	if (r == 0)
		r = vhca_osm_table_declare(s->table, port_guid, pkeys, n, pkeys_max, err);
	return r;
}

/* ---- reading ---- */

const struct vhca_osm_table *vhca_osm_service_table(const struct vhca_osm_service *s)
{
	return s->table;
}

void vhca_osm_service_view(const struct vhca_osm_service *s, const struct vhca_osm_binding *b,
			   struct vhca_osm_view *ret)
{
	vhca_osm_view_get(s->ops, s->ctx, b, ret);
}

bool vhca_osm_service_is_busy(const struct vhca_osm_service *s)
{
	return s->ops->is_busy(s->ctx);
}

void vhca_osm_service_status(const struct vhca_osm_service *s, struct vhca_osm_status *ret)
{
	s->ops->status(s->ctx, ret);
}

void vhca_osm_service_smps(const struct vhca_osm_service *s, struct vhca_osm_smps *ret)
{
	s->ops->smps(s->ctx, ret);
}

bool vhca_osm_service_in_effect(const struct vhca_osm_service *s)
{
	return is_saved(s) && s->shown_needs == vhca_osm_table_needs_revision(s->table) &&
	       vhca_osm_publisher_settled(&s->publisher);
}

bool vhca_osm_service_has_shown(const struct vhca_osm_service *s, uint64_t port_guid)
{
	return !vhca_osm_changed_ports_has(vhca_osm_table_changed_ports(s->table), port_guid);
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
		    !s->ops->has_pkey(s->ctx, port_guid, pkey))
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
	if (s->heirs_problem[0])
		return s->heirs_problem;
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
