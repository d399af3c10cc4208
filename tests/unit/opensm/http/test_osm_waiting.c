/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests that are answered later: what is written when, and what they hear when OpenSM ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/http/api_private.h"
#include "tests/unit/opensm/plugin.h"

#define GONE UINT64_C(0x0002c90300000c01)
#define LID  9

/* ---- a mover for which each SMP is acknowledged at once ---- */

static bool has_lid; /* FALSE_GUID */

static int resolve(void *ctx, const struct vhca_osm_lid_want *want,
		   const struct vhca_osm_lids_promised *promised, struct vhca_osm_lid_pair *ret,
		   struct vhca_error *err)
{
	(void)ctx;
	(void)promised;
	(void)err;
	*ret = (struct vhca_osm_lid_pair){
		.guid = {want->vguid, GONE}, .lid = {LID}, .dynamic = want->dynamic};
	return !has_lid;
}

static int plan(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		struct vhca_osm_lid_plan *ret, struct vhca_osm_lid_cost *ret_cost,
		struct vhca_error *err)
{
	(void)ctx;
	(void)pair;
	(void)err;
	*ret = (struct vhca_osm_lid_plan){.mode = mode};
	*ret_cost = (struct vhca_osm_lid_cost){.mode = mode};
	return 0;
}

static int remember(void *ctx, const struct vhca_osm_lid_pair *pairs, size_t n, bool undo)
{
	(void)ctx;
	(void)pairs;
	(void)n;
	has_lid = undo;
	return 0;
}

static size_t together(void *ctx, struct vhca_osm_lid_part *parts, size_t n)
{
	(void)ctx;
	(void)parts;
	(void)n;
	return 0;
}

static int check_done(void *ctx, const struct vhca_osm_lid_pair *pair, struct vhca_error *err)
{
	(void)ctx;
	(void)pair;
	(void)err;
	return 0;
}

static void send_keys(void *ctx)
{
	(void)ctx;
}

static uint64_t now_ms(void *ctx)
{
	(void)ctx;
	return 0;
}

static unsigned int timeout_ms(void *ctx)
{
	(void)ctx;
	return 1000;
}

static const struct vhca_osm_lid_ops lids = {
	.resolve = resolve,
	.plan = plan,
	.remember = remember,
	.send_together = together,
	.missing_together = together,
	.check_done = check_done,
	.send_keys = send_keys,
	.now_ms = now_ms,
	.timeout_ms = timeout_ms,
};

/* ---- what is asked, and found ---- */

static int setup(void **state)
{
	struct plugin *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	plugin_init(p);
	plugin_serve(p, &lids);
	has_lid = false;
	*state = p;
	return 0;
}

/* The socket on which the answer comes. */
static int ask(const struct plugin *p, const char *what)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char text[200];
	int n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", what);

	assert_true(fd >= 0);
	assert_int_equal(vhca_strcpy(at.sun_path, sizeof(at.sun_path), p->socket), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(fd, text, (size_t)n, 0), n);
	return fd;
}

static bool is_in_file(const struct plugin *p, const char *text)
{
	VHCA_AUTO_FREE char *file = NULL;
	char path[TREE_PATH_MAX];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/bindings", p->conf.state_dir);
	assert_int_equal(vhca_read_file(path, 1 << 20, &file, &len), 0);
	return strstr(file, text) != NULL;
}

static struct {
	unsigned int ended, gave_up;
} told;

static void on_log(enum vhca_log_level level, const char *msg)
{
	(void)level;
	if (strncmp(msg, "audit: ", 7) != 0)
		return;
	told.ended += strstr(msg, ": 503 ending") != NULL;
	told.gave_up += strstr(msg, ": 499") != NULL;
}

static int teardown(void **state)
{
	struct plugin *p = *state;

	plugin_done(p);
	free(p);
	return 0;
}

/* A disk that hangs would make late what else is under way. */
static void no_file_is_written_in_the_movers_loop(void **state)
{
	struct plugin *p = *state;
	VHCA_AUTO_CLOSE int fd = -1;
	char path[64], answer[200] = "";

	p->subnet.n_ports = 3;
	assert_string_equal(plugin_put(p, 4, FALSE_PORT(2), 0x8001), "");
	plugin_commit(p);
	p->subnet.n_ports = 2;
	has_lid = true;
	(void)snprintf(path, sizeof(path), "DELETE /v1/ports/0x%016llx",
		       (unsigned long long)FALSE_PORT(2));
	fd = ask(p, path);
	while (!vhca_osm_mover_has_queued(p->mover, FALSE_GUID))
		vhca_osm_api_run(p->api);
	for (uint64_t now = 0; has_lid || now < 3; now++)
		vhca_osm_mover_run(p->mover, now);
	assert_true(is_in_file(p, "\nb 0x02c9ab0000000001 4 "));
	while (recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT) < 0)
		vhca_osm_api_run(p->api);
	assert_true(is_in_file(p, "\nt 0x02c9ab0000000001 4 "));
	assert_non_null(strstr(answer, "HTTP/1.1 200 "));
}

/* Not as if their senders had gone: they ask again. */
static void who_waits_hears_that_opensm_ends(void **state)
{
	struct plugin *p = *state;
	VHCA_AUTO_CLOSE int first = ask(p, "DELETE /v1/pins/0x0002c90300000a01");
	VHCA_AUTO_CLOSE int second = ask(p, "POST /v1/lids/pause");

	assert_true(first >= 0 && second >= 0);
	p->subnet.busy = true; /* OpenSM computes ways */
	while (p->api->deferred.n < 2)
		vhca_osm_api_run(p->api);
	vhca_log_set_level(VHCA_LOG_NOTICE);
	vhca_log_set_sink(on_log);
	p->mover = vhca_osm_mover_free(p->mover);
	p->api = vhca_osm_api_free(p->api);
	vhca_log_set_sink(NULL);
	vhca_osm_gate_done(&p->gate);
	assert_int_equal(told.ended, 2);
	assert_int_equal(told.gave_up, 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(no_file_is_written_in_the_movers_loop),
		CASE(who_waits_hears_that_opensm_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
