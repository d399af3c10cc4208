// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * storm_agents URL FIRST AGENTS VFS HOSTS: so many agents in one process, as far as the subnet
 * manager can tell: each has a production outbox and HTTP client of its own, with connections of
 * its own. Their disks cost nothing: a transaction is durable in the next round of the loop. Agent
 * number n (from FIRST on) sits at host 2 + n % (HOSTS - 1) of tests/integration/fabric.py; where
 * there are fewer hosts than agents, agents share ports.
 *
 * Reads commands, a line each, and answers each with one line of JSON:
 *   register N WINDOW  the first N agents declare a key for their port and bind all their VFs, WINDOW agents at a time
 *   moves N WINDOW     N VMs go from one agent to another, WINDOW at a time; the old owner reports late and has to be refused
 *   bare N WINDOW      N times GET /healthz on the agents' connections, to compare with
 *   state              every VM as [vguid, epoch, port GUID, GID index]
 * The first three: {"done", "delayed", "wrong", "us": from the report to its answer, each}. What is
 * wrong is also said on stderr.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/http_loop.h"
#include "common/http/json.h"
#include "sm/outbox.h"

#define AGENTS_MAX   4096
#define VFS_MAX	     64
#define PHASE_MAX_MS 900000
#define TIMEOUT_MS   5000 /* `timeout` of vhcad.conf */
#define VGUIDS	     UINT64_C(0x0002c9fe00000000)
#define KEYS	     32	    /* of tenants */
#define HOST_KEY     0x9000 /* declared for every port */
#define DEFAULT_KEY  0x7fff

struct storm;

struct agent {
	struct storm *storm;
	struct vhca_http_loop_client *client;
	struct vhca_outbox *outbox;
	uint64_t port_guid;
	unsigned int unregistered; /* its reports that are not answered yet */
	/* agents that share a port take the same: nobody minds before a grant */
	uint16_t next_index;
};

struct vm {
	uint64_t epoch;
	unsigned int agent, from; /* from: while it moves */
	uint16_t gid_index, from_index;
	bool moving;
	uint64_t since_us;
};

struct storm {
	struct vhca_loop *loop;
	char url[128];
	unsigned int first, n_agents, vfs, hosts;
	struct agent agents[AGENTS_MAX];
	struct vm vms[AGENTS_MAX * VFS_MAX];

	/* the phase that runs */
	unsigned int left, under_way; /* not begun, not over */
	unsigned int done, delayed, wrong;
	uint32_t us[AGENTS_MAX * (VFS_MAX + 1)];
	unsigned int turn;
	void (*next)(struct storm *s); /* begins one more */
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "storm_agents: %s\n", what);
	exit(2);
}

/* ---- instead of the store ---- */

struct durable {
	void (*done)(void *arg, int rc);
	void *arg;
};

static struct vhca_loop *the_loop; /* a transaction has no context */

static void on_durable(void *arg)
{
	const struct durable d = *(struct durable *)arg;

	free(arg);
	d.done(d.arg, 0);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in */
int __wrap_vhca_store_query(struct vhca_store *store, const char *sql, vhca_row_fn fn, void *ctx,
			    struct vhca_error *err, const char *types, ...);
struct vhca_txn *__wrap_vhca_txn_new(struct vhca_store *store);
void __wrap_vhca_txn_exec(struct vhca_txn *txn, const char *sql, const char *types, ...);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);

int __wrap_vhca_store_query(struct vhca_store *store, const char *sql, vhca_row_fn fn, void *ctx,
			    struct vhca_error *err, const char *types, ...)
{
	(void)store, (void)sql, (void)fn, (void)ctx, (void)err, (void)types;
	return 0; /* nothing is left over from before */
}

struct vhca_txn *__wrap_vhca_txn_new(struct vhca_store *store)
{
	return (void *)store; /* never looked into */
}

void __wrap_vhca_txn_exec(struct vhca_txn *txn, const char *sql, const char *types, ...)
{
	(void)txn, (void)sql, (void)types;
}

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg)
{
	struct durable *d;

	(void)txn;
	if (!done)
		return;
	d = malloc(sizeof(*d));
	must(d != NULL, "no memory");
	*d = (struct durable){done, arg};
	must(vhca_loop_post(the_loop, on_durable, d, free) == 0, "no memory");
}
/* NOLINTEND(bugprone-reserved-identifier) */

#define NO_STORE ((struct vhca_store *)&the_loop)

/* ---- VMs ---- */

static uint64_t vguid_of(const struct storm *s, unsigned int vm)
{
	return VGUIDS + (uint64_t)s->first * VFS_MAX + vm;
}

static struct vm *vm_by_vguid(struct storm *s, uint64_t vguid)
{
	uint64_t i = vguid - vguid_of(s, 0);

	must(i < (uint64_t)s->n_agents * s->vfs, "an answer speaks of a VM that is none");
	return &s->vms[i];
}

static struct vhca_sm_binding binding_of(const struct storm *s, unsigned int i)
{
	const struct vm *vm = &s->vms[i];
	const struct agent *a = &s->agents[vm->agent];

	return (struct vhca_sm_binding){.vguid = vguid_of(s, i),
					.epoch = vm->epoch,
					.bound = true,
					.port_guid = a->port_guid,
					.gid_index = vm->gid_index,
					.n_pkeys = 2,
					.pkeys = {DEFAULT_KEY, (uint16_t)(0x8001 + i % KEYS)}};
}

/* ---- reports ---- */

struct ticket {
	struct vhca_outbox *outbox;
	uint64_t ticket;
};

static void on_commit(void *arg, int rc)
{
	const struct ticket t = *(struct ticket *)arg;

	free(arg);
	vhca_outbox_release(t.outbox, t.ticket, rc == 0);
}

static void commit(struct agent *a, uint64_t ticket)
{
	struct ticket *t = malloc(sizeof(*t));

	must(t && ticket, "a report was not taken");
	*t = (struct ticket){a->outbox, ticket};
	vhca_txn_commit(vhca_txn_new(NO_STORE), on_commit, t);
}

static void report(struct agent *a, const struct vhca_sm_binding *b)
{
	commit(a, vhca_outbox_put(a->outbox, vhca_txn_new(NO_STORE), b));
}

/* What was begun is over; `left` more are to follow. */
static void over(struct storm *s)
{
	s->under_way--;
	if (!s->left)
		return;
	s->left--;
	s->under_way++;
	s->next(s);
}

static void count(struct storm *s, uint64_t since_us)
{
	s->us[s->done++] = (uint32_t)(vhca_now_us() - since_us);
}

static void complain(struct storm *s, const char *what, uint64_t guid, const char *reason)
{
	s->wrong++;
	(void)fprintf(stderr, "storm_agents: %s: %s: %s\n", VHCA_GUID_STR(guid), what, reason);
}

static void send_move(struct storm *s)
{
	unsigned int i, to;
	struct vhca_sm_binding b;
	struct vm *vm;

	do
		i = (unsigned int)random() % (s->n_agents * s->vfs);
	while (s->vms[i].moving);
	vm = &s->vms[i];
	do
		to = (unsigned int)random() % s->n_agents;
	while (s->agents[to].port_guid == s->agents[vm->agent].port_guid);
	vm->from = vm->agent;
	vm->from_index = vm->gid_index;
	vm->agent = to;
	vm->gid_index = s->agents[to].next_index++;
	vm->epoch++;
	vm->moving = true;
	vm->since_us = vhca_now_us();
	b = binding_of(s, i);
	b.moved = true;
	(void)vhca_uuid_random(&b.move_id);
	b.from_port_guid = s->agents[vm->from].port_guid;
	b.from_gid_index = vm->from_index;
	report(&s->agents[to], &b);
}

/* As from an agent that was cut off: it does not know of the move. */
static void report_late(struct storm *s, struct vm *vm)
{
	struct vhca_sm_binding b = binding_of(s, (unsigned int)(vm - s->vms));

	b.epoch--;
	b.bound = false;
	b.port_guid = s->agents[vm->from].port_guid;
	b.gid_index = vm->from_index;
	report(&s->agents[vm->from], &b);
}

static void end_move(struct storm *s, struct vm *vm)
{
	vm->moving = false;
	over(s);
}

/* One report of an agent's first is answered. */
static void registered(struct agent *a)
{
	if (--a->unregistered == 0)
		over(a->storm);
}

static void on_binding(void *arg, const struct vhca_sm_binding *b, enum vhca_sm_answer answer,
		       const char *reason, struct json_object *doc)
{
	struct agent *a = arg;
	struct storm *s = a->storm;
	struct vm *vm = vm_by_vguid(s, b->vguid);
	enum vhca_sm_answer right = b->bound ? VHCA_SM_ACCEPTED : VHCA_SM_SUPERSEDED;

	(void)doc;
	if (answer == VHCA_SM_RETRY) {
		s->delayed++;
		return;
	}
	if (answer != right)
		complain(s, b->bound ? "not accepted" : "a late report was not refused", b->vguid,
			 reason);
	if (b->bound)
		count(s, vm->since_us);
	if (!vm->moving)
		registered(a);
	else if (b->bound)
		report_late(s, vm);
	else
		end_move(s, vm);
}

static void on_members(void *arg, uint64_t port_guid, enum vhca_sm_answer answer,
		       const char *reason)
{
	struct agent *a = arg;

	if (answer == VHCA_SM_RETRY) {
		a->storm->delayed++;
		return;
	}
	if (answer != VHCA_SM_ACCEPTED)
		complain(a->storm, "declaration not accepted", port_guid, reason);
	registered(a);
}

static void register_agent(struct storm *s)
{
	static const uint16_t keys[] = {HOST_KEY};
	unsigned int n = s->turn++;
	struct agent *a = &s->agents[n];

	a->unregistered = s->vfs + 1;
	commit(a,
	       vhca_outbox_put_members(a->outbox, vhca_txn_new(NO_STORE), a->port_guid, keys, 1));
	for (unsigned int i = n * s->vfs; i < (n + 1) * s->vfs; i++) {
		const struct vhca_sm_binding b = binding_of(s, i);

		s->vms[i].since_us = vhca_now_us();
		report(a, &b);
	}
}

/* ---- to compare with ---- */

struct bare {
	struct storm *storm;
	uint64_t since_us;
};

static void on_bare(void *arg, int rc, const struct vhca_http_result *res,
		    const struct vhca_error *err)
{
	const struct bare b = *(struct bare *)arg;

	(void)res;
	free(arg);
	if (rc < 0)
		complain(b.storm, "GET /healthz", 0, err->msg);
	count(b.storm, b.since_us);
	over(b.storm);
}

static void send_bare(struct storm *s)
{
	const struct agent *a = &s->agents[s->turn++ % s->n_agents];
	struct bare *b = malloc(sizeof(*b));
	char url[160];
	const struct vhca_http_call_args args = {
		.method = "GET", .url = url, .total_ms = PHASE_MAX_MS};

	must(b != NULL, "no memory");
	*b = (struct bare){s, vhca_now_us()};
	(void)snprintf(url, sizeof(url), "%s/healthz", s->url);
	must(vhca_http_multi_start(vhca_http_loop_client_multi(a->client), &args, on_bare, b) == 0,
	     "a request was not started");
}

/* ---- phases ---- */

static void print_result(const struct storm *s)
{
	printf("{\"done\": %u, \"delayed\": %u, \"wrong\": %u, \"us\": [", s->done, s->delayed,
	       s->wrong);
	for (unsigned int i = 0; i < s->done; i++)
		printf("%s%" PRIu32, i ? "," : "", s->us[i]);
	printf("]}\n");
}

static void run_phase(struct storm *s)
{
	uint64_t deadline = vhca_now_ms() + PHASE_MAX_MS;

	while (s->under_way && vhca_now_ms() < deadline)
		(void)vhca_loop_once(s->loop, 1000);
	if (s->under_way)
		complain(s, "not answered in time", 0, "the first of them is the last of these");
	print_result(s);
}

static void phase(struct storm *s, void (*next)(struct storm *s), unsigned int n,
		  unsigned int window)
{
	s->done = s->delayed = s->wrong = s->turn = 0;
	s->next = next;
	s->left = n;
	while (s->left && s->under_way < window) {
		s->left--;
		s->under_way++;
		next(s);
	}
	run_phase(s);
}

static void print_state(const struct storm *s)
{
	for (unsigned int i = 0; i < s->n_agents * s->vfs; i++) {
		const struct vm *vm = &s->vms[i];

		printf("%c[\"%s\", %" PRIu64 ", \"%s\", %u]", i ? ',' : '[',
		       VHCA_GUID_STR(vguid_of(s, i)), vm->epoch,
		       VHCA_GUID_STR(s->agents[vm->agent].port_guid), vm->gid_index);
	}
	printf("]\n");
}

static bool obey(struct storm *s, char *line)
{
	char *rest = line, *word = strsep(&rest, " \n"), *n = strsep(&rest, " \n"),
	     *window = strsep(&rest, " \n");
	uint32_t number = 0, at_once = 0;

	if (strcmp(word, "state") == 0) {
		print_state(s);
		return true;
	}
	if (!n || !window || vhca_parse_u32(n, 10, AGENTS_MAX * VFS_MAX, &number) < 0 ||
	    vhca_parse_u32(window, 10, s->n_agents, &at_once) < 0 || !at_once)
		return false;
	if (strcmp(word, "register") == 0 && number <= s->n_agents)
		phase(s, register_agent, number, at_once);
	else if (strcmp(word, "moves") == 0)
		phase(s, send_move, number, at_once);
	else if (strcmp(word, "bare") == 0)
		phase(s, send_bare, number, at_once);
	else
		return false;
	return true;
}

/* ---- life ---- */

static void open_agent(struct storm *s, unsigned int n)
{
	const char *urls[] = {s->url};
	const struct vhca_outbox_conf conf = {.ops = &vhca_sm_vhcasm,
					      .urls = urls,
					      .n_urls = 1,
					      .timeout_ms = TIMEOUT_MS,
					      .members = on_members};
	struct agent *a = &s->agents[n];
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t host = 2 + (s->first + n) % (s->hosts - 1);

	*a = (struct agent){.storm = s,
			    .port_guid = UINT64_C(0x0002c90300000001) + host * 16,
			    .next_index = (uint16_t)(s->vfs + 1)};
	must(vhca_http_loop_client_new(s->loop, &a->client) == 0, "HTTP client");
	must(vhca_outbox_new(&conf, s->loop, NO_STORE, vhca_http_loop_client_multi(a->client),
			     on_binding, a, &a->outbox, &err) == 0,
	     err.msg);
	for (unsigned int v = 0; v < s->vfs; v++)
		s->vms[n * s->vfs + v] =
			(struct vm){.epoch = 1, .agent = n, .gid_index = (uint16_t)(v + 1)};
}

static void close_agents(struct storm *s)
{
	for (unsigned int n = 0; n < s->n_agents; n++) {
		(void)vhca_outbox_free(s->agents[n].outbox);
		(void)vhca_http_loop_client_free(s->agents[n].client);
	}
}

static bool read_arguments(struct storm *s, char **argv)
{
	return vhca_strcpy(s->url, sizeof(s->url), argv[1]) >= 0 &&
	       vhca_parse_u32(argv[2], 10, AGENTS_MAX, &s->first) == 0 &&
	       vhca_parse_u32(argv[3], 10, AGENTS_MAX, &s->n_agents) == 0 &&
	       vhca_parse_u32(argv[4], 10, VFS_MAX, &s->vfs) == 0 &&
	       vhca_parse_u32(argv[5], 10, UINT16_MAX, &s->hosts) == 0 && s->n_agents > 1 &&
	       s->vfs && s->hosts > 2;
}

/* Thousands of agents would say the same; what matters is counted. */
static void say_nothing(enum vhca_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

int main(int argc, char **argv)
{
	struct storm *s = calloc(1, sizeof(*s));
	char line[64];

	if (!s || argc != 6 || !read_arguments(s, argv)) {
		(void)fprintf(stderr, "usage: storm_agents URL FIRST AGENTS VFS HOSTS\n");
		free(s);
		return 2;
	}
	vhca_log_set_sink(say_nothing);
	must(vhca_loop_new(&s->loop) == 0, "loop");
	the_loop = s->loop;
	for (unsigned int n = 0; n < s->n_agents; n++)
		open_agent(s, n);
	(void)setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	while (fgets(line, sizeof(line), stdin)) {
		must(obey(s, line), "a command that is none");
		(void)fflush(stdout);
	}
	close_agents(s);
	s->loop = vhca_loop_free(s->loop);
	free(s);
	return 0;
}
