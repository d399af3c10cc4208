// SPDX-License-Identifier: LGPL-2.1-or-later
/* What systemd hears of a reload: after RELOADING it waits for READY. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/base/file.h"
#include "common/loop/strand.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#define WAIT_S 60

static struct {
	struct tree tree;
	int fd; /* systemd's end */
	pthread_t thread;
	struct vhca_strand *conf; /* reads the configuration */
	atomic_bool full;	  /* it takes no more jobs */
	atomic_uint refused;
	atomic_bool held; /* its jobs wait */
	void (*work)(void *arg);
} t;

static void held_work(void *arg)
{
	while (t.held)
		(void)usleep(1000);
	t.work(arg);
}

int __real_vhca_strand_new(struct vhca_loop *loop, const char *name, struct vhca_strand **ret);
int __wrap_vhca_strand_new(struct vhca_loop *loop, const char *name, struct vhca_strand **ret);
int __wrap_vhca_strand_new(struct vhca_loop *loop, const char *name, struct vhca_strand **ret)
{
	int r = __real_vhca_strand_new(loop, name, ret);

	if (!strcmp(name, "conf"))
		t.conf = *ret;
	return r;
}

int __real_vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg);
int __wrap_vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg);
int __wrap_vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg)
{
	if (strand != t.conf || (!t.full && !t.held))
		return __real_vhca_strand_submit(strand, work, done, arg);
	if (t.held) {
		t.work = work;
		return __real_vhca_strand_submit(strand, held_work, done, arg);
	}
	t.refused++;
	return -EAGAIN;
}

static void *run_agent(void *arg)
{
	char conf[TREE_PATH_MAX];
	struct vhca_agent_args args = {.conf_path = tree_path(&t.tree, "vhcad.conf", conf),
				       .sysfs_root = t.tree.root,
				       .dev_root = t.tree.root};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_agent *agent = NULL;

	if (vhca_agent_new(&args, &agent, &err) < 0) {
		(void)fprintf(stderr, "# %s\n", err.msg);
		abort();
	}
	(void)vhca_agent_run(agent);
	vhca_agent_free(agent);
	return arg;
}

static void listen_as_systemd(void)
{
	const struct timeval patience = {.tv_sec = WAIT_S};
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", t.tree.root);
	t.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(t.fd >= 0);
	assert_int_equal(bind(t.fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(setsockopt(t.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", at.sun_path, 1), 0);
}

static int setup(void **state)
{
	char text[512];

	(void)state;
	memset(&t, 0, sizeof(t));
	tree_init(&t.tree);
	tree_mkdir(&t.tree, "bus/pci/devices");
	listen_as_systemd();
	(void)snprintf(text, sizeof(text),
		       "[agent]\nstate_dir = %s/state\nrun_dir = %s/run\nnode_name = a\n"
		       "log_level = error\n[libvirt]\nuri = test:///default\n",
		       t.tree.root, t.tree.root);
	tree_put(&t.tree, "vhcad.conf", text);
	return pthread_create(&t.thread, NULL, run_agent, NULL);
}

static int teardown(void **state)
{
	(void)state;
	(void)close(t.fd);
	tree_done(&t.tree);
	return 0;
}

/* The next word to systemd; cut to its first line. */
static const char *hear(char word[static 64])
{
	ssize_t n = recv(t.fd, word, 63, 0);

	assert_true(n > 0);
	word[n] = '\0';
	word[strcspn(word, "\n")] = '\0';
	return word;
}

static void stop(void)
{
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(pthread_join(t.thread, NULL), 0);
}

static void reload_is_told_and_over(void **state)
{
	char word[64];

	(void)state;
	assert_string_equal(hear(word), "READY=1");
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	assert_string_equal(hear(word), "RELOADING=1");
	assert_string_equal(hear(word), "READY=1");
	stop();
	assert_string_equal(hear(word), "STOPPING=1");
}

static void reload_that_cannot_begin_is_over_too(void **state)
{
	uint64_t end = vhca_now_ms() + WAIT_S * 1000;
	char word[64], last[64];

	(void)state;
	assert_string_equal(hear(last), "READY=1");
	t.full = true;
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	while (!t.refused) {
		assert_true(vhca_now_ms() < end);
		(void)usleep(1000);
	}
	stop();
	while (strcmp(hear(word), "STOPPING=1") != 0)
		(void)snprintf(last, sizeof(last), "%s", word);
	assert_string_equal(last, "READY=1");
}

/* Two reloads, of which one is being read and one waits. */
static void stop_during_a_reload(void **state)
{
	char word[64];

	(void)state;
	assert_string_equal(hear(word), "READY=1");
	t.held = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kill(getpid(), SIGHUP), 0);
		assert_string_equal(hear(word), "RELOADING=1");
	}
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_string_equal(hear(word), "STOPPING=1");
	t.held = false;
	assert_int_equal(pthread_join(t.thread, NULL), 0);
	assert_int_equal(recv(t.fd, word, sizeof(word), MSG_DONTWAIT), -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reload_is_told_and_over),
		TEST(reload_that_cannot_begin_is_over_too),
		TEST(stop_during_a_reload),
	};

	if (vhca_agent_block_signals() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
