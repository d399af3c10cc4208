/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of migrations: a row for each, with what people want to read of it afterwards. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/migration_int.h"
#include "common/base/file.h"
#include "common/http/json.h"

static struct json_object *vfs_doc(const struct vhca_mig *m)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 0; i < m->n_vfs; i++)
		json_object_array_add(list, vhca_mig_vf_to_json(&m->vfs[i]));
	return list;
}

void mig_journal(struct vhca_txn *txn, const struct vhca_mig *m, enum vhca_mig_state state)
{
	struct json_object *vfs = vfs_doc(m);
	char steps[512] = "";
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, steps, sizeof(steps));
	for (unsigned int i = 0; i < VHCA_MIG_STATE_COUNT; i++)
		if (m->step_ms[i])
			vhca_strbuf_add(&sb, "%s%u:%u", sb.len ? " " : "", i, m->step_ms[i]);
	vhca_txn_exec(txn,
		      "INSERT OR REPLACE INTO migrations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
		      "?9, ?10, ?11, ?12, ?13, ?14)",
		      "ssssssiiuussss", VHCA_UUID_STR(&m->id), m->source ? "source" : "destination",
		      VHCA_UUID_STR(&m->domain), m->domain_name, m->peer,
		      vhca_mig_state_to_string(state), (int64_t)m->handed, (int64_t)m->pinned,
		      m->started_ms, vhca_wall_ms(), m->failure.kind ? m->failure.code : "",
		      m->reason, steps,
		      json_object_to_json_string_ext(vfs, JSON_C_TO_STRING_PLAIN));
	json_object_put(vfs);
	vhca_txn_exec(
		txn,
		"DELETE FROM migrations WHERE state IN ('done', 'failed', 'ended') AND id NOT IN"
		" (SELECT id FROM migrations ORDER BY updated DESC LIMIT ?1)",
		"i", (int64_t)VHCA_MIGRATION_HISTORY_MAX);
}

static void load_steps(struct vhca_mig *m, const char *text)
{
	char copy[512], *save = NULL;

	if (vhca_strcpy(copy, sizeof(copy), text) < 0)
		return; /* timings are for people: not worth a refusal to start */
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *colon = strchr(w, ':');
		uint32_t i, ms;

		if (!colon)
			continue;
		*colon = '\0';
		if (!vhca_parse_u32(w, 10, VHCA_MIG_STATE_COUNT - 1, &i) &&
		    !vhca_parse_u32(colon + 1, 10, UINT32_MAX, &ms))
			m->step_ms[i] = ms;
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

static int load_row(void *ctx, const struct vhca_row *row)
{
	struct vhca_migrations *ms = ctx;
	struct vhca_uuid id;
	struct vhca_mig *m;

	if (vhca_uuid_parse(vhca_row_text(row, 0), &id))
		return -EBADMSG;
	m = mig_new(ms, &id);
	if (!m)
		return -ENOMEM;
	m->source = !strcmp(vhca_row_text(row, 1), "source");
	if (vhca_uuid_parse(vhca_row_text(row, 2), &m->domain) ||
	    vhca_strcpy(m->domain_name, sizeof(m->domain_name), vhca_row_text(row, 3)) ||
	    vhca_strcpy(m->peer, sizeof(m->peer), vhca_row_text(row, 4)) ||
	    vhca_mig_state_parse(vhca_row_text(row, 5), &m->state))
		return -EBADMSG;
	m->handed = vhca_row_i64(row, 6) != 0;
	m->pinned = vhca_row_i64(row, 7) != 0;
	m->started_ms = vhca_row_u64(row, 8);
	m->updated_ms = vhca_row_u64(row, 9);
	(void)snprintf(m->reason, sizeof(m->reason), "%s", vhca_row_text(row, 11));
	if (vhca_row_text(row, 10)[0])
		vhca_error_set(&m->failure, VHCA_ERR_CONFLICT, "migration_failed", 0, "%s",
			       m->reason);
	load_steps(m, vhca_row_text(row, 12));
	load_vfs(m, vhca_row_text(row, 13));
	m->loaded = true;
	m->lease_until = vhca_now_ms() + ms->args.conf->lease_ms;
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
