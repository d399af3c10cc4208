// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A report at the plugin while many ask for the whole table: what a list costs, and who waits for
 * it; and who waits while OpenSM computes ways.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/http/api.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

#define ROWS	 8192
#define TEXT_MAX (8 * 1024 * 1024)
#define ASKING	 150
/* Milliseconds, with the sanitizers and a busy machine; it was 15 s in a release build. */
#define REPORT_MS 5000

struct world {
	struct plugin plugin;
	char *text; /* of an answer */
	size_t len;
};

/* Every LID that can be divided by LID_STEP is somebody's. */
#define LID_STEP 7

static bool fake_find(void *ctx, uint16_t lid, struct vhca_osm_lid_place *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_lid_place){.port_guid = lid, .node_guid = lid, .node = "n"};
	return lid > 0 && lid % LID_STEP == 0;
}

static void fake_list(void *ctx, struct vhca_osm_lid_set *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_lid_set){0};
	for (uint16_t lid = LID_STEP; lid < VHCA_OSM_LIDS; lid = (uint16_t)(lid + LID_STEP))
		vhca_osm_lid_set_add(ret, lid);
	vhca_osm_lid_set_add(ret, LID_STEP + 1); /* it has left meanwhile */
}

static const struct vhca_osm_lid_ops lid_ops = {.find = fake_find, .list = fake_list};

/* ---- fixture ---- */

static void fill(struct world *w)
{
	uint16_t pkeys[] = {0x8001, 0x8002, 0x8003, 0x8004};
	struct vhca_osm_eviction ev;
	struct vhca_error err;

	for (unsigned int i = 0; i < ROWS; i++) {
		const struct vhca_osm_binding b = {.vguid = FALSE_GUID + i,
						   .epoch = 1,
						   .port_guid = FALSE_PORT_A,
						   .gid_index = (uint16_t)(i % 127 + 1),
						   .pkeys = pkeys,
						   .n_pkeys = 4};

		if (vhca_osm_report_put(plugin_reports(&w->plugin), &b, 0, &ev, &err) < 0)
			fail_msg("%s", err.msg);
	}
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	plugin_init(&w->plugin);
	w->plugin.subnet.n_ports = 1;
	plugin_serve(&w->plugin, &lid_ops);
	fill(w);
	w->text = malloc(TEXT_MAX);
	assert_non_null(w->text);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	plugin_done(&w->plugin);
	free(w->text);
	free(w);
	return 0;
}

static void run(const struct world *w)
{
	struct pollfd p = {.fd = vhca_osm_api_fd(w->plugin.api), .events = POLLIN};
	int ms = vhca_osm_api_timeout_ms(w->plugin.api);

	(void)poll(&p, 1, ms < 0 || ms > 10 ? 10 : ms);
	vhca_osm_api_run(w->plugin.api);
}

static int say(const struct world *w, const char *method, const char *path, const char *body)
{
	char text[1024];
	int n = snprintf(text, sizeof(text),
			 "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", method, path,
			 strlen(body), body);
	int fd = vhca_connect_unix(w->plugin.socket, vhca_now_ms() + 1000);

	assert_true(fd >= 0);
	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
	return fd;
}

/* The whole answer's body. */
static const char *hear(struct world *w, int fd)
{
	uint64_t deadline = vhca_now_ms() + 60000;
	const char *body = NULL, *length;

	w->len = 0;
	while (!body || strlen(body) < strtoul(length + 16, NULL, 10)) {
		ssize_t n = recv(fd, w->text + w->len, TEXT_MAX - 1 - w->len, MSG_DONTWAIT);

		assert_true(vhca_now_ms() < deadline);
		w->len += n > 0 ? (size_t)n : 0;
		w->text[w->len] = '\0';
		length = strstr(w->text, "Content-Length: ");
		body = length ? strstr(length, "\r\n\r\n") : NULL;
		body = body ? body + 4 : NULL;
		run(w);
	}
	return body;
}

static unsigned int count(const char *text, const char *word)
{
	unsigned int n = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		n++;
	return n;
}

static const char report[] =
	"{\"epoch\":2,\"port_guid\":\"0x0002c90300000a01\",\"gid_index\":1,\"pkeys\":[]}";

static void pages_lead_to_the_end(void **state)
{
	struct world *w = *state;
	char path[128] = "/v1/bindings";
	unsigned int rows = 0, pages = 0;
	uint64_t begun = vhca_now_ms();
	size_t longest = 0;
	bool more = true;

	for (; more; pages++) {
		VHCA_AUTO_CLOSE int fd = say(w, "GET", path, "");
		const char *body = hear(w, fd), *next = strstr(body, "\"next\":\"");

		assert_true(pages < ROWS);
		rows += count(body, "\"vguid\"");
		longest = w->len > longest ? w->len : longest;
		more = next != NULL;
		(void)snprintf(path, sizeof(path), "/v1/bindings?after=%.18s",
			       more ? next + 8 : "");
	}
	assert_int_equal(rows, ROWS);
	print_message("# %u pages of at most %zu KiB, %llu ms each\n", pages, longest / 1024,
		      (unsigned long long)((vhca_now_ms() - begun) / pages));
	assert_true(longest < 512 * 1024);
}

static void lids_come_in_their_order(void **state)
{
	struct world *w = *state;
	char path[128] = "/v1/lids?limit=500";
	unsigned int rows = 0, last = 0;
	bool more = true;

	while (more) {
		VHCA_AUTO_CLOSE int fd = say(w, "GET", path, "");
		const char *body = hear(w, fd), *next = strstr(body, "\"next\":");

		assert_non_null(next);
		for (const char *row = strstr(body, "\"lid\":"); row;
		     row = strstr(row + 1, "\"lid\":")) {
			assert_int_equal(strtoul(row + 6, NULL, 10), last + LID_STEP);
			last += LID_STEP;
			rows++;
		}
		more = strncmp(next + 7, "null", 4) != 0;
		assert_true(!more || strtoul(next + 7, NULL, 10) == last);
		(void)snprintf(path, sizeof(path), "/v1/lids?limit=500&after=%u", last);
	}
	assert_int_equal(rows, (VHCA_OSM_LIDS - 1) / LID_STEP);
}

/* Those who ask get a page each, or are told to come again. */
static void a_report_does_not_wait_for_lists(void **state)
{
	struct world *w = *state;
	unsigned int pages = 0, refused = 0;
	int asking[ASKING], fd;
	uint64_t begun;

	for (unsigned int i = 0; i < ASKING; i++)
		asking[i] = say(w, "GET", "/v1/bindings", "");
	begun = vhca_now_ms();
	fd = say(w, "PUT", "/v1/bindings/0x02c9ab0000000001", report);
	assert_non_null(strstr(hear(w, fd), "\"epoch\":2"));
	begun = vhca_now_ms() - begun;
	(void)close(fd);
	print_message("# a report behind %d lists: %llu ms\n", ASKING, (unsigned long long)begun);
	for (unsigned int i = 0; i < ASKING; i++) {
		const char *body = hear(w, asking[i]);

		pages += strstr(body, "\"next\":\"") != NULL;
		refused += strstr(body, "\"too_many_lists\"") != NULL;
		(void)close(asking[i]);
	}
	print_message("# %u had a page, %u are to ask again\n", pages, refused);
	assert_int_equal(pages + refused, ASKING);
	assert_true(begun < REPORT_MS);
}

/* They had asked, and are not there any more when it is their turn. */
static void who_leaves_does_no_harm(void **state)
{
	struct world *w = *state;
	int asking[ASKING], fd;

	for (unsigned int i = 0; i < ASKING; i++)
		asking[i] = say(w, "GET", i % 2 ? "/v1/bindings" : "/v1/members", "");
	for (unsigned int i = 0; i < 20; i++)
		run(w);
	for (unsigned int i = 0; i < ASKING; i++)
		(void)close(asking[i]);
	fd = say(w, "GET", "/v1/bindings?limit=1", "");
	assert_int_equal(count(hear(w, fd), "\"vguid\""), 1);
	(void)close(fd);
	asking[0] = say(w, "GET", "/v1/bindings", ""); /* and one that waits when all ends */
	run(w);
	(void)close(asking[0]);
}

/* What nobody waits for any more is not done, and takes no place. */
static void who_leaves_is_not_heard_later(void **state)
{
	struct world *w = *state;
	const struct vhca_osm_table *t = vhca_osm_service_table(w->plugin.service);
	int gone, stays;

	w->plugin.subnet.busy = true;
	gone = say(w, "PUT", "/v1/bindings/0x02c9ab0000000001", report);
	stays = say(w, "PUT", "/v1/bindings/0x02c9ab0000000002", report);
	for (unsigned int i = 0; i < 20; i++)
		run(w);
	(void)close(gone);
	for (unsigned int i = 0; i < 20; i++)
		run(w);
	w->plugin.subnet.busy = false;
	assert_non_null(strstr(hear(w, stays), "\"epoch\":2"));
	(void)close(stays);
	assert_int_equal(vhca_osm_table_find(t, FALSE_GUID)->epoch, 1);
	w->plugin.subnet.busy = true;
	gone = say(w, "PUT", "/v1/bindings/0x02c9ab0000000001", report); /* when all ends */
	run(w);
	(void)close(gone);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(pages_lead_to_the_end),
		T(lids_come_in_their_order),
		T(a_report_does_not_wait_for_lists),
		T(who_leaves_does_no_harm),
		T(who_leaves_is_not_heard_later),
	};

	return cmocka_run_group_tests_name("osm_lists", tests, NULL, NULL);
}
