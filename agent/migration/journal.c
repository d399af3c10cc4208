/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of migrations: a row for each, with what people want to read of it afterwards. */
#include "agent/migration/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/migration/list.h"
#include "agent/migration/states.h"
#include "agent/state/journal.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "common/ticket/ticket.h"

#define STEPS_MAX 768

/* "claiming:12 detaching:3010 removed_to_migrate:6120": states in ms, the others in us. */
static const char *steps_of(const struct vhca_mig *m, char buf[static STEPS_MAX])
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, STEPS_MAX);
	vhca_strbuf_add(&sb, "%s", "");
	for (unsigned int i = 0; i < VHCA_MIG_STATE_COUNT; i++)
		if (m->step_ms[i])
			vhca_strbuf_add(&sb, "%s%s:%u", sb.len ? " " : "", mig_states[i].name,
					m->step_ms[i]);
	for (unsigned int i = 0; i < VHCA_MIG_TIME_COUNT; i++)
		if (m->time_us[i])
			vhca_strbuf_add(&sb, "%s%s:%" PRIu64, sb.len ? " " : "",
					vhca_mig_time_to_string((enum vhca_mig_time)i),
					m->time_us[i]);
	return buf;
}

void mig_journal_times(const struct vhca_mig *m)
{
	struct vhca_txn *txn = vhca_txn_new(m->owner->args.store);
	char steps[STEPS_MAX];

	vhca_txn_exec(txn, "UPDATE migrations SET steps = ?1 WHERE id = ?2", "ss",
		      steps_of(m, steps), VHCA_UUID_STR(&m->id));
	vhca_txn_commit(txn, NULL, NULL);
}

/* In `handed`, where a destination has no more than a promise; else that is 0 or 1. */
#define TAKEN 2

/* A managed copy waits for nobody, so what limits it at the source is the copy itself. */
static bool is_limited_by_copy(const struct vhca_mig *m)
{
	return m->source && m->mode == VHCA_MIG_MODE_MANAGED;
}

void mig_journal(struct vhca_txn *txn, const struct vhca_mig *m, enum vhca_mig_state state)
{
	struct json_object *vfs = json_object_new_array(), *copy = vhca_mig_copy_to_json(&m->copy);
	uint64_t until = is_limited_by_copy(m) ? m->copy_until : m->lease_until;
	int64_t handed = vhca_migration_promised(m);
	const char *tickets = ""; /* what has ended hands nothing over any more */
	char steps[STEPS_MAX];

	if (m->handover == VHCA_MIG_HANDOVER_TAKEN)
		handed = TAKEN;
	if (m->tickets && !vhca_mig_state_is_final(state))
		tickets = json_object_to_json_string_ext(m->tickets, JSON_C_TO_STRING_PLAIN);
	for (unsigned int i = 0; i < m->n_vfs; i++)
		json_object_array_add(vfs, vhca_mig_vf_to_json(&m->vfs[i]));

	vhca_txn_exec(txn,
		      "INSERT OR REPLACE INTO migrations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
		      "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
		      "ssssssiiuusssssuuss", VHCA_UUID_STR(&m->id),
		      m->source ? "source" : "destination", VHCA_UUID_STR(&m->domain),
		      m->domain_name, m->peer, vhca_mig_state_to_string(state), handed,
		      (int64_t)m->pinned, m->started_ms, vhca_wall_ms(),
		      m->failure.kind ? m->failure.code : "", m->reason, steps_of(m, steps),
		      json_object_to_json_string_ext(vfs, JSON_C_TO_STRING_PLAIN),
		      vhca_mig_mode_to_string(m->mode), m->lease_ms, until,
		      json_object_to_json_string_ext(copy, JSON_C_TO_STRING_PLAIN), tickets);
	json_object_put(copy);
	json_object_put(vfs);
}

/* Whose history one is in. */
enum {
	OWN,
	UNOFFERED, /* ended here before anybody had offered it, as any peer may say of any id */
	STRANGERS, /* without certificates a node has any name: those that are no peer's are one */
	FIRST_PEER,
	ORIGINS = FIRST_PEER + VHCA_CONF_PEERS_MAX,
};

static unsigned int find_origin(const struct vhca_mig *m)
{
	const struct vhca_conf *conf = m->owner->args.conf;

	if (m->source)
		return OWN;
	if (!m->peer[0])
		return UNOFFERED;
	for (unsigned int i = 0; i < conf->n_peers; i++)
		if (vhca_conf_peer_is(&conf->peers[i], m->peer))
			return FIRST_PEER + i;
	return STRANGERS;
}

void vhca_migrations_set_conf(struct vhca_migrations *ms)
{
	struct vhca_mig *m;

	TAILQ_FOREACH (m, &ms->list, link)
		m->origin = find_origin(m);
}

/* The most that each who offers may have kept, so that all have no more than is kept of them. */
static unsigned int find_share(const unsigned int kept[static ORIGINS])
{
	unsigned int share = VHCA_MIGRATION_HISTORY_MAX + 1, sum;

	do {
		share--;
		sum = 0;
		for (unsigned int i = STRANGERS; i < ORIGINS; i++)
			sum += kept[i] < share ? kept[i] : share;
	} while (sum > VHCA_MIGRATIONS_OFFERED_MAX);
	return share;
}

void mig_displace(struct vhca_mig *by)
{
	struct vhca_migrations *ms = by->owner;
	unsigned int kept[ORIGINS] = {0}, share;
	struct vhca_txn *txn = NULL;
	struct vhca_mig *old, *next;

	by->origin = find_origin(by);
	TAILQ_FOREACH (old, &ms->list, link)
		kept[old->origin] += old == by || vhca_mig_state_is_final(old->state);
	share = find_share(kept);
	for (old = TAILQ_FIRST(&ms->list); old; old = next) {
		next = TAILQ_NEXT(old, link);
		if (kept[old->origin] <=
		    (old->origin < STRANGERS ? VHCA_MIGRATION_HISTORY_MAX : share))
			continue;
		if (old == by || !vhca_mig_state_is_final(old->state) || mig_is_awaited(old))
			continue;
		txn = txn ? txn : vhca_txn_new(ms->args.store);
		vhca_txn_exec(txn, "DELETE FROM migrations WHERE id = ?1", "s",
			      VHCA_UUID_STR(&old->id));
		kept[old->origin]--;
		mig_drop(old);
	}
	if (txn)
		vhca_txn_commit(txn, NULL, NULL);
}

static void load_steps(struct vhca_mig *m, const char *text)
{
	char copy[STEPS_MAX], *save = NULL;

	if (vhca_strcpy(copy, sizeof(copy), text) < 0)
		return; /* timings are for people: not worth a refusal to start */
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *colon = strchr(w, ':');
		enum vhca_mig_state state;
		enum vhca_mig_time time;
		uint64_t n;

		if (!colon)
			continue;
		*colon = '\0';
		if (vhca_parse_u64(colon + 1, 10, UINT64_MAX, &n) < 0)
			continue;
		if (!vhca_mig_state_parse(w, &state))
			m->step_ms[state] = (uint32_t)n;
		else if (!mig_time_parse(w, &time))
			m->time_us[time] = n;
	}
}

static void load_vfs(struct vhca_mig *m, const char *text)
{
	struct json_object *list = NULL;

	if (vhca_json_parse(text, strlen(text), &list, NULL) < 0)
		return; /* for people, too */
	m->n_vfs = vhca_mig_vfs_parse(list, m->vfs);
	json_object_put(list);
}

static int load_copy(struct vhca_mig *m, const char *text)
{
	struct json_object *o = NULL;
	int r = vhca_json_parse(text, strlen(text), &o, NULL);

	if (!r)
		r = vhca_mig_copy_parse(o, &m->copy, NULL);
	json_object_put(o);
	return r;
}

static int load_tickets(struct vhca_mig *m, const char *text)
{
	struct vhca_ticket ticket;

	if (!text[0])
		return 0;
	if (vhca_json_parse(text, strlen(text), &m->tickets, NULL) < 0 ||
	    !json_object_is_type(m->tickets, json_type_array))
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(m->tickets); i++) {
		struct json_object *one = json_object_array_get_idx(m->tickets, i);

		if (!json_object_is_type(one, json_type_string) ||
		    vhca_ticket_parse(json_object_get_string(one), &ticket, NULL) < 0)
			return -EBADMSG;
	}
	return 0;
}

/*
 * CLOCK_BOOTTIME begins anew with the host, whose domains may have been started again since: a
 * limit lasts no longer than it is long.
 */
static uint64_t shorten(uint64_t until, uint64_t ms)
{
	uint64_t longest = vhca_now_ms() + ms;

	return ms && until > longest ? longest : until;
}

/* A state of the other side has no rules here: the migration would stand still for ever. */
static int parse_role(const char *role, struct vhca_mig *m)
{
	m->source = !strcmp(role, "source");
	if (!m->source && strcmp(role, "destination") != 0)
		return -EBADMSG;
	return (m->source ? mig_states[m->state].source : mig_states[m->state].destination)
		       ? 0
		       : -EBADMSG;
}

static int load_row(void *ctx, const struct vhca_row *row)
{
	struct vhca_migrations *ms = ctx;
	struct vhca_uuid id;
	struct vhca_mig *m;

	if (vhca_journal_uuid(row, 0, &id))
		return -EBADMSG;
	m = mig_add(ms, &id);
	if (!m)
		return -ENOMEM;
	if (vhca_journal_uuid(row, 2, &m->domain) ||
	    vhca_strcpy(m->domain_name, sizeof(m->domain_name), vhca_row_text(row, 3)) ||
	    vhca_strcpy(m->peer, sizeof(m->peer), vhca_row_text(row, 4)) ||
	    vhca_mig_state_parse(vhca_row_text(row, 5), &m->state) ||
	    parse_role(vhca_row_text(row, 1), m) ||
	    vhca_mig_mode_parse(vhca_row_text(row, 14), &m->mode) ||
	    load_copy(m, vhca_row_text(row, 17)) || load_tickets(m, vhca_row_text(row, 18)) < 0)
		return -EBADMSG;
	if (vhca_row_i64(row, 6))
		m->handover = m->source ? VHCA_MIG_HANDOVER_PROMISED : VHCA_MIG_HANDOVER_DELIVERED;
	if (vhca_row_i64(row, 6) == TAKEN)
		m->handover = VHCA_MIG_HANDOVER_TAKEN;
	m->pinned = vhca_row_i64(row, 7) != 0;
	m->started_ms = vhca_row_u64(row, 8);
	m->updated_ms = vhca_row_u64(row, 9);
	(void)snprintf(m->reason, sizeof(m->reason), "%s", vhca_row_text(row, 11));
	if (vhca_row_text(row, 10)[0])
		vhca_error_set(&m->failure, VHCA_ERR_CONFLICT, "migration_failed", 0, "%s",
			       m->reason);
	load_steps(m, vhca_row_text(row, 12));
	load_vfs(m, vhca_row_text(row, 13));
	m->record = VHCA_MIG_RECORD_LOADED;
	m->origin = find_origin(m);
	m->lease_ms = vhca_row_u64(row, 15);
	if (!m->source)
		m->lease_until = vhca_now_ms() + ms->args.conf->lease_ms;
	else if (is_limited_by_copy(m))
		m->copy_until = shorten(vhca_row_u64(row, 16), m->copy.timeout_ms);
	else
		m->lease_until = shorten(vhca_row_u64(row, 16), m->lease_ms);
	return 0;
}

int mig_load(struct vhca_migrations *ms, struct vhca_error *err)
{
	int r = vhca_store_query(ms->args.store, "SELECT * FROM migrations ORDER BY started",
				 load_row, ms, err, "");

	return r == -EBADMSG ? vhca_error_set(err, VHCA_ERR_INTERNAL, "store_corrupt", EBADMSG,
					      "state database: table migrations")
			     : r;
}
