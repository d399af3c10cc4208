/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The crash matrix in its fast form (docs/design/0006-chaos.md): in each of a few migrations, at
 * each step that any agent takes (they are counted in a run where nothing happens), right before it
 * and right after it, one party goes away for a while, alone or together with the link between the
 * hosts. Afterwards everything must be as if nothing had been. So it is with a lease that ends. The
 * result is compared with
 * docs/crash-matrix.md; `test_crash_matrix --write FILE` writes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/unit/unit.h"

#define STEPS_MAX 512
#define SETTLE_MS 900000

enum party { SOURCE_AGENT, DEST_AGENT, SOURCE_VIRT, DEST_VIRT, SM, PARTIES };

/*
 * How long it stays away: an agent is restarted by systemd; the link and the SM stay away long
 * enough for the agents to give up waiting.
 */
static const struct {
	const char *name;
	unsigned int away_ms;
} parties[PARTIES] = {
	[SOURCE_AGENT] = {"source agent", 400},	   [DEST_AGENT] = {"destination agent", 400},
	[SOURCE_VIRT] = {"source libvirtd", 3000}, [DEST_VIRT] = {"destination libvirtd", 3000},
	[SM] = {"OpenSM with the plugin", 20000},
};
#define CUT_MS 45000

enum scenario { MOVES, COPY_FAILS, DEST_SILENT, CROSS, NEVER_COMES, SCENARIOS };

/* seed: with which each guest has all the VFs. */
static const struct {
	const char *name, *text;
	unsigned int guests, vfs, seed;
} scenarios[SCENARIOS] = {
	[MOVES] = {"Nothing fails", "The guest moves.", 1, 1, 7},
	[COPY_FAILS] = {"The copy fails",
			"libvirt's migration ends with an error; the guest stays.", 1, 1, 7},
	[DEST_SILENT] = {"The copy fails, and the destination's agent is away",
			 "It is killed while the memory is copied, and started again two minutes "
			 "later: meanwhile the SM has decided.",
			 1, 1, 7},
	[CROSS] = {"Two guests change places, each with two VFs",
		   "The second one goes from the first one's destination to its source, at the "
		   "same time. `m`: one of them is there, and one is back. Of the four cells each "
		   "row has one: row 1 the first, row 2 the second, and so on, over and over.",
		   2, 2, 4},
	[NEVER_COMES] = {"A port is reserved whose guest never comes",
			 "For half a minute, at the source. `f`: its VF is free, and no claim is "
			 "left.",
			 1, 1, 7},
};
#define LEASE_S 30

/* The k-th of four cells is played in this row (from 1). */
static bool is_played(enum scenario scenario, unsigned int row, unsigned int k)
{
	return scenario != CROSS || (row - 1) % 4 == k;
}

struct step {
	unsigned int host;
	enum chaos_when when;
	char label[64];
};

/* A run is played twice: the first one tells the steps, at those of the second one cells begin. */
enum phase { RECORDS, PLAYS, IS_CELL };

/* Of this process. A cell has a step, a party, and the link whole or cut. */
struct plan {
	enum scenario scenario;
	enum phase phase;
	unsigned int n;
	struct step steps[2 * STEPS_MAX];
	bool wanted[2 * STEPS_MAX][2];
	char found[2 * STEPS_MAX][PARTIES][2];
};

/* ---- one cell ---- */

struct later {
	struct chaos *c;
	enum party party;
	unsigned int host;
};

static void on_back(void *arg)
{
	struct later *l = arg;

	if (l->party <= DEST_AGENT)
		chaos_start(&l->c->hosts[l->host]);
	else if (l->party <= DEST_VIRT)
		chaos_virt(&l->c->hosts[l->host], true);
	else
		l->c->sm_down = false;
	free(l);
}

static void on_whole(void *arg)
{
	chaos_cut(arg, 0, 1, false);
}

static void go_away(struct chaos *c, enum party party, unsigned int ms)
{
	struct later *l = malloc(sizeof(*l));
	unsigned int host = party == DEST_AGENT || party == DEST_VIRT;

	assert_non_null(l);
	*l = (struct later){c, party, host};
	if (party <= DEST_AGENT)
		chaos_kill(&c->hosts[host]);
	else if (party == SM)
		c->sm_down = true;
	vtime_after(VTIME_WORLD, ms, on_back, l, free);
}

/* Not from inside of an agent: libvirt's loss is told to it at once. */
static void on_virt_goes(void *arg)
{
	struct later *l = arg;

	chaos_virt(&l->c->hosts[l->host], false);
	free(l);
}

static void strike(struct chaos *c, enum party party, bool cut)
{
	if (party == SOURCE_VIRT || party == DEST_VIRT) {
		struct later *l = malloc(sizeof(*l));

		assert_non_null(l);
		*l = (struct later){c, party, party == DEST_VIRT};
		vtime_after(VTIME_WORLD, 0, on_virt_goes, l, free);
	}
	go_away(c, party, parties[party].away_ms);
	if (!cut)
		return;
	chaos_cut(c, 0, 1, true);
	vtime_after(VTIME_WORLD, CUT_MS, on_whole, c, NULL);
}

/*
 * Goes on from here in a process of its own: 't' there, 'b' back, 'm' one of each, 'f' free, '!'
 * not as it should be. '\0' in that process, which is a cell from now on.
 */
static char cell(struct chaos *c, struct plan *p, enum party party, bool cut)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		p->phase = IS_CELL;
		strike(c, party, cut);
		return '\0';
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? (char)WEXITSTATUS(status) : '!';
}

/* The cells of a step; each returns from it as its own process. */
static void play_cells(struct chaos *c, struct plan *p, unsigned int i)
{
	for (unsigned int party = 0; party < PARTIES; party++) {
		for (unsigned int cut = 0; cut < 2; cut++) {
			if (!p->wanted[i][cut])
				continue;
			p->found[i][party][cut] = cell(c, p, party, cut);
			if (p->phase == IS_CELL)
				return;
		}
	}
}

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	struct plan *p = c->arg;
	unsigned int i = p->n++;

	if (p->phase == RECORDS) {
		assert_true(i < VHCA_ARRAY_SIZE(p->steps));
		p->steps[i] = (struct step){.host = h->n, .when = when};
		(void)snprintf(p->steps[i].label, sizeof(p->steps[i].label), "%s", label);
	}
	if (p->scenario == DEST_SILENT && when == CHAOS_AFTER && h->n == 1 &&
	    !strcmp(label, "destination: incoming") && !c->cut[0][0]) {
		c->cut[0][0] = true; /* once; nobody talks to himself */
		go_away(c, DEST_AGENT, 120000);
	}
	if (p->phase == PLAYS)
		play_cells(c, p, i);
}

/* Guest g began at host g. */
static char where(const struct chaos *c, enum scenario scenario)
{
	unsigned int there = 0;

	if (scenario == NEVER_COMES)
		return 'f';
	for (unsigned int g = 0; g < c->n_guests; g++)
		there += c->guests[g].at != g;
	if (there == c->n_guests)
		return 't';
	return there ? 'm' : 'b';
}

static void begin(struct chaos *c, enum scenario scenario)
{
	const struct chaos_size size = {.hosts = 2,
					.guests = scenarios[scenario].guests,
					.vfs = scenarios[scenario].vfs,
					.ports = scenario == NEVER_COMES};

	chaos_init(c, scenarios[scenario].seed, &size);
	for (unsigned int g = 0; g < size.guests; g++)
		assert_int_equal(c->guests[g].n_vfs, size.vfs);
	assert_true(chaos_settle(c, 10000));
}

static bool come_to_rest(struct chaos *c, struct plan *p)
{
	c->on_step = on_step;
	c->wants_labels = true;
	c->arg = p;
	c->next_copy_fails = p->scenario == COPY_FAILS || p->scenario == DEST_SILENT;
	if (p->scenario == NEVER_COMES) {
		chaos_reserve(&c->hosts[0], LEASE_S);
		chaos_run(c, 1000); /* only now it is begun */
	}
	for (unsigned int g = 0; p->scenario != NEVER_COMES && g < c->n_guests; g++)
		if (!chaos_migrate(c, g, !c->guests[g].at))
			return false;
	return chaos_settle(c, SETTLE_MS);
}

/* From the state in which all guests are at rest. A cell ends here. */
static void play(struct chaos *c, struct plan *p, enum phase phase)
{
	bool ok;

	p->phase = phase;
	p->n = 0;
	begin(c, p->scenario);
	ok = come_to_rest(c, p);
	if (!ok)
		fprintf(stderr, "# %s: not at rest: %s\n", scenarios[p->scenario].name, c->why);
	if (p->phase == IS_CELL)
		_exit(ok ? where(c, p->scenario) : '!');
	assert_true(ok);
	chaos_done(c);
}

/* ---- the matrix ---- */

struct matrix {
	struct chaos *c;
	FILE *out;
	unsigned int cells, failed;
};

/* What happens at the n-th BEFORE and its AFTER, in the order in which they began. */
static unsigned int find_after(const struct plan *p, unsigned int before)
{
	const struct step *s = &p->steps[before];
	unsigned int open = 1;

	for (unsigned int i = before + 1; i < p->n; i++) {
		const struct step *o = &p->steps[i];

		if (o->host != s->host || strcmp(o->label, s->label) != 0)
			continue;
		if (o->when == CHAOS_AFTER && --open == 0)
			return i;
		open += o->when == CHAOS_BEFORE;
	}
	return before; /* it had no end: what it asked for was not answered */
}

/* The row whose step begins there: its cells are four at each party, before and after it. */
static void want_cells(struct plan *p, unsigned int before, unsigned int number)
{
	unsigned int at[2] = {before, find_after(p, before)};

	for (unsigned int k = 0; k < 4; k++)
		if (is_played(p->scenario, number, k))
			p->wanted[at[k % 2]][k / 2] = true;
}

static void row(struct matrix *m, const struct plan *p, unsigned int before, unsigned int number)
{
	unsigned int at[2] = {before, find_after(p, before)};
	const struct step *step = &p->steps[before];

	fprintf(m->out, "| %u | %s | %s |", number, step->host ? "dest" : "source", step->label);
	for (unsigned int party = 0; party < PARTIES; party++) {
		for (unsigned int k = 0; k < 4; k++) {
			char r = p->found[at[k % 2]][party][k / 2];

			if (!is_played(p->scenario, number, k))
				continue;
			m->cells++;
			m->failed += r == '!';
			if (r == '!')
				print_message("# %s: %s %s '%s' of host %u%s: failed\n",
					      scenarios[p->scenario].name, parties[party].name,
					      k % 2 ? "after" : "before", step->label, step->host,
					      k >= 2 ? ", link cut" : "");
			fprintf(m->out, " %c", r);
		}
		fprintf(m->out, " |");
	}
	fprintf(m->out, "\n");
}

static void table_head(FILE *out, enum scenario scenario)
{
	fprintf(out, "\n## %s\n\n%s\n\n| # | agent | step |", scenarios[scenario].name,
		scenarios[scenario].text);
	for (unsigned int party = 0; party < PARTIES; party++)
		fprintf(out, " %s |", parties[party].name);
	fprintf(out, "\n|--|--|--|");
	for (unsigned int party = 0; party < PARTIES; party++)
		fprintf(out, "--|");
	fprintf(out, "\n");
}

static void table(struct matrix *m, enum scenario scenario)
{
	static struct plan p;
	unsigned int number = 0;

	p = (struct plan){.scenario = scenario};
	play(m->c, &p, RECORDS);
	for (unsigned int i = 0; i < p.n; i++)
		if (p.steps[i].when == CHAOS_BEFORE)
			want_cells(&p, i, ++number);
	play(m->c, &p, PLAYS);
	table_head(m->out, scenario);
	number = 0;
	for (unsigned int i = 0; i < p.n; i++)
		if (p.steps[i].when == CHAOS_BEFORE)
			row(m, &p, i, ++number);
}

static void head(FILE *out)
{
	fprintf(out,
		"# Crash matrix\n\n"
		"Written by `tests/integration/test_crash_matrix.c` (`test_crash_matrix --write "
		"docs/crash-matrix.md`), which fails when this page is not what it finds.\n\n"
		"Each row is a step of a migration: a transaction of an agent, an effect on a VF, "
		"a request, a call to libvirt; they are counted in a run where nothing happens. "
		"Each column is a party that goes away at that moment (agents: SIGKILL, back after "
		"0.4 s; libvirtd: 3 s; OpenSM: 20 s), with four cells: right before the step, "
		"right after it, and the same with the link between the agents and between the "
		"libvirtds cut for 45 s. `t`: in the end the guest is there, at the destination; "
		"`b`: it is back, at the source. In either case there is exactly one owner of its "
		"vGUID, the guest has its VF with its vGUID, its P_Keys and its PCI address, the "
		"SM knows that, no other VF is claimed, quarantined or unscrubbed, no migration is "
		"open and all outboxes are empty; `!` would mean that it is not so.\n");
}

static char *run_all(unsigned int *ret_cells, unsigned int *ret_failed)
{
	static struct chaos c;
	struct matrix m = {.c = &c};
	char *text = NULL;
	size_t len = 0;

	m.out = open_memstream(&text, &len);
	assert_non_null(m.out);
	head(m.out);
	for (unsigned int s = 0; s < SCENARIOS; s++)
		table(&m, s);
	fprintf(m.out, "\n%u cells, %u failed.\n", m.cells, m.failed);
	(void)fclose(m.out);
	*ret_cells = m.cells;
	*ret_failed = m.failed;
	return text;
}

static char *read_page(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(text);
	if (f) {
		assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
		(void)fclose(f);
	}
	return text;
}

static void test_every_cell(void **state)
{
	VHCA_AUTO_FREE char *page = read_page(PAGE);
	VHCA_AUTO_FREE char *text = NULL;
	unsigned int cells = 0, failed = 0;

	(void)state;
	text = run_all(&cells, &failed);
	print_message("# %u cells, %u failed\n", cells, failed);
	assert_true(cells > 1000);
	assert_int_equal(failed, 0);
	/* Not assert_string_equal(): two pages of table would bury the sentence. */
	if (strcmp(page, text) != 0)
		fail_msg("docs/crash-matrix.md is not what was found: write it with "
			 "test_crash_matrix --write docs/crash-matrix.md");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cell)};
	unsigned int cells, failed;

	if (argc == 3 && !strcmp(argv[1], "--write")) {
		VHCA_AUTO_FREE char *text = run_all(&cells, &failed);
		FILE *f = fopen(argv[2], "w");

		return f && fputs(text, f) >= 0 && fclose(f) == 0 && failed == 0 ? 0 : 1;
	}
	return cmocka_run_group_tests_name("crash_matrix", tests, NULL, NULL);
}
