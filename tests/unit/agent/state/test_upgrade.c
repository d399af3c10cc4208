// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agent of a running host is upgraded: its guest has its VF before, meanwhile and after
 * (tests/sim/host/world.h). The new agent's schema has one version more, which is made up here.
 */
#include <stdio.h>
#include <string.h>

#include "agent/state/journal.h"
#include "tests/unit/agent/vf/engine_world.h"

#define VERSIONS_MAX 64

/* What the present schema holds is copied, and goes with the row that it is of. */
static const struct vhca_migration next = {
	"CREATE TABLE labels (claim TEXT PRIMARY KEY REFERENCES claims ON DELETE CASCADE,"
	" label TEXT NOT NULL) STRICT;"
	"INSERT INTO labels SELECT id, domain_name || '/' || name FROM claims;"};

struct upgrade {
	struct world w;
	struct vhca_migration schema[VERSIONS_MAX];
};

static int begin(void **state)
{
	static struct upgrade u;

	world_init(&u.w);
	assert_in_range(vhca_journal_n_migrations, 1, VERSIONS_MAX - 1);
	memcpy(u.schema, vhca_journal_migrations, vhca_journal_n_migrations * sizeof(u.schema[0]));
	u.schema[vhca_journal_n_migrations] = next;
	*state = &u;
	return 0;
}

static int finish(void **state)
{
	struct upgrade *u = *state;

	world_done(&u->w);
	return 0;
}

/* The agent that is started next has the schema with one version more. */
static void install_next(struct upgrade *u)
{
	u->w.schema = u->schema;
	u->w.n_schema = vhca_journal_n_migrations + 1;
}

static int take_text(void *ctx, const struct vhca_row *row)
{
	(void)snprintf(ctx, 100, "%s", vhca_row_text(row, 0));
	return 0;
}

static const char *ask(const struct world *w, const char *sql)
{
	static char text[100];

	text[0] = '\0';
	assert_int_equal(vhca_store_query(w->store, sql, take_text, text, NULL, ""), 0);
	return text;
}

static unsigned int start_guest(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	return (unsigned int)world_vf_of(w, 0, "ib0");
}

static int64_t count_claims(const struct world *w)
{
	const struct vhca_claim *c;
	int64_t n = 0;

	TAILQ_FOREACH (c, &vhca_engine_model(w->engine)->claims, link)
		n++;
	return n;
}

static void a_guest_keeps_its_vf(void **state)
{
	struct upgrade *u = *state;
	struct world *w = &u->w;
	unsigned int v = start_guest(w);
	struct world_vf before = w->vfs[v];

	world_kill(w);
	install_next(u);
	w->effects = 0;
	w->fault_at = UINT32_MAX;
	w->fault_effect = VHCA_EFFECT_PROGRAM;
	world_start(w);
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	assert_int_equal(w->effects, 0);
	assert_memory_equal(&before, &w->vfs[v], sizeof(before));
	assert_int_equal(count_claims(w), 1);
	assert_string_equal(ask(w, "SELECT label FROM labels"), "vm0/ib0");
}

static void it_goes_on_as_ever(void **state)
{
	struct upgrade *u = *state;
	struct world *w = &u->w;
	unsigned int v = start_guest(w);

	world_kill(w);
	install_next(u);
	world_start(w);
	world_domain_start(w, 1, "0x8002");
	assert_true(world_until(w, served, &one));
	world_domain_stop(w, 0);
	world_domain_stop(w, 1);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(world_clean(w, v));
	world_settle(w);
	assert_string_equal(ask(w, "SELECT count(*) FROM labels"), "0");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_guest_keeps_its_vf),
		CASE(it_goes_on_as_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
