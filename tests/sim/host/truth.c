/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "tests/sim/host/truth_int.h"

#define DEFAULT_PARTITION 0xffff

static const struct truth_card *card_of(const struct truth *t)
{
	return t->hw.card == HW_MLX4 ? &truth_mlx4 : &truth_mlx5;
}

/* ---- words ---- */

size_t truth_add(char *buf, size_t size, size_t at, const char *fmt, ...)
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
	size_t at = truth_add(buf, size, 0, "user %d%s", t->vfs[v].user,
			      t->vfs[v].foreign ? " (foreign)" : "");

	at = card_of(t)->describe(t, v, buf, size, at);
	if (t->rows[v].claimed)
		(void)truth_add(buf, size, at, "; claimed for %llx",
				(unsigned long long)t->rows[v].guid);
}

void truth_violate(struct truth *t, unsigned int v, const char *what)
{
	char text[300];

	if (t->violation[0])
		return;
	describe(t, v, text, sizeof(text));
	(void)snprintf(t->violation, sizeof(t->violation), "VF %u (%s): %s [%s]", v,
		       t->rows[v].state, what, text);
}

bool truth_in_state(const struct truth *t, unsigned int v, const char *state)
{
	return !strcmp(t->rows[v].state, state);
}

/* ---- the database ---- */

static struct sqlite3_stmt *prepare(struct truth *t, const char *sql)
{
	sqlite3_stmt *st = NULL;

	assert(sqlite3_prepare_v2(t->db, sql, -1, &st, NULL) == SQLITE_OK);
	return st;
}

void truth_open(struct truth *t, const char *database)
{
	assert(sqlite3_open_v2(database, &t->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
	t->states = prepare(t, "SELECT bdf, state, boot_id FROM vfs");
	t->claims = prepare(t, "SELECT bdf, domain, guid, pkeys, ending FROM claims");
	truth_reload(t);
}

void truth_close(struct truth *t)
{
	(void)sqlite3_finalize(t->states);
	(void)sqlite3_finalize(t->claims);
	(void)sqlite3_close(t->db);
	t->states = t->claims = NULL;
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

	for (row->n_pkeys = 0; *text && row->n_pkeys < TRUTH_KEYS; text = end) {
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

static void query(struct truth *t, sqlite3_stmt *st, void (*fn)(struct truth *t, sqlite3_stmt *st))
{
	while (sqlite3_step(st) == SQLITE_ROW)
		fn(t, st);
	assert(sqlite3_reset(st) == SQLITE_OK);
}

/* In detaching, too: what its own guest took out of quarantine is asked for, not stripped. */
static bool is_meant(const struct truth *t, unsigned int v)
{
	return truth_in_state(t, v, "claimed") || truth_in_state(t, v, "programmed") ||
	       truth_in_state(t, v, "attached") || truth_in_state(t, v, "detaching");
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
	query(t, t->states, take_state);
	query(t, t->claims, take_claim);
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

bool truth_may(const struct truth *t, unsigned int v, uint16_t key)
{
	if ((key & 0x7fff) == 0)
		return true;
	return tenant_has(t, t->vfs[v].user, key) ||
	       (key == DEFAULT_PARTITION && truth_in_state(t, v, "unmanaged"));
}

bool truth_clean(const struct truth *t, unsigned int v)
{
	return card_of(t)->clean(t, v);
}

/*
 * The agent touches no VF that it did not give; it may have been changed by others before or since.
 */
static bool left_alone(const struct truth *t, unsigned int v)
{
	return truth_in_state(t, v, "unmanaged") && t->vfs[v].drifted;
}

static const char *wrong(const struct truth *t, unsigned int v)
{
	if (truth_in_state(t, v, "free") && !truth_clean(t, v) && !t->vfs[v].asking)
		return "free, but not scrubbed";
	if (!t->hw.vfs[v].open)
		return NULL;
	if (t->vfs[v].foreign)
		return left_alone(t, v) || truth_clean(t, v)
			       ? NULL
			       : "somebody else's guest has it with an identity";
	return card_of(t)->wrong(t, v);
}

bool truth_is_deaf(const struct truth *t, unsigned int v)
{
	int user = t->vfs[v].user;

	return t->vfs[v].calling || (user != TRUTH_NOBODY && t->domains[user].unresponsive);
}

/* Proven to show what its claim says, and to nobody else. */
static bool is_given(const struct truth *t, unsigned int v)
{
	return t->rows[v].claimed &&
	       (truth_in_state(t, v, "programmed") || truth_in_state(t, v, "attached"));
}

/* Nothing of the taint is left. */
static bool in_order(const struct truth *t, unsigned int v)
{
	return !t->vfs[v].late && !t->vfs[v].foreign && !card_of(t)->is_loose(t, v) &&
	       !wrong(t, v) &&
	       (is_given(t, v) ? card_of(t)->matches_claim(t, v)
			       : truth_clean(t, v) ||
					 (t->rows[v].claimed && card_of(t)->matches_claim(t, v)));
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

void truth_moved(struct truth *t, unsigned int v, unsigned int late)
{
	excuse(t, v);
	t->vfs[v].drifted |= truth_in_state(t, v, "unmanaged");
	t->vfs[v].late = late;
}

void truth_written(struct truth *t, unsigned int v)
{
	t->vfs[v].late -= t->vfs[v].late > 0;
}

void truth_call_hangs(struct truth *t, unsigned int v, bool hangs)
{
	t->vfs[v].calling = hangs;
	if (!hangs && t->vfs[v].left_ms < TRUTH_GUEST_MS)
		t->vfs[v].left_ms = TRUTH_GUEST_MS;
}

void truth_delay(struct truth *t)
{
	for (unsigned int v = 0; v < HW_VFS; v++)
		if (t->vfs[v].left_ms < TRUTH_DELAY_MS)
			t->vfs[v].left_ms = TRUTH_DELAY_MS;
	for (unsigned int i = 0; i < TRUTH_MEMBERS; i++)
		t->members[i].left_ms = TRUTH_DELAY_MS;
}

void truth_pass(struct truth *t, uint64_t healthy_ms)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		if (!left_alone(t, v))
			t->vfs[v].left_ms -=
				healthy_ms < t->vfs[v].left_ms ? healthy_ms : t->vfs[v].left_ms;
	}
}

static bool has_owner(const struct truth *t, uint64_t guid)
{
	for (unsigned int v = 0; v < HW_VFS; v++)
		if (t->rows[v].claimed && t->rows[v].guid == guid)
			return true;
	return false;
}

void truth_sm_pass(struct truth *t, uint64_t healthy_ms)
{
	for (unsigned int i = 0; i < TRUTH_MEMBERS && t->members[i].guid; i++) {
		struct truth_member *m = &t->members[i];

		if (!m->bound || has_owner(t, m->guid))
			m->left_ms = TRUTH_DELAY_MS;
		else
			m->left_ms -= healthy_ms < m->left_ms ? healthy_ms : m->left_ms;
	}
}

void truth_member(struct truth *t, uint64_t guid, bool bound)
{
	unsigned int i = 0;

	while (i < TRUTH_MEMBERS && t->members[i].guid && t->members[i].guid != guid)
		i++;
	assert(i < TRUTH_MEMBERS);
	t->members[i] = (struct truth_member){guid, bound, TRUTH_DELAY_MS};
}

static void check_vf(struct truth *t, unsigned int v)
{
	const char *why = wrong(t, v);

	if (t->vfs[v].tainted && in_order(t, v))
		t->vfs[v].tainted = t->vfs[v].drifted = false;
	if (t->vfs[v].tainted && t->vfs[v].left_ms)
		return;
	if (!why && truth_is_deaf(t, v))
		return; /* its QPs stay with it, and are nobody's fault, until it hears */
	if (!why && t->vfs[v].tainted && !t->vfs[v].foreign && card_of(t)->is_loose(t, v))
		why = "a QP whose index changed its meaning was not forced off";
	if (why)
		truth_violate(t, v, why);
	else
		t->vfs[v].tainted = false;
}

static void check_pair(struct truth *t, unsigned int a, unsigned int b)
{
	uint64_t of_a[HW_PORTS], of_b[HW_PORTS];
	unsigned int n_a, n_b;

	if (left_alone(t, a) || left_alone(t, b) || (t->vfs[a].tainted && t->vfs[a].left_ms) ||
	    (t->vfs[b].tainted && t->vfs[b].left_ms))
		return;
	n_a = card_of(t)->addresses(t, a, of_a);
	n_b = card_of(t)->addresses(t, b, of_b);
	for (unsigned int i = 0; i < n_a; i++)
		for (unsigned int k = 0; k < n_b; k++)
			if (of_a[i] == of_b[k])
				truth_violate(t, a, "has the vGUID of another VF");
}

/* An address that nobody has any more, and everybody could take. */
static void check_member(struct truth *t, const struct truth_member *m)
{
	if (m->bound && !m->left_ms && !t->violation[0])
		(void)snprintf(t->violation, sizeof(t->violation),
			       "%llx is nobody's, and the SM still has it in its partitions",
			       (unsigned long long)m->guid);
}

void truth_check(struct truth *t)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		for (unsigned int o = 0; o < v; o++)
			check_pair(t, v, o);
		check_vf(t, v);
	}
	for (unsigned int i = 0; i < TRUTH_MEMBERS && t->members[i].guid; i++)
		check_member(t, &t->members[i]);
}

/* ---- what the agent does ---- */

/*
 * Has a guest what it was given? While its claim waits for the SM (somebody plugged the VF in by
 * hand), nothing was.
 */
bool truth_is_settled(const struct truth *t, unsigned int v)
{
	return t->hw.vfs[v].open && !truth_in_state(t, v, "claimed") && !t->vfs[v].tainted &&
	       !t->vfs[v].foreign && !t->vfs[v].refused;
}

/* Invariant 5: these states stand for the effect. */
void truth_before_effect(struct truth *t, unsigned int v, const char *effect)
{
	static const struct {
		const char *effect, *states, *without;
	} table[] = {
		{"prepare", "preparing", "prepared without a durable intent"},
		{"program", "claimed programmed attached detaching",
		 "programmed without a durable intent"},
		{"unmap", "programmed attached detaching", "unmapped without a durable intent"},
		{"scrub", "scrubbing", "scrubbed without a durable intent"},
		{"strip", "quarantined", "stripped without a durable intent"},
		{"attach", "programmed", "attached without a durable intent"},
		{"detach", "detaching", "detached without a durable intent"},
		{"kick", "attached free", "asked for again without a durable intent"},
	};

	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(effect, table[i].effect) && !strstr(table[i].states, t->rows[v].state))
			truth_violate(t, v, table[i].without);
}

void truth_opened(struct truth *t, unsigned int v, int d)
{
	bool refused = truth_in_state(t, v, "quarantined") || truth_in_state(t, v, "preparing");
	bool his = is_his(t, v, d) && !refused;
	bool given =
		his && (truth_in_state(t, v, "programmed") || truth_in_state(t, v, "attached"));

	t->hw.vfs[v].open = true;
	t->vfs[v].user = d;
	t->vfs[v].foreign = !his;
	t->vfs[v].refused = refused || truth_in_state(t, v, "scrubbing");
	if (!given)
		excuse(t, v);
	if (!his)
		t->vfs[v].left_ms = TRUTH_FOREIGN_MS;
	if (given && !t->vfs[v].tainted && !card_of(t)->matches_claim(t, v))
		truth_violate(t, v, "reaches a guest unproven");
}

void truth_closed(struct truth *t, unsigned int v)
{
	hw_close(&t->hw, v);
	t->vfs[v].user = TRUTH_NOBODY;
	t->vfs[v].foreign = false;
	if (t->vfs[v].tainted) /* quarantined, it may be looked at again after half a minute only */
		excuse(t, v);
}
