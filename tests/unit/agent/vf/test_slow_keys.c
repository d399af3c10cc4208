// SPDX-License-Identifier: LGPL-2.1-or-later
/* An SM that takes a minute to give the destination's port a key: configured for, so waited for. */
#include <string.h>

#include "tests/sim/hosts/chaos.h"
#include "tests/unit/unit.h"

#define LATE_MS 60000

static struct chaos c;

static int setup(void **state)
{
	static const struct chaos_size size = {.hosts = 2, .guests = 1, .vfs = 1};

	(void)state;
	chaos_init(&c, 1, &size);
	memset(&c.odds, 0, sizeof(c.odds));
	chaos_trouble(&c, 10 * LATE_MS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	chaos_done(&c);
	return 0;
}

static unsigned int index_of(const struct world *w, uint16_t pkey)
{
	for (unsigned int i = 0; i < WORLD_KEYS; i++)
		if (w->port_pkeys[i] == pkey)
			return i;
	fail_msg("the port has no such key");
	return 0;
}

static enum vhca_mig_state migrate(uint32_t pkey_timeout_ms)
{
	unsigned int from = c.guests[0].at;
	struct world *there = &c.hosts[!from].w;
	unsigned int i = index_of(there, c.guests[0].vfs[0].pkey);

	for (unsigned int h = 0; h < c.n_hosts; h++)
		c.hosts[h].w.conf.pkey_timeout_ms = pkey_timeout_ms;
	world_set_key(there, i, 0);
	assert_true(chaos_migrate(&c, 0, !from));
	chaos_run(&c, LATE_MS);
	world_set_key(there, i, c.guests[0].vfs[0].pkey);
	if (!chaos_settle(&c, 600000) || c.broken)
		fail_msg("%s", c.why);
	return vhca_migrations_first(c.hosts[from].ms)->state;
}

static void who_has_time_waits(void **state)
{
	(void)state;
	assert_int_equal(migrate(2 * LATE_MS), VHCA_MIG_DONE);
}

static void who_has_none_is_told_why(void **state)
{
	const struct vhca_mig *m;

	(void)state;
	assert_int_equal(migrate(LATE_MS / 2), VHCA_MIG_FAILED);
	m = vhca_migrations_first(c.hosts[c.guests[0].at].ms);
	assert_string_equal(m->failure.code, "pkey_not_on_port");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(who_has_time_waits),
		T(who_has_none_is_told_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
