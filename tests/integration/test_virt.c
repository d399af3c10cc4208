/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt adapter against a real libvirtd of our own, which serves libvirt's test driver on a
 * socket in a temporary directory: connections, events, XML, loss and return of the daemon. What
 * the test driver lacks (attach, detach) is in tests/unit/agent/libvirt/test_virt_call.c.
 */
#include "agent/libvirt/virt.h"

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/integration/libvirtd.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libvirt/libvirt.h>

#define WAIT_MS	    15000
#define MANY	    24
#define OTHER_XMLNS "urn:vhcad:test"

struct rig {
	struct libvirtd daemon;
	char uri[192];
	struct vhca_loop *loop;
	struct vhca_virt *virt;
	unsigned int n_events;
	struct vhca_virt_event_data events[256];
};

/* ---- fixture ---- */

static void record(void *arg, const struct vhca_virt_event_data *data)
{
	struct rig *rig = arg;

	assert_true(rig->n_events < VHCA_ARRAY_SIZE(rig->events));
	rig->events[rig->n_events++] = *data;
}

static const struct vhca_virt_event_data *find_event(const struct rig *rig, unsigned int from,
						     enum vhca_virt_event event)
{
	for (unsigned int i = from; i < rig->n_events; i++)
		if (rig->events[i].event == event)
			return &rig->events[i];
	return NULL;
}

/* The first such event from number `from` on; fails the test if none comes. */
static const struct vhca_virt_event_data *wait_event_ms(struct rig *rig, unsigned int from,
							enum vhca_virt_event event, uint64_t ms)
{
	uint64_t deadline = vhca_now_ms() + ms;

	while (!find_event(rig, from, event) && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig->loop, 50);
	if (!find_event(rig, from, event))
		fail_msg("event %d did not come", (int)event);
	return find_event(rig, from, event);
}

static const struct vhca_virt_event_data *wait_event(struct rig *rig, unsigned int from,
						     enum vhca_virt_event event)
{
	return wait_event_ms(rig, from, event, WAIT_MS);
}

static void open_virt(struct rig *rig)
{
	assert_int_equal(vhca_virt_new(rig->loop, rig->uri, record, rig, &rig->virt), 0);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	libvirtd_init(&rig->daemon);
	(void)snprintf(rig->uri, sizeof(rig->uri), "test+unix:///default?socket=%s",
		       rig->daemon.socket);
	assert_int_equal(vhca_loop_new(&rig->loop), 0);
	*state = rig;
	return 0;
}

static int setup_connected(void **state)
{
	struct rig *rig;

	(void)setup(state);
	rig = *state;
	libvirtd_start(&rig->daemon);
	open_virt(rig);
	(void)wait_event(rig, 0, VHCA_VIRT_CONNECTED);
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	rig->virt = vhca_virt_free(rig->virt);
	rig->loop = vhca_loop_free(rig->loop);
	libvirtd_done(&rig->daemon);
	free(rig);
	return 0;
}

/* ---- the operator: another client of the same daemon ---- */

static virConnectPtr operator_open(const struct rig *rig)
{
	virConnectPtr conn = virConnectOpen(rig->uri);

	assert_non_null(conn);
	return conn;
}

static virDomainPtr operator_domain(virConnectPtr conn)
{
	virDomainPtr dom = virDomainLookupByName(conn, "test");

	assert_non_null(dom);
	return dom;
}

/* ---- calls ---- */

struct answer {
	unsigned int called;
	int rc;
	unsigned int n;
	struct vhca_dom_info info; /* of one domain */
	struct vhca_error err, request_err;
};

static void on_list(void *arg, int rc, struct vhca_dom_info *const *info, unsigned int n,
		    const struct vhca_error *err)
{
	struct answer *a = arg;

	a->called++;
	a->rc = rc;
	a->n = n;
	a->err = *err;
	if (n > 0)
		a->info = *info[0];
}

static void on_info(void *arg, int rc, const struct vhca_dom_info *info,
		    const struct vhca_error *request_err, const struct vhca_error *err)
{
	struct answer *a = arg;

	a->called++;
	a->rc = rc;
	a->err = *err;
	a->request_err = *request_err;
	assert_int_equal(rc == 0, info != NULL);
	if (info)
		a->info = *info;
}

static void on_done(void *arg, int rc, const struct vhca_error *err)
{
	struct answer *a = arg;

	a->called++;
	a->rc = rc;
	a->err = *err;
}

static void wait_answer_ms(struct rig *rig, const struct answer *a, uint64_t ms)
{
	uint64_t deadline = vhca_now_ms() + ms;

	while (a->called == 0 && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig->loop, 50);
	assert_int_equal(a->called, 1);
}

static void wait_answer(struct rig *rig, const struct answer *a)
{
	wait_answer_ms(rig, a, WAIT_MS);
}

static struct answer *list_now(struct rig *rig, struct answer *a)
{
	*a = (struct answer){0};
	vhca_virt_list(rig->virt, on_list, a);
	assert_int_equal(a->called, 0); /* never from inside */
	wait_answer(rig, a);
	return a;
}

static struct answer *info_now(struct rig *rig, struct vhca_uuid uuid, struct answer *a)
{
	*a = (struct answer){0};
	vhca_virt_info(rig->virt, &uuid, on_info, a);
	wait_answer(rig, a);
	return a;
}

/* ---- cases ---- */

static void lists_active_domains(void **state)
{
	struct rig *rig = *state;
	struct answer a;

	assert_true(vhca_virt_connected(rig->virt));
	list_now(rig, &a);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.info.name, "test");
	assert_true(a.info.id > 0);
	assert_int_equal(a.info.memory.kib, 8388608);
	assert_int_equal(info_now(rig, a.info.uuid, &(struct answer){0})->rc, 0);
}

static void reports_lifecycle(void **state)
{
	struct rig *rig = *state;
	virConnectPtr conn = operator_open(rig);
	virDomainPtr dom = operator_domain(conn);
	const struct vhca_virt_event_data *e;
	struct answer a;

	list_now(rig, &a);
	assert_int_equal(virDomainSuspend(dom), 0);
	e = wait_event(rig, 0, VHCA_VIRT_SUSPENDED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED);
	assert_true(list_now(rig, &a)->info.paused);
	assert_int_equal(virDomainResume(dom), 0);
	e = wait_event(rig, 0, VHCA_VIRT_RESUMED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_RESUMED_UNPAUSED);
	assert_false(list_now(rig, &a)->info.paused);
	assert_int_equal(virDomainDestroy(dom), 0);
	e = wait_event(rig, 0, VHCA_VIRT_STOPPED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_STOPPED_DESTROYED);
	assert_string_equal(e->name, "test");
	assert_true(vhca_uuid_equal(&e->uuid, &a.info.uuid));
	assert_int_equal(virDomainCreate(dom), 0);
	e = wait_event(rig, 0, VHCA_VIRT_STARTED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_STARTED_BOOTED);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void stopped_domain_is_not_active(void **state)
{
	struct rig *rig = *state;
	virConnectPtr conn = operator_open(rig);
	virDomainPtr dom = operator_domain(conn);
	struct vhca_uuid nobody = {{1}};
	struct answer a;

	list_now(rig, &a);
	assert_int_equal(virDomainDestroy(dom), 0);
	info_now(rig, a.info.uuid, &a);
	assert_int_equal(a.rc, -ENOENT);
	assert_string_equal(a.err.code, "domain_gone");
	assert_int_equal(list_now(rig, &a)->n, 0);
	info_now(rig, nobody, &a);
	assert_int_equal(a.rc, -ENOENT);
	assert_string_equal(a.err.code, "domain_gone");
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void set_metadata(virDomainPtr dom, const char *xml, const char *key, const char *uri)
{
	assert_int_equal(virDomainSetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, xml, key, uri,
					      VIR_DOMAIN_AFFECT_LIVE),
			 0);
}

static void reports_our_metadata_only(void **state)
{
	struct rig *rig = *state;
	virConnectPtr conn = operator_open(rig);
	virDomainPtr dom = operator_domain(conn);
	unsigned int n = 0;
	struct answer a;

	list_now(rig, &a);
	set_metadata(dom, "<x/>", "x", OTHER_XMLNS);
	set_metadata(dom, "<infiniband><vf name='ib0' partition='0x8001'/></infiniband>", "vhca",
		     VHCA_DOMAIN_NS);
	(void)wait_event(rig, 0, VHCA_VIRT_METADATA);
	set_metadata(dom, "<infiniband><vf name='ib0'/></infiniband>", "vhca", VHCA_DOMAIN_NS);
	assert_int_equal(virDomainDestroy(dom), 0);
	(void)wait_event(rig, 0, VHCA_VIRT_STOPPED);
	for (unsigned int i = 0; i < rig->n_events; i++)
		n += rig->events[i].event == VHCA_VIRT_METADATA;
	assert_int_equal(n, 2);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void reads_the_request(void **state)
{
	struct rig *rig = *state;
	virConnectPtr conn = operator_open(rig);
	virDomainPtr dom = operator_domain(conn);
	struct answer a;

	set_metadata(dom, "<infiniband><vf name='ib0' partition='0x8001 0xffff'/></infiniband>",
		     "vhca", VHCA_DOMAIN_NS);
	list_now(rig, &a);
	assert_int_equal(a.info.n_requests, 1);
	assert_string_equal(a.info.requests[0].partition, "0x8001 0xffff");
	set_metadata(dom, "<infiniband><vf name='ib0'/></infiniband>", "vhca", VHCA_DOMAIN_NS);
	info_now(rig, a.info.uuid, &a);
	assert_int_equal(a.rc, 0);
	assert_string_equal(a.request_err.code, "bad_vf_request");
	list_now(rig, &a);
	assert_int_equal(a.rc, 0);
	assert_string_equal(a.info.request_error.code, "bad_vf_request");
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

/* libvirtd hands out no string of more than 4 MiB (REMOTE_STRING_MAX,
 * src/remote/remote_protocol.x), and two of less make one domain of more. */
static void grow(virDomainPtr dom, const char *uri)
{
	static const char head[] = "<x>", tail[] = "</x>";
	size_t len = 2500 * 1024;
	VHCA_AUTO_FREE char *xml = malloc(len);

	assert_non_null(xml);
	memset(xml, 'x', len);
	memcpy(xml, head, strlen(head));
	memcpy(xml + len - sizeof(tail), tail, sizeof(tail));
	set_metadata(dom, xml, "x", uri);
}

static void domain_too_large_is_unreadable(void **state)
{
	struct rig *rig = *state;
	virConnectPtr conn = operator_open(rig);
	virDomainPtr dom = operator_domain(conn);
	struct answer a;

	grow(dom, OTHER_XMLNS ":1");
	assert_int_equal(list_now(rig, &a)->info.unreadable.kind, VHCA_ERR_NONE);
	grow(dom, OTHER_XMLNS ":2");
	list_now(rig, &a);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.n, 1);
	assert_non_null(strstr(a.info.unreadable.msg, "Unable to encode message payload"));
	assert_int_equal(info_now(rig, a.info.uuid, &a)->rc, 0);
	assert_string_equal(a.info.name, "test");
	assert_true(a.info.id > 0);
	assert_int_not_equal(a.info.unreadable.kind, VHCA_ERR_NONE);
	assert_true(vhca_virt_connected(rig->virt));
	assert_int_equal(virDomainDestroy(dom), 0);
	assert_int_equal(info_now(rig, a.info.uuid, &a)->rc, -ENOENT);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void attach_reports_what_libvirt_says(void **state)
{
	struct rig *rig = *state;
	struct answer a, done = {0};

	list_now(rig, &a);
	vhca_virt_attach(rig->virt, &a.info.uuid, (struct vhca_bdf){.bus = 1, .fn = 1}, "ib0", NULL,
			 on_done, &done);
	wait_answer(rig, &done);
	assert_int_equal(done.rc, -EOPNOTSUPP);
	assert_string_equal(done.err.code, "libvirt");
	assert_non_null(strstr(done.err.msg, "domain test: attach 0000:01:00.1 as ua-vhca-ib0"));
	done = (struct answer){0};
	vhca_virt_detach(rig->virt, &(struct vhca_uuid){{1}}, "ua-vhca-ib0", on_done, &done);
	wait_answer(rig, &done);
	assert_int_equal(done.rc, -ENOENT);
	assert_string_equal(done.err.code, "domain_gone");
}

/* Calls for many domains at once: each answered once, and the strands are given back. */
static void many_domains_at_once(void **state)
{
	struct rig *rig = *state;
	struct answer *answers = calloc(MANY, sizeof(*answers));

	assert_non_null(answers);
	for (unsigned int round = 0; round < 2; round++) {
		memset(answers, 0, MANY * sizeof(*answers));
		for (unsigned int i = 0; i < MANY; i++)
			vhca_virt_detach(rig->virt, &(struct vhca_uuid){{(uint8_t)(i + 1)}},
					 "ua-vhca-ib0", on_done, &answers[i]);
		for (unsigned int i = 0; i < MANY; i++) {
			wait_answer(rig, &answers[i]);
			assert_int_equal(answers[i].rc, -ENOENT);
		}
	}
	for (unsigned int i = 0; i < 5; i++)
		(void)vhca_loop_once(rig->loop, 20);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(answers[i].called, 1);
	free(answers);
}

static void comes_back_after_daemon_restart(void **state)
{
	struct rig *rig = *state;
	struct answer a;
	virConnectPtr conn;
	virDomainPtr dom;
	unsigned int from;

	libvirtd_kill(&rig->daemon);
	(void)wait_event(rig, 0, VHCA_VIRT_DISCONNECTED);
	assert_false(vhca_virt_connected(rig->virt));
	list_now(rig, &a);
	assert_int_equal(a.rc, -ENOTCONN);
	assert_string_equal(a.err.code, "libvirt_unreachable");
	assert_int_equal(a.err.kind, VHCA_ERR_UNAVAILABLE);
	assert_int_equal(a.n, 0);

	from = rig->n_events;
	libvirtd_start(&rig->daemon);
	(void)wait_event(rig, from, VHCA_VIRT_CONNECTED);
	assert_int_equal(list_now(rig, &a)->n, 1);
	conn = operator_open(rig);
	dom = operator_domain(conn);
	assert_int_equal(virDomainDestroy(dom), 0);
	(void)wait_event(rig, from, VHCA_VIRT_STOPPED);
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
static struct relay relay_start(struct rig *rig)
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
	struct rig *rig = *state;
	struct answer a, done = {0};
	struct relay relay;

	libvirtd_start(&rig->daemon);
	relay = relay_start(rig);
	open_virt(rig);
	(void)wait_event(rig, 0, VHCA_VIRT_CONNECTED);
	list_now(rig, &a);
	(void)close(relay.pipe[1]);
	(void)usleep(100000);
	vhca_virt_attach(rig->virt, &a.info.uuid, (struct vhca_bdf){.bus = 1, .fn = 1}, "ib0", NULL,
			 on_done, &done);
	wait_answer(rig, &done);
	assert_int_equal(waitpid(relay.pid, NULL, 0), relay.pid);
	assert_non_null(strstr(done.err.msg, "End of file while reading data"));
	assert_string_equal(done.err.code, "libvirt_unreachable");
	assert_int_equal(done.err.kind, VHCA_ERR_UNAVAILABLE);
	assert_int_equal(done.rc, -ENOTCONN);
}

/* CONNECTED and DISCONNECTED alternate, however often the daemon goes. */
static void survives_many_restarts(void **state)
{
	struct rig *rig = *state;
	bool connected = false;

	for (unsigned int i = 0; i < 3; i++) {
		unsigned int from = rig->n_events;

		libvirtd_kill(&rig->daemon);
		(void)wait_event(rig, from, VHCA_VIRT_DISCONNECTED);
		libvirtd_start(&rig->daemon);
		(void)wait_event(rig, from, VHCA_VIRT_CONNECTED);
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
	struct rig *rig = *state;
	struct answer a;

	open_virt(rig);
	list_now(rig, &a);
	assert_int_equal(a.rc, -ENOTCONN);
	assert_int_equal(rig->n_events, 0);
	libvirtd_start(&rig->daemon);
	(void)wait_event(rig, 0, VHCA_VIRT_CONNECTED);
	assert_int_equal(list_now(rig, &a)->rc, 0);
}

static void free_before_connected(void **state)
{
	struct rig *rig = *state;

	libvirtd_start(&rig->daemon);
	open_virt(rig);
	rig->virt = vhca_virt_free(rig->virt);
	for (unsigned int i = 0; i < 5; i++)
		(void)vhca_loop_once(rig->loop, 20);
	assert_int_equal(rig->n_events, 0);
}

static void no_event_after_free(void **state)
{
	struct rig *rig = *state;
	virConnectPtr conn = operator_open(rig);
	virDomainPtr dom = operator_domain(conn);
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
	struct rig *rig = *state;
	struct answer a = {0};
	uint64_t start = vhca_now_ms();

	assert_int_equal(kill(rig->daemon.pid, SIGSTOP), 0);
	vhca_virt_list(rig->virt, on_list, &a);
	(void)wait_event_ms(rig, 0, VHCA_VIRT_DISCONNECTED, 30000);
	assert_true(vhca_now_ms() - start > 10000);
	wait_answer(rig, &a);
	assert_int_equal(a.rc, -ENOTCONN);
	assert_true(vhca_loop_max_callback_us(rig->loop) < 50000);
	assert_int_equal(kill(rig->daemon.pid, SIGCONT), 0);
	(void)wait_event(rig, 0, VHCA_VIRT_CONNECTED);
}

/*
 * The last case: its daemon stays stopped until this process is gone, so that the hung call's
 * memory stays in use.
 */
static void free_does_not_wait_for_a_hanging_daemon(void **state)
{
	struct rig *rig = *state;
	static struct answer a, b;
	uint64_t start;

	assert_int_equal(kill(rig->daemon.pid, SIGSTOP), 0);
	vhca_virt_list(rig->virt, on_list, &a);
	(void)vhca_loop_once(rig->loop, 200);
	vhca_virt_list(rig->virt, on_list, &b);
	start = vhca_now_ms();
	rig->virt = vhca_virt_free(rig->virt);
	assert_true(vhca_now_ms() - start < 3500);
	assert_int_equal(a.called, 0); /* it hangs */
	assert_int_equal(b.called, 1); /* it had not begun */
	assert_int_equal(b.rc, -ECANCELED);
	rig->daemon.pid = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_active_domains, setup_connected, teardown),
		cmocka_unit_test_setup_teardown(reports_lifecycle, setup_connected, teardown),
		cmocka_unit_test_setup_teardown(stopped_domain_is_not_active, setup_connected,
						teardown),
		cmocka_unit_test_setup_teardown(reports_our_metadata_only, setup_connected,
						teardown),
		cmocka_unit_test_setup_teardown(reads_the_request, setup_connected, teardown),
		cmocka_unit_test_setup_teardown(domain_too_large_is_unreadable, setup_connected,
						teardown),
		cmocka_unit_test_setup_teardown(attach_reports_what_libvirt_says, setup_connected,
						teardown),
		cmocka_unit_test_setup_teardown(many_domains_at_once, setup_connected, teardown),
		cmocka_unit_test_setup_teardown(comes_back_after_daemon_restart, setup_connected,
						teardown),
		cmocka_unit_test_setup_teardown(daemon_that_goes_during_a_call_is_unreachable,
						setup, teardown),
		cmocka_unit_test_setup_teardown(survives_many_restarts, setup_connected, teardown),
		cmocka_unit_test_setup_teardown(absent_daemon_is_no_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(free_before_connected, setup, teardown),
		cmocka_unit_test_setup_teardown(no_event_after_free, setup_connected, teardown),
		cmocka_unit_test_setup_teardown(hanging_daemon_is_lost_in_the_end, setup_connected,
						teardown),
		cmocka_unit_test_setup_teardown(free_does_not_wait_for_a_hanging_daemon,
						setup_connected, teardown),
	};

	if (access(LIBVIRTD_PATH, X_OK) < 0) {
		(void)printf("1..0 # SKIP no " LIBVIRTD_PATH "\n");
		return 0;
	}
	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
