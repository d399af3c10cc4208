/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The port watch with a verbs of our own: the symbols here take the place of pkey/verbs.c at link
 * time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "pkey/ports.h"
#include "pkey/verbs.h"
#include "tests/sim/kernel/sysfs_tree.h"
#include "tests/unit/unit.h"

#define POLL_MS	   20
#define NEVER_MS   3600000
#define WAIT_MS	   20000
#define QUIET_MS   60
#define PKEYS_DIR  "devices/pci0000:00/0000:03:00.0/infiniband/mlx4_0/ports/"
#define IB_DIR	   "devices/pci0000:00/0000:03:00.0/infiniband"
#define EVENTS_MAX 256

struct queued {
	enum vhca_verbs_event event;
	uint8_t port;
};

struct vhca_verbs {
	int fd;
};

/* The fake device; one at a time. Locked: queries come from the strand. */
static struct {
	pthread_mutex_t lock;
	struct vhca_verbs verbs;
	atomic_int open_result, query_result;
	atomic_uint query_ms; /* how long a query takes */
	atomic_uint opened, closed, queries;
	struct queued queue[EVENTS_MAX];
	unsigned int n_queued, n_taken;
	struct vhca_port_state state[2];
	char opened_name[64];
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

int vhca_verbs_open(const char *ibdev, struct vhca_verbs **ret)
{
	pthread_mutex_lock(&fake.lock);
	snprintf(fake.opened_name, sizeof(fake.opened_name), "%s", ibdev);
	if (fake.open_result == 0) {
		fake.opened++;
		*ret = &fake.verbs;
	}
	pthread_mutex_unlock(&fake.lock);
	return fake.open_result;
}

struct vhca_verbs *vhca_verbs_close(struct vhca_verbs *verbs)
{
	pthread_mutex_lock(&fake.lock);
	fake.closed += verbs != NULL;
	pthread_mutex_unlock(&fake.lock);
	return NULL;
}

uint8_t vhca_verbs_n_ports(const struct vhca_verbs *verbs)
{
	(void)verbs;
	return 2;
}

int vhca_verbs_query(struct vhca_verbs *verbs, uint8_t port, struct vhca_port_state *ret)
{
	int r;

	(void)verbs;
	pthread_mutex_lock(&fake.lock);
	fake.queries++;
	*ret = fake.state[port - 1];
	r = fake.query_result;
	pthread_mutex_unlock(&fake.lock);
	usleep(fake.query_ms * 1000);
	return r;
}

int vhca_verbs_fd(const struct vhca_verbs *verbs)
{
	return verbs->fd;
}

int vhca_verbs_next_event(struct vhca_verbs *verbs, enum vhca_verbs_event *ret, uint8_t *ret_port)
{
	uint64_t n;

	*ret = VHCA_VERBS_NONE;
	pthread_mutex_lock(&fake.lock);
	if (fake.n_taken == fake.n_queued) {
		(void)!read(verbs->fd, &n, sizeof(n));
	} else {
		*ret = fake.queue[fake.n_taken].event;
		*ret_port = fake.queue[fake.n_taken].port;
		fake.n_taken++;
	}
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

static void raise_event(enum vhca_verbs_event event, uint8_t port)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&fake.lock);
	fake.queue[fake.n_queued++] = (struct queued){event, port};
	pthread_mutex_unlock(&fake.lock);
	assert_int_equal(write(fake.verbs.fd, &one, sizeof(one)), sizeof(one));
}

/* ---- fixture ---- */

struct fixture {
	struct sim_tree tree;
	struct vhca_sysfs *sys;
	struct vhca_loop *loop;
	struct vhca_strand *strand;
	struct vhca_ports *ports;
	unsigned int changed[2], pkeys[2], reregister[2], gone;
	bool close_in_callback;
	struct vhca_port_state last[2];
};

static void on_port(void *arg, enum vhca_port_event event, const struct vhca_port_state *state)
{
	struct fixture *f = arg;
	unsigned int *counters[] = {[VHCA_PORT_CHANGED] = f->changed,
				    [VHCA_PORT_PKEYS] = f->pkeys,
				    [VHCA_PORT_REREGISTER] = f->reregister};

	if (event == VHCA_PORT_GONE) {
		assert_null(state);
		f->gone++;
	} else {
		counters[event][state->port - 1]++;
		f->last[state->port - 1] = *state;
	}
	if (f->close_in_callback)
		f->ports = vhca_ports_close(f->ports);
}

static void reset_fake(void)
{
	if (fake.verbs.fd > 0)
		close(fake.verbs.fd);
	fake.verbs.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake.open_result = 0;
	fake.query_result = 0;
	fake.query_ms = 0;
	fake.opened = 0;
	fake.closed = 0;
	fake.queries = 0;
	fake.n_queued = fake.n_taken = 0;
	for (uint8_t i = 0; i < 2; i++)
		fake.state[i] = (struct vhca_port_state){.port = (uint8_t)(i + 1),
							 .state = 4,
							 .phys_state = 5,
							 .is_ib = true,
							 .lid = (uint16_t)(10 + i),
							 .sm_lid = 1,
							 .n_pkeys = 3};
}

static int setup(void **state)
{
	static const struct sim_pf cx3 = {"0000:03:00.0", "mlx4_core", "mlx4_0", 0x1003, 4, 2, 7};
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	reset_fake();
	sim_tree_init(&f.tree);
	sim_add_driver(&f.tree, "mlx4_core");
	sim_add_pf(&f.tree, &cx3);
	for (unsigned int p = 1; p <= 2; p++) {
		for (unsigned int i = 0; i < 3; i++) {
			char path[128];

			snprintf(path, sizeof(path), PKEYS_DIR "%u/pkeys/%u", p, i);
			sim_put(&f.tree, path, "0x%04x", 0x8000u + p * 16 + i);
		}
	}
	assert_int_equal(vhca_sysfs_open(f.tree.root, &f.sys), 0);
	assert_int_equal(vhca_loop_new(&f.loop), 0);
	assert_int_equal(vhca_strand_new(f.loop, "pf", &f.strand), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	vhca_ports_close(f->ports);
	assert_true(vhca_strand_free(f->strand, WAIT_MS));
	vhca_loop_free(f->loop);
	assert_int_equal(fake.opened, fake.closed);
	vhca_sysfs_close(f->sys);
	sim_tree_done(&f->tree);
	return 0;
}

static void open_ports(struct fixture *f, uint32_t poll_ms)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_ports_open(f->loop, f->strand, f->sys, (struct vhca_bdf){.bus = 3},
					 poll_ms, on_port, f, &f->ports, &err),
			 0);
}

/* Runs the loop until *counter has reached n. */
static void wait_for(struct fixture *f, const unsigned int *counter, unsigned int n)
{
	uint64_t end = vhca_now_ms() + WAIT_MS;

	while (*counter < n && vhca_now_ms() < end)
		(void)vhca_loop_once(f->loop, 10);
	assert_int_equal(*counter, n);
}

static void wait_for_queries(struct fixture *f, unsigned int n)
{
	uint64_t end = vhca_now_ms() + WAIT_MS;

	while (fake.queries < n && vhca_now_ms() < end)
		(void)vhca_loop_once(f->loop, 10);
	assert_int_equal(fake.queries, n);
}

static void run_for(struct fixture *f, unsigned int ms)
{
	uint64_t end = vhca_now_ms() + ms;

	while (vhca_now_ms() < end)
		(void)vhca_loop_once(f->loop, 5);
}

static void open_and_settle(struct fixture *f, uint32_t poll_ms)
{
	open_ports(f, poll_ms);
	wait_for(f, &f->changed[1], 1);
	assert_int_equal(f->changed[0], 1);
}

/* ---- tests ---- */

static void first_report_is_complete(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, NEVER_MS);
	assert_string_equal(fake.opened_name, "mlx4_0");
	assert_int_equal(f->last[1].port, 2);
	assert_int_equal(f->last[1].lid, 11);
	assert_int_equal(f->last[1].n_pkeys, 3);
	assert_int_equal(f->last[1].pkeys[0], 0x8020);
	assert_int_equal(f->last[1].pkeys[2], 0x8022);
	assert_int_equal(f->pkeys[0] + f->pkeys[1] + f->reregister[0] + f->gone, 0);
}

static void a_burst_of_events_is_one_query(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, NEVER_MS);
	run_for(f, QUIET_MS);
	fake.queries = 0;
	for (unsigned int i = 0; i < 200; i++)
		raise_event(VHCA_VERBS_PORT, 1);
	wait_for_queries(f, 2); /* one for each port */
	run_for(f, QUIET_MS);
	assert_int_equal(fake.queries, 2);
	assert_int_equal(f->changed[0], 1);
}

static void events_during_a_query_cause_one_more(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, NEVER_MS);
	run_for(f, QUIET_MS);
	fake.queries = 0;
	fake.query_ms = 20;
	raise_event(VHCA_VERBS_PORT, 1);
	run_for(f, 15);
	for (unsigned int i = 0; i < 20; i++)
		raise_event(VHCA_VERBS_PORT, 2);
	wait_for_queries(f, 4);
	run_for(f, QUIET_MS);
	assert_int_equal(fake.queries, 4);
}

static void pkey_and_reregister_events_are_passed_on_for_their_port(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, NEVER_MS);
	raise_event(VHCA_VERBS_PKEYS, 2);
	wait_for(f, &f->pkeys[1], 1);
	raise_event(VHCA_VERBS_REREGISTER, 1);
	wait_for(f, &f->reregister[0], 1);
	raise_event(VHCA_VERBS_OTHER, 1);
	raise_event(VHCA_VERBS_REREGISTER, 9); /* no such port: looked at, not passed on */
	run_for(f, QUIET_MS);
	assert_int_equal(f->pkeys[0], 0);
	assert_int_equal(f->reregister[1], 0);
	assert_int_equal(f->reregister[0], 1);
	assert_int_equal(f->changed[0] + f->changed[1], 2);
}

/* mlx4 and mlx5 never raise SM_CHANGE. */
static void poll_finds_what_no_event_tells(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, POLL_MS);
	pthread_mutex_lock(&fake.lock);
	fake.state[0].sm_lid = 77;
	pthread_mutex_unlock(&fake.lock);
	wait_for(f, &f->changed[0], 2);
	assert_int_equal(f->last[0].sm_lid, 77);
	sim_put(&f->tree, PKEYS_DIR "2/pkeys/1", "0x8001");
	wait_for(f, &f->pkeys[1], 1);
	assert_int_equal(f->last[1].pkeys[1], 0x8001);
	assert_int_equal(f->changed[1], 1);
	assert_int_equal(f->pkeys[0], 0);
}

static void rename_does_not_end_the_watch(void **state)
{
	struct fixture *f = *state;
	char from[256], to[256];

	open_and_settle(f, POLL_MS);
	snprintf(from, sizeof(from), "%s/" IB_DIR "/mlx4_0", f->tree.root);
	snprintf(to, sizeof(to), "%s/" IB_DIR "/ibp3s0", f->tree.root);
	assert_int_equal(rename(from, to), 0);
	sim_put(&f->tree, IB_DIR "/ibp3s0/ports/1/pkeys/2", "0x8055");
	wait_for(f, &f->pkeys[0], 1);
	assert_int_equal(f->last[0].pkeys[2], 0x8055);
	assert_int_equal(f->gone, 0);
}

static void failed_query_keeps_what_was_asked(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, POLL_MS);
	sim_remove(&f->tree, PKEYS_DIR "1/pkeys/2");
	run_for(f, QUIET_MS);
	raise_event(VHCA_VERBS_REREGISTER, 1);
	run_for(f, QUIET_MS);
	assert_int_equal(f->reregister[0], 0);
	sim_put(&f->tree, PKEYS_DIR "1/pkeys/2", "0x8012");
	wait_for(f, &f->reregister[0], 1);
	assert_int_equal(f->gone, 0);
}

static void fatal_event_is_the_last_report(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, POLL_MS);
	raise_event(VHCA_VERBS_FATAL, 0);
	wait_for(f, &f->gone, 1);
	pthread_mutex_lock(&fake.lock);
	fake.state[0].lid = 99;
	pthread_mutex_unlock(&fake.lock);
	run_for(f, QUIET_MS);
	fake.queries = 0;
	raise_event(VHCA_VERBS_PORT, 1);
	vhca_ports_poll(f->ports);
	run_for(f, QUIET_MS);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->changed[0], 1);
	assert_int_equal(fake.queries, 0);
}

static void dead_device_and_failed_open_are_gone(void **state)
{
	struct fixture *f = *state;

	open_and_settle(f, POLL_MS);
	fake.query_result = -EIO;
	wait_for(f, &f->gone, 1);
	f->ports = vhca_ports_close(f->ports);
	fake.query_result = 0;
	fake.open_result = -ENODEV;
	open_ports(f, POLL_MS);
	wait_for(f, &f->gone, 2);
	f->ports = vhca_ports_close(f->ports);
	sim_remove(&f->tree, IB_DIR);
	open_ports(f, POLL_MS);
	wait_for(f, &f->gone, 3);
}

static void owner_may_close_in_its_callback(void **state)
{
	struct fixture *f = *state;

	f->close_in_callback = true;
	open_ports(f, POLL_MS);
	wait_for(f, &f->changed[0], 1);
	run_for(f, QUIET_MS);
	assert_null(f->ports);
	assert_int_equal(f->changed[1], 0); /* nothing after the close */
	assert_int_equal(fake.closed, 1);
}

static void owner_may_close_under_a_running_job(void **state)
{
	struct fixture *f = *state;

	/* each of two ports: long enough that the close below comes first, on a busy machine too */
	fake.query_ms = 300;
	open_ports(f, POLL_MS);
	wait_for_queries(f, 1);
	f->ports = vhca_ports_close(f->ports);
	run_for(f, 900);
	assert_int_equal(f->changed[0] + f->gone, 0);
	assert_int_equal(fake.closed, 1);
	open_ports(f, POLL_MS); /* and before the open has even started */
	f->ports = vhca_ports_close(f->ports);
	run_for(f, QUIET_MS);
	assert_int_equal(fake.closed, fake.opened);
}

static void state_names(void **state)
{
	(void)state;
	assert_string_equal(vhca_port_state_to_string(1), "DOWN");
	assert_string_equal(vhca_port_state_to_string(4), "ACTIVE");
	assert_string_equal(vhca_port_state_to_string(200), "unknown");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(first_report_is_complete),
		T(a_burst_of_events_is_one_query),
		T(events_during_a_query_cause_one_more),
		T(pkey_and_reregister_events_are_passed_on_for_their_port),
		T(poll_finds_what_no_event_tells),
		T(rename_does_not_end_the_watch),
		T(failed_query_keeps_what_was_asked),
		T(fatal_event_is_the_last_report),
		T(dead_device_and_failed_open_are_gone),
		T(owner_may_close_in_its_callback),
		T(owner_may_close_under_a_running_job),
		cmocka_unit_test(state_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
