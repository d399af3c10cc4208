/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/truth.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#define DEFAULT_PARTITION 0xffff

/* ---- words ---- */

/* "0>5=8010": virtual index, physical, key there; QPs as "qp>5=8010" */
static size_t add(char *buf, size_t size, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static size_t add(char *buf, size_t size, size_t at, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf + at, size - at, fmt, ap);
	va_end(ap);
	return n < 0 || at + (size_t)n >= size ? size - 1 : at + (size_t)n;
}

static void describe(const struct truth *t, unsigned int v, char *buf, size_t size)
{
	const struct hw_vf *vf = &t->hw.vfs[v];
	size_t at = add(buf, size, 0, "user %d%s", t->vfs[v].user,
			t->vfs[v].foreign ? " (foreign)" : "");

	for (unsigned int p = 0; p < HW_PORTS; p++) {
		at = add(buf, size, at, "; port %u guid %llx", p + 1,
			 (unsigned long long)vf->admin[p]);
		for (unsigned int k = 0; k < HW_KEYS; k++)
			if (vf->map[p][k] != HW_NONE)
				at = add(buf, size, at, " %u>%d=%04x", k, vf->map[p][k],
					 t->hw.pkeys[p][vf->map[p][k]]);
		for (unsigned int q = 0; q < HW_QPS; q++)
			if (vf->qps[q].live && vf->qps[q].port == p && vf->qps[q].phys != HW_NONE)
				at = add(buf, size, at, " qp>%d=%04x", vf->qps[q].phys,
					 t->hw.pkeys[p][vf->qps[q].phys]);
	}
	if (t->rows[v].claimed)
		(void)add(buf, size, at, "; claimed for %llx", (unsigned long long)t->rows[v].guid);
}

static void violate(struct truth *t, unsigned int v, const char *what)
{
	char text[300];

	if (t->violation[0])
		return;
	describe(t, v, text, sizeof(text));
	(void)snprintf(t->violation, sizeof(t->violation), "VF %u (%s): %s [%s]", v,
		       t->rows[v].state, what, text);
}

static bool in_state(const struct truth *t, unsigned int v, const char *state)
{
	return !strcmp(t->rows[v].state, state);
}

/* ---- the database ---- */

void truth_open(struct truth *t, const char *database)
{
	assert(sqlite3_open_v2(database, &t->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
	truth_reload(t);
}

void truth_close(struct truth *t)
{
	(void)sqlite3_close(t->db);
	t->db = NULL;
}

static struct truth_row *row_of(struct truth *t, const unsigned char *bdf)
{
	for (unsigned int v = 0; v < HW_VFS; v++)
		if (!strcmp(t->hw.vfs[v].bdf, (const char *)bdf))
			return &t->rows[v];
	return NULL;
}

static void parse_keys(struct truth_row *row, const char *text)
{
	char *end;

	for (row->n_pkeys = 0; *text && row->n_pkeys < HW_KEYS; text = end) {
		row->pkeys[row->n_pkeys++] = (uint16_t)strtoul(text, &end, 16);
		assert(end != text);
		while (*end == ' ')
			end++;
	}
}

static void take_claim(struct truth *t, sqlite3_stmt *st)
{
	struct truth_row *row = row_of(t, sqlite3_column_text(st, 0));

	if (!row)
		return;
	row->claimed = true;
	if (!strcmp(row->state, "unmanaged")) /* of an earlier boot: claims are programmed again */
		(void)snprintf(row->state, sizeof(row->state), "claimed");
	(void)snprintf(row->domain, sizeof(row->domain), "%s",
		       (const char *)sqlite3_column_text(st, 1));
	row->guid = (uint64_t)sqlite3_column_int64(st, 2);
	parse_keys(row, (const char *)sqlite3_column_text(st, 3));
	row->ending = sqlite3_column_int(st, 4) != 0;
}

static void take_state(struct truth *t, sqlite3_stmt *st)
{
	struct truth_row *row = row_of(t, sqlite3_column_text(st, 0));

	if (row && !strcmp((const char *)sqlite3_column_text(st, 2), t->boot))
		(void)snprintf(row->state, sizeof(row->state), "%s",
			       (const char *)sqlite3_column_text(st, 1));
}

static void query(struct truth *t, const char *sql, void (*fn)(struct truth *t, sqlite3_stmt *st))
{
	sqlite3_stmt *st = NULL;

	assert(sqlite3_prepare_v2(t->db, sql, -1, &st, NULL) == SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW)
		fn(t, st);
	assert(sqlite3_finalize(st) == SQLITE_OK);
}

static bool is_meant(const struct truth *t, unsigned int v)
{
	return in_state(t, v, "claimed") || in_state(t, v, "programmed") ||
	       in_state(t, v, "attached");
}

static bool is_his(const struct truth *t, unsigned int v, int d)
{
	return t->rows[v].claimed && !strcmp(t->rows[v].domain, t->domains[d].uuid);
}

void truth_reload(struct truth *t)
{
	memset(t->rows, 0, sizeof(t->rows));
	for (unsigned int v = 0; v < HW_VFS;
	     v++) /* not in the database: the agent does not know it */
		(void)snprintf(t->rows[v].state, sizeof(t->rows[v].state), "unmanaged");
	query(t, "SELECT bdf, state, boot_id FROM vfs", take_state);
	query(t, "SELECT bdf, domain, guid, pkeys, ending FROM claims", take_claim);
	for (unsigned int v = 0; v < HW_VFS; v++) /* who plugged it in early gets it after all */
		if (t->vfs[v].foreign && is_his(t, v, t->vfs[v].user) && is_meant(t, v))
			t->vfs[v].foreign = false;
}

/* ---- one VF ---- */

static bool tenant_has(const struct truth *t, int d, uint16_t key)
{
	for (const uint16_t *k = t->domains[d].keys; *k; k++)
		if (*k == key)
			return true;
	return false;
}

/* May the user of VF v talk with this key? Who had a VF before the agent came keeps what the driver gave it. */
static bool may(const struct truth *t, unsigned int v, uint16_t key)
{
	if ((key & 0x7fff) == 0)
		return true;
	return tenant_has(t, t->vfs[v].user, key) ||
	       (key == DEFAULT_PARTITION && in_state(t, v, "unmanaged"));
}

bool truth_clean(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int p = 0; p < HW_PORTS; p++) {
		if (vf->admin[p] != HW_NO_GUID)
			return false;
		for (unsigned int k = 0; k < HW_KEYS; k++)
			if (vf->map[p][k] != HW_NONE)
				return false;
	}
	return true;
}

static const char *wrong_map(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int p = 0; p < HW_PORTS; p++)
		for (unsigned int k = 0; k < HW_KEYS; k++)
			if (vf->map[p][k] != HW_NONE && !may(t, v, t->hw.pkeys[p][vf->map[p][k]]))
				return "its map shows its guest a key of somebody else";
	return NULL;
}

/* What counts in the end: the key with which a QP sends and receives. */
static const char *wrong_qp(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int i = 0; i < HW_QPS; i++)
		if (vf->qps[i].live && vf->qps[i].phys != HW_NONE &&
		    !may(t, v, t->hw.pkeys[vf->qps[i].port][vf->qps[i].phys]))
			return "a QP of its guest talks with a key of somebody else";
	return NULL;
}

/* A QP whose index the map no longer has: dead, or the next one to talk with a foreign key. */
static bool has_stale_qp(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int i = 0; i < HW_QPS; i++) {
		const struct hw_qp *qp = &vf->qps[i];
		bool mapped = !qp->live || qp->phys == HW_NONE;

		for (unsigned int k = 0; k < HW_KEYS && !mapped; k++)
			mapped = vf->map[qp->port][k] == qp->phys;
		if (!mapped)
			return true;
	}
	return false;
}

/* The agent touches no VF that it did not give; it may have been changed by others before or since. */
static bool left_alone(const struct truth *t, unsigned int v)
{
	return in_state(t, v, "unmanaged") && t->vfs[v].drifted;
}

static const char *wrong(const struct truth *t, unsigned int v)
{
	const char *why = NULL;

	if (in_state(t, v, "free") && !truth_clean(t, v))
		return "free, but not scrubbed";
	if (!t->hw.vfs[v].open)
		return NULL;
	if (t->vfs[v].foreign)
		return left_alone(t, v) || truth_clean(t, v)
			       ? NULL
			       : "somebody else's guest has it with an identity";
	why = wrong_map(t, v);
	return why ? why : wrong_qp(t, v);
}

static bool matches_claim(const struct truth *t, unsigned int v)
{
	const struct truth_row *row = &t->rows[v];
	const struct hw_vf *vf = &t->hw.vfs[v];

	if (vf->admin[0] != row->guid || vf->admin[1] != HW_NO_GUID)
		return false;
	for (unsigned int k = 0; k < HW_KEYS; k++) {
		if (vf->map[1][k] != HW_NONE)
			return false;
		if (vf->map[0][k] != HW_NONE &&
		    (k >= row->n_pkeys || t->hw.pkeys[0][vf->map[0][k]] != row->pkeys[k]))
			return false;
	}
	return true;
}

/* Nothing of the taint is left. */
static bool in_order(const struct truth *t, unsigned int v)
{
	return !t->vfs[v].foreign && !has_stale_qp(t, v) && !wrong(t, v) &&
	       (truth_clean(t, v) || (t->rows[v].claimed && matches_claim(t, v)));
}

/* ---- at every moment ---- */

static void excuse(struct truth *t, unsigned int v)
{
	t->vfs[v].tainted = true;
	t->vfs[v].left_ms = t->hw.vfs[v].open ? TRUTH_GUEST_MS : TRUTH_GRACE_MS;
}

void truth_taint(struct truth *t, unsigned int v)
{
	excuse(t, v);
	t->vfs[v].drifted = true;
}

void truth_delay(struct truth *t)
{
	for (unsigned int v = 0; v < HW_VFS; v++)
		if (t->vfs[v].left_ms < TRUTH_DELAY_MS)
			t->vfs[v].left_ms = TRUTH_DELAY_MS;
}

void truth_pass(struct truth *t, uint64_t healthy_ms)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		int user = t->vfs[v].user;
		bool deaf = user != TRUTH_NOBODY && t->domains[user].deaf;

		if (!deaf && !left_alone(t, v))
			t->vfs[v].left_ms -=
				healthy_ms < t->vfs[v].left_ms ? healthy_ms : t->vfs[v].left_ms;
	}
}

static void check_vf(struct truth *t, unsigned int v)
{
	const char *why = wrong(t, v);

	if (t->vfs[v].tainted && in_order(t, v))
		t->vfs[v].tainted = t->vfs[v].drifted = false;
	if (t->vfs[v].tainted && t->vfs[v].left_ms)
		return;
	if (!why && t->vfs[v].tainted && !t->vfs[v].foreign && has_stale_qp(t, v))
		why = "a QP whose index changed its meaning was not forced off";
	if (why)
		violate(t, v, why);
	else
		t->vfs[v].tainted = false;
}

static void check_pair(struct truth *t, unsigned int a, unsigned int b)
{
	if (left_alone(t, a) || left_alone(t, b))
		return;
	for (unsigned int p = 0; p < HW_PORTS; p++)
		for (unsigned int q = 0; q < HW_PORTS; q++) {
			uint64_t guid = t->hw.vfs[a].admin[p];

			if (guid && guid != HW_NO_GUID && guid == t->hw.vfs[b].admin[q] &&
			    !(t->vfs[a].tainted && t->vfs[a].left_ms) &&
			    !(t->vfs[b].tainted && t->vfs[b].left_ms))
				violate(t, a, "has the vGUID of another VF");
		}
}

void truth_check(struct truth *t)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		for (unsigned int o = 0; o < v; o++)
			check_pair(t, v, o);
		check_vf(t, v);
	}
}

/* ---- what the agent does ---- */

/* Invariant 4. A guest that has what it was given keeps it: no GUID goes, no key that is right. */
void truth_before_write(struct truth *t, const struct hw_target *target, const char *text)
{
	const struct hw_vf *vf = &t->hw.vfs[target->vf];
	int16_t phys = vf->map[target->port][target->virt];

	if (!vf->open || t->vfs[target->vf].tainted || t->vfs[target->vf].foreign ||
	    t->vfs[target->vf].refused)
		return;
	if (!target->is_map && vf->admin[target->port] != HW_NO_GUID &&
	    strtoull(text, NULL, 16) != vf->admin[target->port])
		violate(t, target->vf, "its GUID is changed while a guest has it");
	if (target->is_map && phys != HW_NONE && t->hw.pkeys[target->port][phys] != 0)
		violate(t, target->vf, "a good key is taken away while a guest has it");
}

/* Invariant 5: these states stand for the effect. */
void truth_before_effect(struct truth *t, unsigned int v, const char *effect)
{
	static const struct {
		const char *effect, *states, *without;
	} table[] = {
		{"prepare", "preparing", "prepared without a durable intent"},
		{"program", "claimed programmed attached", "programmed without a durable intent"},
		{"scrub", "scrubbing", "scrubbed without a durable intent"},
		{"strip", "quarantined", "stripped without a durable intent"},
		{"attach", "programmed", "attached without a durable intent"},
		{"detach", "detaching", "detached without a durable intent"},
		{"kick", "attached", "asked for again without a durable intent"},
	};

	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(effect, table[i].effect) && !strstr(table[i].states, t->rows[v].state))
			violate(t, v, table[i].without);
}

void truth_opened(struct truth *t, unsigned int v, int d)
{
	bool refused = in_state(t, v, "quarantined") || in_state(t, v, "preparing");
	bool his = is_his(t, v, d) && !refused;
	bool given = his && (in_state(t, v, "programmed") || in_state(t, v, "attached"));

	t->hw.vfs[v].open = true;
	t->vfs[v].user = d;
	t->vfs[v].foreign = !his;
	t->vfs[v].refused = refused || in_state(t, v, "scrubbing");
	if (!given)
		excuse(t, v);
	if (!his)
		t->vfs[v].left_ms = TRUTH_FOREIGN_MS;
	if (given && !t->vfs[v].tainted && !matches_claim(t, v))
		violate(t, v, "reaches a guest unproven");
}

void truth_closed(struct truth *t, unsigned int v)
{
	hw_close(&t->hw, v);
	t->vfs[v].user = TRUTH_NOBODY;
	t->vfs[v].foreign = false;
}
