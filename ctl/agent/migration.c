/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/agent/migration.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json_object_iterator.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

#define POLL_MS	   200
#define SILENCE_MS 60000 /* an agent that is restarted takes less */

struct follow {
	const struct vhca_ctl *ctl;
	char path[VHCA_CTL_PATH_MAX];
	struct json_object *printed; /* object: steps whose line is out */
	char waits_for[256];	     /* reason of the last line about a step that does not get on */
	uint64_t start;		     /* vhca_now_ms() */
	uint64_t silent_since;	     /* the same; 0 = the agent answers */
	bool told_expected;
	const char *until; /* a state before the end; NULL = the end */
};

const char *vhca_migration_reason(struct json_object *migration)
{
	const char *reason = vhca_view_text(migration, "reason");

	return *reason ? reason : "no reason given";
}

/* True for a migration that goes on no more. */
static bool is_over(struct json_object *migration)
{
	static const char *const words[] = {"done", "failed", "ended"};

	return vhca_word_find(words, VHCA_ARRAY_SIZE(words), vhca_view_text(migration, "state")) >=
	       0;
}

/* A step that is entered again after a retry is printed once, when it was left first. */
static void print_steps(struct follow *f, struct json_object *migration)
{
	struct json_object *steps = vhca_view_member(migration, "step_ms");
	const char *state = vhca_view_text(migration, "state");
	struct json_object_iterator it, end;

	if (!json_object_is_type(steps, json_type_object))
		return;
	it = json_object_iter_begin(steps);
	end = json_object_iter_end(steps);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *step = json_object_iter_peek_name(&it);
		uint64_t ms = vhca_view_u64(steps, step);

		if (strcmp(step, state) == 0 || vhca_view_member(f->printed, step) ||
		    !*vhca_view_text(steps, step))
			continue;
		(void)printf("%-14s %6" PRIu64 ".%03" PRIu64 " s\n", step, ms / 1000, ms % 1000);
		(void)json_object_object_add(f->printed, step, json_object_new_boolean(true));
	}
}

/* Once. */
static void print_expected(struct follow *f, struct json_object *migration)
{
	struct json_object *expected = vhca_view_member(migration, "expected");
	const char *reason = vhca_view_text(expected, "reason");

	if (!json_object_is_type(expected, json_type_object) || f->told_expected)
		return;
	f->told_expected = true;
	if (*vhca_view_text(expected, "seconds"))
		(void)printf("%-14s %6" PRIu64 "     s of copy%s%s\n", "expected",
			     vhca_view_u64(expected, "seconds"), *reason ? "; " : "", reason);
	else
		(void)printf("%-14s the copy would not end: the guest writes too fast\n",
			     "expected");
}

/* What is retried needs somebody: said once for each reason. */
static void print_trouble(struct follow *f, struct json_object *migration)
{
	const char *reason = vhca_view_text(migration, "reason"),
		   *state = vhca_view_text(migration, "state");
	/* Such a guest is asked in other ways. */
	bool is_unresponsive =
		strcmp(state, "detaching") == 0 && *reason && !*vhca_view_text(migration, "code");

	if ((!vhca_view_is_true(migration, "degraded") && !is_unresponsive) || is_over(migration) ||
	    strncmp(f->waits_for, reason, sizeof(f->waits_for) - 1) == 0)
		return;
	(void)snprintf(f->waits_for, sizeof(f->waits_for), "%s", reason);
	(void)printf("%-14s retried: %s\n", state, reason);
}

static int ask(struct follow *f, struct json_object **ret, struct vhca_error *err)
{
	int r = vhca_ctl_call(f->ctl, "GET", f->path, NULL, VHCA_CTL_READ_MS, ret, err);

	if (r < 0)
		return r;
	f->silent_since = 0;
	if (f->ctl->opts[VHCA_OPT_JSON])
		return 0;
	print_expected(f, *ret);
	print_steps(f, *ret);
	print_trouble(f, *ret);
	(void)fflush(stdout); /* for the pipe behind; main() reports a failure */
	return 0;
}

/* The agent is being restarted, perhaps: the migration goes on then. */
static int wait_for_agent(struct follow *f, int r, const struct vhca_error *err)
{
	uint64_t now = vhca_now_ms();

	if (err->kind != VHCA_ERR_UNAVAILABLE)
		return r;
	if (!f->silent_since) {
		f->silent_since = now;
		(void)fprintf(stderr, "vhcactl: %s; waiting\n", err->msg);
	}
	return now - f->silent_since < SILENCE_MS ? 0 : r;
}

static int check_time(const struct follow *f, struct json_object *migration, struct vhca_error *err)
{
	if (!f->ctl->timeout_ms || vhca_now_ms() - f->start < f->ctl->timeout_ms)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "timeout", 0,
			     "%s: not over after %" PRIu32 " s (%s), and goes on", f->ctl->args[0],
			     f->ctl->timeout_ms / 1000, vhca_view_text(migration, "state"));
	vhca_error_hint(err, "vhcactl migrations");
	return -1;
}

static int follow(struct follow *f, struct json_object *begun, struct json_object **ret,
		  struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *migration = json_object_get(begun);

	for (;;) {
		struct json_object *answer = NULL;
		int r = ask(f, &answer, err);

		if (r < 0) {
			r = wait_for_agent(f, r, err);
		} else {
			(void)json_object_put(migration);
			migration = answer;
		}
		if (r == 0 &&
		    (is_over(migration) ||
		     (f->until && strcmp(vhca_view_text(migration, "state"), f->until) == 0))) {
			*ret = vhca_steal_ptr(&migration);
			return 0;
		}
		if (r == 0)
			r = check_time(f, migration, err);
		if (r < 0)
			return r;
		(void)poll(NULL, 0, POLL_MS);
	}
}

int vhca_migration_follow(const struct vhca_ctl *ctl, struct json_object *migration,
			  const char *until, struct json_object **ret, struct vhca_error *err)
{
	struct follow f = {.ctl = ctl, .start = vhca_now_ms(), .until = until};
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, f.path, sizeof(f.path));
	vhca_strbuf_add(&sb, "/v1/migrations/");
	vhca_ctl_encode(&sb, vhca_view_text(migration, "id"));
	f.printed = json_object_new_object();
	r = follow(&f, migration, ret, err);
	(void)json_object_put(f.printed);
	return r;
}

/* ---- begin ---- */

static void add_string(struct json_object *obj, const char *key, const char *value)
{
	(void)json_object_object_add(obj, key, json_object_new_string(value));
}

/* An option that becomes a number of the body; its limits are the agent's matter. */
struct number {
	enum vhca_agent_opt opt;
	const char *name, *key, *unit;
};

static int add_number(const struct vhca_ctl *ctl, const struct number *number,
		      struct json_object *obj, struct vhca_error *err)
{
	const char *text = ctl->opts[number->opt];
	uint32_t n = 0;

	if (!text)
		return 0;
	if (vhca_parse_u32(text, 10, UINT32_MAX, &n) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				      "--%s: '%s' is no number of %s", number->name, text,
				      number->unit);
	(void)json_object_object_add(obj, number->key, json_object_new_int64(n));
	return 0;
}

/* What is not given is as the agent's configuration says. */
static int add_copy(const struct vhca_ctl *ctl, struct json_object *body, struct vhca_error *err)
{
	static const struct number numbers[] = {
		{VHCA_OPT_COPY_TIMEOUT, "copy-timeout", "timeout", "seconds"},
		{VHCA_OPT_EXPECTED_MAX, "expected-max", "expected_max", "seconds"},
		{VHCA_OPT_BANDWIDTH, "bandwidth", "bandwidth", "MiB/s"},
		{VHCA_OPT_CONNECTIONS, "connections", "connections", "connections"},
	};
	struct json_object *copy = json_object_new_object();
	int r = 0;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(numbers) && r == 0; i++)
		r = add_number(ctl, &numbers[i], copy, err);
	if (ctl->opts[VHCA_OPT_AUTO_CONVERGE])
		(void)json_object_object_add(copy, "auto_converge", json_object_new_boolean(true));
	if (ctl->opts[VHCA_OPT_TLS])
		(void)json_object_object_add(copy, "tls", json_object_new_boolean(true));
	if (r < 0 || json_object_object_length(copy) == 0)
		(void)json_object_put(copy);
	else
		(void)json_object_object_add(body, "copy", copy);
	return r;
}

int vhca_migration_begin(const struct vhca_ctl *ctl, const char *mode, const char *peer,
			 struct json_object **ret, struct vhca_error *err)
{
	static const struct number lease = {VHCA_OPT_LEASE, "lease", "lease", "seconds"};
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object();
	int r;

	add_string(body, "domain", ctl->args[0]);
	if (peer)
		add_string(body, "peer", peer);
	add_string(body, "mode", mode);
	r = add_number(ctl, &lease, body, err);
	if (r == 0)
		r = add_copy(ctl, body, err);
	if (r < 0)
		return r;
	r = vhca_ctl_call(ctl, "POST", "/v1/migrations", body, VHCA_CTL_READ_MS, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	return r;
}

const char *vhca_migration_word(char buf[static VHCA_UUID_STRLEN], struct json_object *migration,
				const char *domain)
{
	struct vhca_uuid uuid;

	if (vhca_uuid_parse(vhca_view_text(migration, "domain"), &uuid) < 0)
		return "DOMAIN";
	return vhca_domain_word(buf, domain, &uuid);
}

/* ---- cancel ---- */

/* The running migration of a domain, borrowed from the list of those. */
static int find_running(const char *domain, struct json_object *list, struct json_object **ret,
			struct vhca_error *err)
{
	struct json_object *migration =
		vhca_view_count(list) ? json_object_array_get_idx(list, 0) : NULL;
	const char *peer = vhca_view_text(migration, "peer");
	char uuid[VHCA_UUID_STRLEN];

	*ret = migration;
	if (!migration)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0,
				      "%s: is not being migrated", domain);
	if (strcmp(vhca_view_text(migration, "role"), "source") == 0)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "not_source", 0,
			     "%s: comes from %s, which alone can cancel it", domain, peer);
	vhca_error_hint(err, "vhcactl migrate --cancel %s on %s",
			vhca_migration_word(uuid, migration, domain), peer);
	return -EIO;
}

int vhca_migration_cancel(const struct vhca_ctl *ctl, struct json_object **ret,
			  struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL, *answer = NULL;
	struct json_object *running = NULL;
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/migrations?final=false&domain=");
	vhca_ctl_encode(&sb, ctl->args[0]);
	r = sb.truncated ? vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG, "domain")
			 : vhca_ctl_call(ctl, "GET", path, NULL, VHCA_CTL_READ_MS, &doc, err);
	if (r < 0)
		return r;
	r = find_running(ctl->args[0], vhca_view_array(doc, "migrations"), &running, err);
	if (r < 0)
		return r;
	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/migrations/");
	vhca_ctl_encode(&sb, vhca_view_text(running, "id"));
	vhca_strbuf_add(&sb, "/abort");
	r = vhca_ctl_call(ctl, "POST", path, NULL, VHCA_CTL_READ_MS, &answer, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	else
		*ret = json_object_get(running);
	return r;
}
