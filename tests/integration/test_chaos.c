/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random schedules (docs/design/0006-chaos.md): what hosts, guests, network and actions there are
 * comes from a seed; the checker of tests/sim/hosts/chaos_check.c looks after every event, and
 * everything must come to rest in the end.
 *
 *   test_chaos                            the schedules of a check, as TAP
 *   test_chaos --migrations N --jobs J    from --seed S (1) on, until N migrations were started, in J processes
 *   test_chaos --seed S [--steps M] [--only 3,7,9] [--trace]    one schedule, or the first M of its actions, or just these
 *   test_chaos --seed S --broken B                                the same with something broken (enum chaos_breakage)
 *   test_chaos --seed S --unsafe U        the same with what is known to break invariant 3 (enum chaos_unsafe)
 *   test_chaos --mutants[=B]              plays with each thing broken (or one) until its rule catches it; a table
 *   test_chaos --fresh N --jobs J         N migrations from a fresh seed (VHCA_FRESH_SEED, else the clock), within three minutes
 *   test_chaos --seed S --shrink          the fewest actions of it that still break something
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/integration/chaos_seeds.h"
#include "tests/sim/hosts/chaos_schedule.h"
#include "tests/unit/unit.h"

#define BROKEN_SCHEDULES 500  /* at most, until one catches it */
#define FRESH_MIGRATIONS 1000 /* at most... */
#define FRESH_S		 15   /* ...so many seconds' worth */
#define CHECK_MIGRATIONS 1000 /* of a check with sanitizers; tools/check runs many more without */

/* ---- in processes of their own: a run may also end by an abort ---- */

static void be_cheap(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, 512 << 20);
	(void)mallopt(M_TOP_PAD, 16 << 20);
	(void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
}

/* How one schedule ended. */
struct outcome {
	bool held;
	enum chaos_rule rule; /* CHAOS_NO_RULE, though it has not held: it was killed, or aborted */
	unsigned int migrations;
};

static void say_broken(uint64_t seed, const char *why)
{
	fprintf(stderr, "# seed %llu: %s\n", (unsigned long long)seed, why);
}

static void say_how(const struct chaos_schedule *s)
{
	print_message("# broken: test_chaos --seed %llu --unsafe %d --broken %d --shrink\n",
		      (unsigned long long)s->seed, (int)s->unsafe, (int)s->breakage);
}

static struct outcome *the_outcome; /* of this process */
static struct chaos_play the_play;

static void judged(const char *what)
{
	the_outcome->rule = chaos_rule_of(what);
	the_outcome->migrations = the_play.c.stats.started;
}

static _Noreturn void play_here(const struct chaos_schedule *s, bool quiet)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	be_cheap();
	world_judge = judged;
	if (quiet)
		(void)dup2(null, STDERR_FILENO);
	the_outcome->held = chaos_play(&the_play, s, false);
	the_outcome->rule = the_play.c.rule;
	the_outcome->migrations = the_play.c.stats.started;
	if (!the_outcome->held)
		say_broken(s->seed, the_play.c.why);
	_exit(0);
}

static struct outcome outcome_of(const struct chaos_schedule *s, bool quiet)
{
	struct outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct outcome ret;
	int status = 0;
	pid_t pid;

	assert_true(shared != MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		the_outcome = shared;
		play_here(s, quiet);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ret = *shared;
	(void)munmap(shared, sizeof(*shared));
	return ret;
}

static bool holds(const struct chaos_schedule *s, bool quiet)
{
	return outcome_of(s, quiet).held;
}

struct shared {
	unsigned int migrations, schedules, kills, messages, lost, power_offs, takeovers;
	unsigned int faults[CHAOS_FAULTS]; /* schedules that had it */
	uint64_t digest;		   /* the sum of theirs: in any order */
	uint64_t now[16];		   /* the seed that each process is at */
};

static void add(struct shared *sh, const struct chaos_play *r)
{
	__atomic_add_fetch(&sh->migrations, r->c.stats.started, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->kills, r->c.stats.kills, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->messages, r->c.stats.messages, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->lost, r->c.stats.lost, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->power_offs, r->c.stats.power_offs, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->takeovers, r->c.stats.takeovers, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->digest, r->c.stats.digest, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sh->schedules, 1, __ATOMIC_RELAXED);
	for (unsigned int f = 0; f < CHAOS_FAULTS; f++)
		__atomic_add_fetch(&sh->faults[f], r->has[f], __ATOMIC_RELAXED);
}

/* What is to be played, by how many; until: time(2), 0 = for as long as it takes. */
struct work {
	uint64_t first;
	unsigned int jobs, migrations;
	time_t until;
};

static _Noreturn void work(struct shared *sh, const struct work *w, unsigned int job)
{
	static struct chaos_play r;

	be_cheap();
	for (uint64_t seed = w->first + job;
	     sh->migrations < w->migrations && (!w->until || time(NULL) < w->until);
	     seed += w->jobs) {
		const struct chaos_schedule s = {.seed = seed};

		sh->now[job] = seed;
		if (!chaos_play(&r, &s, false)) {
			say_broken(seed, r.c.why);
			_exit(1);
		}
		add(sh, &r);
	}
	_exit(0);
}

static void say_shares(const struct shared *sh)
{
	for (unsigned int f = 0; f < CHAOS_FAULTS && sh->schedules; f++)
		print_message("# %3u %% of them: %s\n", sh->faults[f] * 100 / sh->schedules,
			      chaos_faults[f]);
}

/* True: all of them held. */
static bool run_many(const struct work *w)
{
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[16];
	bool ok = true;

	assert_true(sh != MAP_FAILED && w->jobs >= 1 && w->jobs <= VHCA_ARRAY_SIZE(pids));
	for (unsigned int j = 0; j < w->jobs; j++) {
		pids[j] = fork();
		assert_true(pids[j] >= 0);
		if (pids[j] == 0)
			work(sh, w, j);
	}
	for (unsigned int j = 0; j < w->jobs; j++) {
		int status = 0;

		assert_int_equal(waitpid(pids[j], &status, 0), pids[j]);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		ok = false;
		say_how(&(struct chaos_schedule){.seed = sh->now[j]});
	}
	print_message(
		"# seeds from %llu: %u schedules, %u migrations, %u kills, %u power failures, %u "
		"take-overs, %u messages, %u lost, digest %016llx\n",
		(unsigned long long)w->first, sh->schedules, sh->migrations, sh->kills,
		sh->power_offs, sh->takeovers, sh->messages, sh->lost,
		(unsigned long long)sh->digest);
	say_shares(sh);
	(void)munmap(sh, sizeof(*sh));
	return ok;
}

/* True: it held. */
static bool run_one(const struct chaos_schedule *s, bool trace)
{
	static struct chaos_play r;

	if (chaos_play(&r, s, trace))
		return true;
	say_broken(s->seed, r.c.why);
	say_how(s);
	return false;
}

/* ---- shrinking ---- */

static void shrink(struct chaos_schedule *s)
{
	unsigned int left = 0;

	if (holds(s, true)) {
		print_message("# seed %llu holds\n", (unsigned long long)s->seed);
		return;
	}
	/* Pieces of half, a quarter, ... of the actions, then single ones; each once. */
	for (unsigned int size = CHAOS_ACTIONS / 2; size >= 1; size /= 2) {
		for (unsigned int at = 0; at < CHAOS_ACTIONS; at += size) {
			struct chaos_schedule less = *s;

			for (unsigned int i = at; i < at + size && i < CHAOS_ACTIONS; i++)
				less.leave_out[i] = true;
			if (memcmp(&less, s, sizeof(less)) != 0 && !holds(&less, true))
				*s = less;
		}
	}
	printf("# test_chaos --seed %llu --unsafe %d --broken %d --trace --only ",
	       (unsigned long long)s->seed, (int)s->unsafe, (int)s->breakage);
	for (unsigned int i = 0; i < CHAOS_ACTIONS; i++)
		if (!s->leave_out[i])
			printf("%s%u", left++ ? "," : "", i);
	printf("\n");
	(void)holds(s, false);
}

/* ---- command line ---- */

static void leave_only(struct chaos_schedule *s, char *list)
{
	char *save = NULL;

	memset(s->leave_out, true, sizeof(s->leave_out));
	for (char *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save))
		if (strtoul(w, NULL, 10) < CHAOS_ACTIONS)
			s->leave_out[strtoul(w, NULL, 10)] = false;
}

static void test_schedules(void **state)
{
	(void)state;
	assert_true(run_many(&(struct work){1, 1, CHECK_MIGRATIONS, 0}));
}

/* The first of many: what VHCA_FRESH_SEED says, else the clock. */
static uint64_t fresh_seed(void)
{
	const char *given = getenv("VHCA_FRESH_SEED");

	return (given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)) * 1000;
}

/*
 * Fixed seeds wear out. What fails here is printed, can be played again, and belongs into
 * chaos_seeds.h when it is mended.
 */
static void fresh_schedules(void **state)
{
	struct work w = {.first = fresh_seed(), .jobs = 1, .migrations = FRESH_MIGRATIONS};

	(void)state;
	w.until = time(NULL) + FRESH_S;
	print_message("# fresh seeds from %llu\n", (unsigned long long)w.first);
	if (!run_many(&w))
		fail_msg("a fresh seed has found something: see above");
}

static void what_was_found_before(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(chaos_regressions); i++)
		if (!holds(&(struct chaos_schedule){.seed = chaos_regressions[i].seed}, false))
			fail_msg("seed %llu again: %s",
				 (unsigned long long)chaos_regressions[i].seed,
				 chaos_regressions[i].found);
}

/* ---- what is known to break ---- */

static bool is_of_invariant_3(enum chaos_rule rule)
{
	return rule == CHAOS_RULE_PROOF || rule == CHAOS_RULE_ONE_OWNER || rule == CHAOS_RULE_HERE;
}

/* True: it broke, as described. */
static bool breaks_as_known(const struct chaos_schedule *s)
{
	struct outcome o = outcome_of(s, true);
	bool is_known = s->unsafe == CHAOS_TAKEN ? o.rule == CHAOS_RULE_AUTHORITY
						 : is_of_invariant_3(o.rule);

	/* By a master that is back with what it knew: nobody gets the vGUID that it holds. */
	is_known |= s->unsafe == CHAOS_POWER_AWAY && o.rule == CHAOS_RULE_DEVICE;

	if (!o.held && !is_known)
		fail_msg("--seed %llu --unsafe %d fails in another way than 0006 says: rule '%s'",
			 (unsigned long long)s->seed, (int)s->unsafe, chaos_rules[o.rule]);
	return !o.held;
}

static void known_breaks_are_as_described(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(chaos_known); i++) {
		const struct chaos_known *k = &chaos_known[i];
		unsigned int broken = 0;

		for (uint64_t seed = 1; seed <= k->seeds; seed++)
			broken += breaks_as_known(
				&(struct chaos_schedule){.seed = seed, .unsafe = k->unsafe});
		print_message("# known: %s: %u of %u schedules broke in the way "
			      "described in 0006%s\n",
			      k->text, broken, k->seeds,
			      broken ? "" : "; none did: need they be left out?");
	}
}

/* ---- mutants ---- */

/* Where one was caught: it is near, as long as schedules are as they are. */
static const uint64_t first_seed[CHAOS_BREAKAGES] = {
	[CHAOS_OLD_GENERATION] = 136, [CHAOS_UNASKED] = 28,	   [CHAOS_SAME_BOOT] = 28,
	[CHAOS_NO_SCRUB] = 171,	      [CHAOS_SILENCE_IS_YES] = 16, [CHAOS_FORGETFUL_SM] = 37,
	[CHAOS_LOST_FREE] = 18,	      [CHAOS_KEEPS_CLAIMS] = 27,   [CHAOS_UNHEARD_MASTER] = 37,
	[CHAOS_KEYLESS_SM] = 10,      [CHAOS_WRONG_VPORT] = 32,	   [CHAOS_FREES_LID] = 10,
	[CHAOS_NO_LID] = 10,
};

/*
 * Plays schedules until its rule has caught it; 0: none has. The others may catch it in other
 * schedules.
 */
static uint64_t seed_that_catches(enum chaos_breakage b, unsigned int *ret_migrations)
{
	uint64_t first = first_seed[b] ? first_seed[b] : 1;

	*ret_migrations = 0;
	for (uint64_t seed = first; seed < first + BROKEN_SCHEDULES; seed++) {
		const struct chaos_schedule s = {.seed = seed, .breakage = b};
		struct outcome o = outcome_of(&s, true);

		*ret_migrations += o.migrations;
		if (!o.held && o.rule == chaos_mutants[b].rule)
			return seed;
	}
	return 0;
}

/* A table: rule, mutant, at which migration it was caught. */
static unsigned int count_survivors(unsigned int from, unsigned int to)
{
	unsigned int survivors = 0;

	print_message("# %-17s %-19s %10s %5s  %s\n", "rule", "mutant", "migration", "seed",
		      "what is broken");
	for (unsigned int b = from; b < to; b++) {
		const struct chaos_mutant *m = &chaos_mutants[b];
		unsigned int migrations;
		uint64_t seed = seed_that_catches((enum chaos_breakage)b, &migrations);

		survivors += !seed;
		print_message("# %-17s %-19s %10u %5llu  %s%s\n", chaos_rules[m->rule], m->name,
			      migrations, (unsigned long long)seed, m->text,
			      seed ? "" : ": NOT CAUGHT");
	}
	return survivors;
}

static void every_rule_has_a_mutant(void **state)
{
	bool has[CHAOS_RULES] = {[CHAOS_NO_RULE] = true};

	(void)state;
	for (unsigned int b = CHAOS_INTACT + 1; b < CHAOS_BREAKAGES; b++)
		has[chaos_mutants[b].rule] = true;
	for (unsigned int r = 0; r < CHAOS_RULES; r++)
		if (!has[r])
			fail_msg("nothing shows that rule '%s' can fail", chaos_rules[r]);
}

static void every_mutant_is_caught(void **state)
{
	(void)state;
	assert_int_equal(count_survivors(CHAOS_INTACT + 1, CHAOS_BREAKAGES), 0);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"steps", required_argument, NULL, 'm'},
		{"only", required_argument, NULL, 'o'},
		{"migrations", required_argument, NULL, 'n'},
		{"jobs", required_argument, NULL, 'j'},
		{"trace", no_argument, NULL, 't'},
		{"shrink", no_argument, NULL, 'x'},
		{"broken", required_argument, NULL, 'b'},
		{"mutants", optional_argument, NULL, 'u'},
		{"unsafe", required_argument, NULL, 'k'},
		{"fresh", required_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules),
					   cmocka_unit_test(fresh_schedules),
					   cmocka_unit_test(what_was_found_before),
					   cmocka_unit_test(known_breaks_are_as_described),
					   cmocka_unit_test(every_rule_has_a_mutant),
					   cmocka_unit_test(every_mutant_is_caught)};
	unsigned int migrations = 0, fresh = 0, jobs = 1;
	struct chaos_schedule s = {.seed = 1};
	bool trace = false, small = false;
	int opt;

	if (argc == 1)
		return cmocka_run_group_tests_name("chaos", tests, NULL, NULL);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			s.seed = strtoull(optarg, NULL, 10);
		else if (opt == 'm')
			for (size_t i = strtoul(optarg, NULL, 10); i < CHAOS_ACTIONS; i++)
				s.leave_out[i] = true;
		else if (opt == 'o')
			leave_only(&s, optarg);
		else if (opt == 'n')
			migrations = (unsigned int)strtoul(optarg, NULL, 10);
		else if (opt == 'f')
			fresh = (unsigned int)strtoul(optarg, NULL, 10);
		else if (opt == 'j')
			jobs = (unsigned int)strtoul(optarg, NULL, 10);
		else if (opt == 't')
			trace = true;
		else if (opt == 'b')
			s.breakage = (enum chaos_breakage)strtoul(optarg, NULL, 10);
		else if (opt == 'k')
			s.unsafe = (enum chaos_unsafe)strtoul(optarg, NULL, 10);
		else if (opt == 'u')
			return optarg ? count_survivors((unsigned int)atoi(optarg),
							(unsigned int)atoi(optarg) + 1) != 0
				      : count_survivors(CHAOS_INTACT + 1, CHAOS_BREAKAGES) != 0;
		else if (opt == 'x')
			small = true;
		else
			return 2;
	}
	if (fresh)
		return run_many(&(struct work){fresh_seed(), jobs, fresh, time(NULL) + 180}) ? 0
											     : 1;
	if (small)
		shrink(&s);
	else if (!migrations)
		return run_one(&s, trace) ? 0 : 1;
	return migrations && !run_many(&(struct work){s.seed, jobs, migrations, 0}) ? 1 : 0;
}
