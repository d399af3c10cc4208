/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The production libvirt room and a daemon that goes, comes back, hangs, or never was. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libvirt/libvirt.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/integration/virt_rig.h"
#include "tests/unit/unit.h"

/* ---- cases ---- */

static void comes_back_after_daemon_restart(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer a;
	virConnectPtr conn;
	virDomainPtr dom;
	unsigned int from;

	libvirtd_kill(&rig->daemon);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_DISCONNECTED);
	assert_false(vhca_virt_connected(rig->virt));
	virt_rig_list(rig, &a);
	assert_int_equal(a.rc, -ENOTCONN);
	assert_string_equal(a.err.code, "libvirt_unreachable");
	assert_int_equal(a.err.kind, VHCA_ERR_UNAVAILABLE);
	assert_int_equal(a.n, 0);

	from = rig->n_events;
	libvirtd_start(&rig->daemon);
	(void)virt_rig_wait_event(rig, from, VHCA_VIRT_CONNECTED);
	assert_int_equal(virt_rig_list(rig, &a)->n, 1);
	conn = virt_rig_operator(rig);
	dom = virt_rig_domain(conn);
	assert_int_equal(virDomainDestroy(dom), 0);
	(void)virt_rig_wait_event(rig, from, VHCA_VIRT_STOPPED);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

/* ---- a relay that ends as a daemon does which has taken a call and not answered it ---- */

#define RELAYED 8 /* connections at most */

/* It ends with the next bytes of a client once this pipe has been closed. No signal: a sanitizer
 * for threads keeps those from a child. */
struct relay {
	pid_t pid;
	int pipe[2];
};

static int unix_socket(const char *path, struct sockaddr_un *ret)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	assert_int_equal(vhca_strcpy(ret->sun_path, sizeof(ret->sun_path), path), 0);
	return fd;
}

static int relay_listen(const char *path)
{
	struct sockaddr_un addr;
	int fd = unix_socket(path, &addr);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, RELAYED), 0);
	return fd;
}

/* The client's end and the daemon's, next to each other. */
static void relay_accept(int listener, const char *target, struct pollfd *pair)
{
	struct sockaddr_un addr;

	pair[0] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
	pair[1] = (struct pollfd){.fd = unix_socket(target, &addr), .events = POLLIN};
	if (connect(pair[1].fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		_exit(1);
}

static void relay_bytes(const struct pollfd *from, const struct pollfd *to, bool is_last)
{
	char buf[65536];
	ssize_t n = read(from->fd, buf, sizeof(buf));

	if (n <= 0 || is_last)
		_exit(0); /* what was taken in is not answered; nothing is left unread */
	for (ssize_t at = 0, sent; at < n; at += sent) {
		sent = write(to->fd, buf + at, (size_t)(n - at));
		if (sent < 0)
			_exit(1);
	}
}

static _Noreturn void relay_run(int listener, int end, const char *target)
{
	struct pollfd fds[2 + 2 * RELAYED] = {{.fd = listener, .events = POLLIN}, {.fd = end}};
	unsigned int n = 2;
	bool ends = false;

	for (;;) {
		(void)poll(fds, n, -1);
		if (fds[1].revents) {
			ends = true;
			fds[1] = (struct pollfd){.fd = -1};
		}
		for (unsigned int i = 2; i < n; i++)
			if (fds[i].revents)
				relay_bytes(&fds[i], &fds[i ^ 1], ends && i % 2 == 0);
		if (fds[0].revents && n < VHCA_ARRAY_SIZE(fds)) {
			relay_accept(listener, target, &fds[n]);
			n += 2;
		}
	}
}

/* The rig's clients go through it from now on. */
static struct relay relay_start(struct virt_rig *rig)
{
	char path[sizeof(rig->daemon.dir) + 8];
	struct relay relay;
	int listener;

	(void)snprintf(path, sizeof(path), "%s/relay", rig->daemon.dir);
	(void)snprintf(rig->uri, sizeof(rig->uri), "test+unix:///default?socket=%s", path);
	listener = relay_listen(path);
	assert_int_equal(pipe2(relay.pipe, O_CLOEXEC), 0);
	relay.pid = fork();
	assert_true(relay.pid >= 0);
	if (relay.pid == 0) {
		(void)close(relay.pipe[1]);
		relay_run(listener, relay.pipe[0], rig->daemon.socket);
	}
	(void)close(listener);
	(void)close(relay.pipe[0]);
	return relay;
}

/* A daemon that is restarted says nothing about the device: whether the guest has it shows
 * later. */
static void daemon_that_goes_during_a_call_is_unreachable(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer a, done = {0};
	struct relay relay;

	libvirtd_start(&rig->daemon);
	relay = relay_start(rig);
	virt_rig_open(rig);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_CONNECTED);
	virt_rig_list(rig, &a);
	(void)close(relay.pipe[1]);
	(void)usleep(100000);
	vhca_virt_attach(rig->virt, &a.info.uuid, (struct vhca_bdf){.bus = 1, .fn = 1}, "ib0", NULL,
			 virt_on_done, &done);
	virt_rig_wait_answer(rig, &done);
	assert_int_equal(waitpid(relay.pid, NULL, 0), relay.pid);
	assert_non_null(strstr(done.err.msg, "End of file while reading data"));
	assert_string_equal(done.err.code, "libvirt_unreachable");
	assert_int_equal(done.err.kind, VHCA_ERR_UNAVAILABLE);
	assert_int_equal(done.rc, -ENOTCONN);
}

/* CONNECTED and DISCONNECTED alternate, however often the daemon goes. */
static void survives_many_restarts(void **state)
{
	struct virt_rig *rig = *state;
	bool connected = false;

	for (unsigned int i = 0; i < 3; i++) {
		unsigned int from = rig->n_events;

		libvirtd_kill(&rig->daemon);
		(void)virt_rig_wait_event(rig, from, VHCA_VIRT_DISCONNECTED);
		libvirtd_start(&rig->daemon);
		(void)virt_rig_wait_event(rig, from, VHCA_VIRT_CONNECTED);
	}
	for (unsigned int i = 0; i < rig->n_events; i++) {
		bool up = rig->events[i].event == VHCA_VIRT_CONNECTED;

		assert_true(up || rig->events[i].event == VHCA_VIRT_DISCONNECTED);
		assert_int_not_equal(up, connected);
		connected = up;
	}
}

static void absent_daemon_is_no_failure(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer a;

	virt_rig_open(rig);
	virt_rig_list(rig, &a);
	assert_int_equal(a.rc, -ENOTCONN);
	assert_int_equal(rig->n_events, 0);
	libvirtd_start(&rig->daemon);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_CONNECTED);
	assert_int_equal(virt_rig_list(rig, &a)->rc, 0);
}

static void free_before_connected(void **state)
{
	struct virt_rig *rig = *state;

	libvirtd_start(&rig->daemon);
	virt_rig_open(rig);
	rig->virt = vhca_virt_free(rig->virt);
	for (unsigned int i = 0; i < 5; i++)
		(void)vhca_loop_once(rig->loop, 20);
	assert_int_equal(rig->n_events, 0);
}

static void no_event_after_free(void **state)
{
	struct virt_rig *rig = *state;
	virConnectPtr conn = virt_rig_operator(rig);
	virDomainPtr dom = virt_rig_domain(conn);
	unsigned int n = rig->n_events;

	/*
	 * The event is on its way when the owner goes: received by libvirt's thread, not yet
	 * delivered.
	 */
	assert_int_equal(virDomainDestroy(dom), 0);
	(void)usleep(200000);
	rig->virt = vhca_virt_free(rig->virt);
	for (unsigned int i = 0; i < 5; i++)
		(void)vhca_loop_once(rig->loop, 20);
	assert_int_equal(rig->n_events, n);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

/* Keepalives find a daemon that hangs; a call that waits for it ends then, not before. */
static void hanging_daemon_is_lost_in_the_end(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer a = {0};
	uint64_t start = vhca_now_ms();

	assert_int_equal(kill(rig->daemon.pid, SIGSTOP), 0);
	vhca_virt_list(rig->virt, virt_on_list, &a);
	(void)virt_rig_wait_event_ms(rig, 0, VHCA_VIRT_DISCONNECTED, 60000);
	assert_true(vhca_now_ms() - start > 10000);
	virt_rig_wait_answer(rig, &a);
	assert_int_equal(a.rc, -ENOTCONN);
	assert_true(vhca_loop_max_callback_us(rig->loop) < 50000);
	assert_int_equal(kill(rig->daemon.pid, SIGCONT), 0);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_CONNECTED);
}

/*
 * The last case: its daemon stays stopped until this process is gone, so that the hung call's
 * memory stays in use.
 */
static void free_does_not_wait_for_a_hanging_daemon(void **state)
{
	struct virt_rig *rig = *state;
	static struct virt_answer a, b;
	uint64_t start;

	assert_int_equal(kill(rig->daemon.pid, SIGSTOP), 0);
	vhca_virt_list(rig->virt, virt_on_list, &a);
	(void)usleep(1000000); /* it has begun */
	vhca_virt_list(rig->virt, virt_on_list, &b);
	start = vhca_now_ms();
	rig->virt = vhca_virt_free(rig->virt);
	assert_true(vhca_now_ms() - start < 9000); /* the daemon is taken for lost later */
	assert_int_equal(a.called, 0);		   /* it hangs */
	assert_int_equal(b.called, 1);		   /* it had not begun */
	assert_int_equal(b.rc, -ECANCELED);
	rig->daemon.pid = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(comes_back_after_daemon_restart,
						virt_rig_setup_connected, virt_rig_teardown),
		cmocka_unit_test_setup_teardown(daemon_that_goes_during_a_call_is_unreachable,
						virt_rig_setup, virt_rig_teardown),
		cmocka_unit_test_setup_teardown(survives_many_restarts, virt_rig_setup_connected,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(absent_daemon_is_no_failure, virt_rig_setup,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(free_before_connected, virt_rig_setup,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(no_event_after_free, virt_rig_setup_connected,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(hanging_daemon_is_lost_in_the_end,
						virt_rig_setup_connected, virt_rig_teardown),
		cmocka_unit_test_setup_teardown(free_does_not_wait_for_a_hanging_daemon,
						virt_rig_setup_connected, virt_rig_teardown),
	};

	if (access(LIBVIRTD_PATH, X_OK) < 0) {
		(void)printf("1..0 # SKIP no " LIBVIRTD_PATH "\n");
		return 0;
	}
	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
