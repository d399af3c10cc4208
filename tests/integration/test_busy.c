/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The whole agent on a simulated /sys while the kernel does not come back: its API goes on
 * answering, and says what hangs.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/http/client.h"
#include "common/sysfs/sysfs.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define PF     "bus/pci/devices/0000:01:00.0"
#define WAIT_S 60
#define CALLS  100

struct fixture {
	struct sysfs_fixture base;
	char dir[64];
	pthread_t thread;
	bool runs;
};

static const struct sim_pf cx5 = {"0000:01:00.0", "mlx5_core", "ibp1s0", 0x1017, 8, 1, 1, 0};
static const struct sim_pf cx6 = {"0000:41:00.0", "mlx5_core", "ibp65s0", 0x101b, 8, 1, 2, 0};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	if (!sysfs_fixture_begin(&f.base))
		return 0;
	vhca_log_set_level(VHCA_LOG_ERROR);
	(void)snprintf(f.dir, sizeof(f.dir), "/tmp/vhca-busy-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	sysfs_sim_add_mlx5(f.base.sim, &cx5);
	return 0;
}

static void hold_all(struct fixture *f, bool held)
{
	for (int group = 0; group < 64; group++) /* whichever they are in */
		sysfs_sim_hold_group(f->base.sim, group, held);
}

static void stop_agent(struct fixture *f)
{
	if (!f->runs)
		return;
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(pthread_join(f->thread, NULL), 0);
	f->runs = false;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct sim_tree scratch = {0};

	if (!f->base.sim)
		return 0;
	sysfs_sim_release(f->base.sim);
	hold_all(f, false);
	stop_agent(f);
	(void)sysfs_fixture_teardown(state);
	(void)snprintf(scratch.root, sizeof(scratch.root), "%s", f->dir);
	sim_tree_done(&scratch);
	return 0;
}

/* ---- the agent ---- */

static void configure(struct fixture *f, const char *vfs)
{
	char path[96], text[512];
	int n = snprintf(text, sizeof(text),
			 "[agent]\nstate_dir = %s/state\nrun_dir = %s/run\nnode_name = a\n"
			 "log_level = error\n"
			 "[libvirt]\nuri = test:///default\n[sm]\npoll = 100ms\n[hca "
			 "default]\nmanage = yes\nvfs = %s\n",
			 f->dir, f->dir, vfs);

	(void)snprintf(path, sizeof(path), "%s/vhcad.conf", f->dir);
	assert_int_equal(vhca_write_file_atomic(path, text, (size_t)n, 0600), 0);
}

static void *run_agent(void *arg)
{
	struct fixture *f = arg;
	char path[96];
	struct vhca_agent_args args = {.conf_path = path,
				       .sysfs_root = sysfs_sim_root(f->base.sim),
				       .dev_root = sysfs_sim_dev(f->base.sim)};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_agent *agent = NULL;

	(void)snprintf(path, sizeof(path), "%s/vhcad.conf", f->dir);
	if (vhca_agent_new(&args, &agent, &err) < 0) {
		(void)fprintf(stderr, "# %s\n", err.msg);
		abort();
	}
	(void)vhca_agent_run(agent);
	vhca_agent_free(agent);
	return NULL;
}

static void start_agent(struct fixture *f, const char *vfs)
{
	configure(f, vfs);
	assert_int_equal(pthread_create(&f->thread, NULL, run_agent, f), 0);
	f->runs = true;
}

/* The document, or NULL; caller puts it. */
static struct json_object *get(struct fixture *f, const char *path)
{
	VHCA_CLEANUP(vhca_http_result_done) struct vhca_http_result res = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	char url[128], unix_socket[96];
	struct vhca_http_call_args args = {.method = "GET", .url = url, .unix_socket = unix_socket};

	(void)snprintf(url, sizeof(url), "http://localhost%s", path);
	(void)snprintf(unix_socket, sizeof(unix_socket), "%s/run/vhcad.sock", f->dir);
	if (vhca_http_call(&args, &res, &err) < 0)
		return NULL;
	return vhca_steal_ptr(&res.body);
}

static struct json_object *member(struct json_object *doc, const char *key)
{
	struct json_object *found = NULL;

	if (json_object_is_type(doc, json_type_object))
		(void)json_object_object_get_ex(doc, key, &found);
	return found;
}

/* HCA i as the API shows it satisfies cond(). */
static bool hca_is(struct fixture *f, unsigned int i, bool (*cond)(struct json_object *hca))
{
	struct json_object *doc = get(f, "/v1/hcas"), *list = member(doc, "hcas");
	bool is = list && json_object_array_length(list) > i &&
		  cond(json_object_array_get_idx(list, i));

	(void)json_object_put(doc);
	return is;
}

static void wait_until(struct fixture *f, unsigned int i, bool (*cond)(struct json_object *hca),
		       const char *what)
{
	uint64_t deadline = vhca_now_ms() + WAIT_S * 1000;

	while (!hca_is(f, i, cond)) {
		if (vhca_now_ms() > deadline)
			fail_msg("%s", what);
		usleep(10000);
	}
}

/* The same; a reload makes the agent look at the host again. */
static void nudge_until(struct fixture *f, unsigned int i, bool (*cond)(struct json_object *hca),
			const char *what)
{
	uint64_t deadline = vhca_now_ms() + WAIT_S * 1000;

	do {
		if (vhca_now_ms() > deadline)
			fail_msg("%s", what);
		assert_int_equal(kill(getpid(), SIGHUP), 0);
		usleep(100000);
	} while (!hca_is(f, i, cond));
}

static bool is_there(struct json_object *hca)
{
	return json_object_get_boolean(member(hca, "present"));
}

static bool is_busy(struct json_object *hca)
{
	return member(hca, "busy_since_ms") != NULL;
}

static bool is_idle_with_four(struct json_object *hca)
{
	return !is_busy(hca) && json_object_get_int(member(hca, "num_vfs")) == 4 &&
	       !member(hca, "problem");
}

static bool says_in_use(struct json_object *hca)
{
	const char *problem = json_object_get_string(member(hca, "problem"));

	return problem && strstr(problem, "in use");
}

static bool has_a_vf_less(struct json_object *hca)
{
	return json_object_get_int(member(hca, "num_vfs")) == 1;
}

static bool has_two_vfs(struct json_object *hca)
{
	return json_object_get_int(member(hca, "num_vfs")) == 2;
}

static bool has_no_vf(struct json_object *hca)
{
	return json_object_get_int(member(hca, "num_vfs")) == 0;
}

/*
 * Every answer while it hangs is proof; the fastest one, which a loaded machine does not slow down,
 * shows that no answer is slow by nature.
 */
static void answers_at_once(struct fixture *f)
{
	static const char *const paths[] = {"/v1/hcas", "/v1/vfs", "/v1/node",
					    "/v1/vfs/0000:01:00.1/explain", "/healthz"};
	uint64_t best = UINT64_MAX, worst = 0;

	for (unsigned int i = 0; i < CALLS; i++) {
		uint64_t before = vhca_now_ms();
		struct json_object *doc = get(f, paths[i % VHCA_ARRAY_SIZE(paths)]);
		uint64_t took = vhca_now_ms() - before;

		if (!doc && i % VHCA_ARRAY_SIZE(paths) != 3) /* that VF may not exist */
			fail_msg("%s: no answer", paths[i % VHCA_ARRAY_SIZE(paths)]);
		(void)json_object_put(doc);
		best = took < best ? took : best;
		worst = took > worst ? took : worst;
	}
	print_message("# %d answers: fastest %llu ms, slowest %llu ms\n", CALLS,
		      (unsigned long long)best, (unsigned long long)worst);
	assert_true(best < 10);
}

static int blocking_calls(struct fixture *f)
{
	struct json_object *doc = get(f, "/v1/node");
	int n = json_object_get_int(member(member(doc, "loop"), "blocking_calls"));

	(void)json_object_put(doc);
	return n;
}

/* ---- the kernel ---- */

static int put(struct fixture *f, const char *attr, const char *text)
{
	struct vhca_sysfs_dir *dir = NULL;
	int r = vhca_sysfs_opendir(f->base.sys, PF, &dir);

	if (r == 0)
		r = vhca_sysfs_write(dir, attr, text);
	vhca_sysfs_closedir(dir);
	return r;
}

static void make_vfs(struct fixture *f, const char *n)
{
	assert_int_equal(put(f, "sriov_drivers_autoprobe", "0"), 0);
	assert_int_equal(put(f, "sriov_numvfs", n), 0);
}

static void *take_away(void *arg)
{
	(void)put(arg, "sriov_numvfs", "0");
	return NULL;
}

/* The agent has put the first n VFs on vfio-pci. */
static void wait_bound(struct fixture *f, unsigned int n)
{
	uint64_t deadline = vhca_now_ms() + WAIT_S * 1000;
	char target[SIM_PATH_MAX], path[64];

	for (unsigned int i = 1; i <= n; i++) {
		(void)snprintf(path, sizeof(path), SIM_PCI "/0000:01:00.%u/driver", i);
		while (!sim_readlink(sysfs_sim_tree(f->base.sim), path, target, sizeof(target)) ||
		       !strstr(target, "vfio-pci")) {
			if (vhca_now_ms() > deadline)
				fail_msg("VF %u is not bound", i);
			usleep(10000);
		}
	}
}

/* ---- the tests ---- */

static void own_write_that_hangs(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault hang = {.pattern = "*/sriov_numvfs", .nth = 1, .hang = true};

	sysfs_sim_inject(f->base.sim, &hang);
	start_agent(f, "4");
	wait_until(f, 0, is_busy, "the adapter is not shown as busy");
	answers_at_once(f);
	assert_true(hca_is(f, 0, is_busy));
	assert_int_equal(blocking_calls(f), 0);
	sysfs_sim_release(f->base.sim);
	wait_until(f, 0, is_idle_with_four, "four VFs, and idle");
}

/*
 * A guest has VF 0, and somebody else takes the VFs away: the kernel waits with the PF's lock held.
 * The inventory goes on, so a second adapter is seen.
 */
static void foreign_write_that_hangs(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	pthread_t thread;

	make_vfs(f, "2");
	start_agent(f, "keep");
	wait_until(f, 0, is_there, "the adapter");
	wait_bound(f, 2);
	hold_all(f, true);
	assert_int_equal(pthread_create(&thread, NULL, take_away, f), 0);
	sysfs_sim_add_mlx5(f->base.sim, &cx6);
	nudge_until(f, 0, has_a_vf_less, "the VF that is being taken away is still shown");
	wait_until(f, 1, is_there, "the second adapter");
	answers_at_once(f);
	assert_int_equal(blocking_calls(f), 0);
	hold_all(f, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/*
 * The configuration wants another number: VFs in use stay, and nothing is written; when nobody has
 * one, they are replaced.
 */
static void number_of_vfs_is_changed_when_none_is_in_use(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	char line[256];

	make_vfs(f, "2");
	start_agent(f, "keep");
	wait_bound(f, 2);
	hold_all(f, true);
	sysfs_sim_clear_log(f->base.sim);
	configure(f, "4");
	nudge_until(f, 0, says_in_use, "VFs in use are not found to be so");
	for (size_t i = 0; sysfs_sim_log(f->base.sim, i, line, sizeof(line)); i++)
		assert_null(strstr(line, "sriov_numvfs"));
	hold_all(f, false);
	nudge_until(f, 0, is_idle_with_four, "two VFs are not replaced by four");
	assert_int_equal(blocking_calls(f), 0);
}

/* No event comes here at all: neither for an adapter, nor for VFs that somebody takes away. */
static void what_no_event_tells_is_seen(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	make_vfs(f, "2");
	start_agent(f, "keep");
	wait_bound(f, 2);
	sysfs_sim_add_mlx5(f->base.sim, &cx6);
	assert_int_equal(put(f, "sriov_numvfs", "0"), 0);
	wait_until(f, 1, is_there, "the second adapter");
	wait_until(f, 0, has_no_vf, "the VFs are gone");
}

static bool holds(struct fixture *f, const char *name, const char *want)
{
	VHCA_AUTO_FREE char *text = NULL;
	char path[96];
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return vhca_read_file(path, 4096, &text, &len) == 0 && !strcmp(text, want);
}

/* The hook looks into the second one when a boot has emptied /run. */
static void list_of_vfs_outlives_a_boot(void **state)
{
	static const char want[] = "0000:01:00.1\n0000:01:00.2\n";
	struct fixture *f = sysfs_fixture_ready(state);
	uint64_t deadline = vhca_now_ms() + WAIT_S * 1000;

	make_vfs(f, "2");
	start_agent(f, "keep");
	while (!holds(f, "run/vfs", want) || !holds(f, "state/vfs", want)) {
		if (vhca_now_ms() > deadline)
			fail_msg("the list of VFs is not in both directories");
		usleep(10000);
	}
}

static bool says_no_infiniband(struct json_object *hca)
{
	const char *problem = json_object_get_string(member(hca, "problem"));

	return !json_object_get_boolean(member(hca, "managed")) && problem &&
	       strstr(problem, "none of its ports is InfiniBand");
}

/* VFs of an Ethernet adapter may be containers' or a virtual switch's: they stay as they are. */
static void ethernet_adapter_is_left_alone(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	make_vfs(f, "2");
	sim_put(sysfs_sim_tree(f->base.sim), PF "/infiniband/ibp1s0/ports/1/link_layer",
		"Ethernet");
	sysfs_sim_clear_log(f->base.sim);
	start_agent(f, "4");
	wait_until(f, 0, says_no_infiniband, "an Ethernet adapter is not said to be none of ours");
	usleep(300000); /* three polls */
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
}

static bool says_left_out(struct json_object *hca)
{
	const char *problem = json_object_get_string(member(hca, "problem"));

	return problem && strstr(problem, "they stay: 0000:01:00.1 is left out (exclude)");
}

/* Another number of VFs would take away one that is not vhcad's, too. */
static void vf_that_is_left_out_is_not_taken_away(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	make_vfs(f, "2");
	start_agent(f, "4\nexclude = 0000:01:00.1");
	nudge_until(f, 0, says_left_out, "a VF that is left out does not keep the VFs");
	assert_true(hca_is(f, 0, has_two_vfs));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(own_write_that_hangs),
		T(foreign_write_that_hangs),
		T(number_of_vfs_is_changed_when_none_is_in_use),
		T(what_no_event_tells_is_seen),
		T(list_of_vfs_outlives_a_boot),
		T(ethernet_adapter_is_left_alone),
		T(vf_that_is_left_out_is_not_taken_away),
	};

	if (vhca_agent_block_signals() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
