/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two sides of the SM API against each other: what sm/vhcasm.c sends goes to the plugin's own
 * HTTP service, on a false subnet, and what that answers is classified by sm/vhcasm.c.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/client.h"
#include "common/http/json.h"
#include "opensm/http/api.h"
#include "sm/sm.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

struct world {
	struct plugin plugin;
	pthread_t thread;
	atomic_bool stop;
	char code[VHCA_ERROR_CODE_MAX]; /* of the last answer */
	/* Problem members of the last answer. */
	uint64_t known_epoch, port_guid;
	bool bound;
};

/* A withdrawal asks whether a dynamic LID has to be freed: none ever. */
static int no_lid(void *ctx, const struct vhca_osm_lid_want *want,
		  const struct vhca_osm_lids_promised *promised, struct vhca_osm_lid_pair *ret,
		  struct vhca_error *err)
{
	(void)ctx;
	(void)promised;
	(void)want;
	(void)ret;
	(void)err;
	return 1;
}

static const struct vhca_osm_lid_ops lids = {.resolve = no_lid};

/* ---- fixture ---- */

static void *serve(void *arg)
{
	struct world *w = arg;
	struct pollfd pfd = {.fd = vhca_osm_api_fd(w->plugin.api), .events = POLLIN};

	while (!atomic_load(&w->stop)) {
		(void)poll(&pfd, 1, 10);
		vhca_osm_api_run(w->plugin.api);
	}
	return NULL;
}

static int setup_as(void **state, bool master)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	plugin_init(&w->plugin);
	w->plugin.subnet.status = (struct vhca_osm_status){
		.sm_state = master ? "master" : "standby",
		.master = master,
		.ready = master,
		.version = "false",
	};
	plugin_serve(&w->plugin, &lids);
	assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
	*state = w;
	return 0;
}

static int setup(void **state)
{
	return setup_as(state, true);
}

static int setup_standby(void **state)
{
	return setup_as(state, false);
}

static int teardown(void **state)
{
	struct world *w = *state;

	atomic_store(&w->stop, true);
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	plugin_done(&w->plugin);
	free(w);
	return 0;
}

/* ---- the agent's side ---- */

static struct vhca_sm_binding binding(uint64_t epoch, uint64_t port)
{
	return (struct vhca_sm_binding){.vguid = FALSE_GUID,
					.epoch = epoch,
					.bound = port != 0,
					.port_guid = port,
					.gid_index = 2,
					.lid = 5,
					.n_pkeys = 1,
					.pkeys = {0x8001}};
}

/* Sends req and consumes it; the caller frees res. */
static void send_request(struct world *w, struct vhca_sm_request *req, struct vhca_http_result *res)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char url[160];
	const struct vhca_http_call_args args = {.unix_socket = w->plugin.socket,
						 .method = req->method,
						 .url = url,
						 .body = req->body};
	int r;

	(void)snprintf(url, sizeof(url), "http://localhost%s", req->path);
	r = vhca_http_call(&args, res, &err);
	w->known_epoch = w->port_guid = 0;
	w->bound = false;
	(void)vhca_json_opt_u64(res->body, "known_epoch", INT64_MAX, &w->known_epoch, NULL);
	(void)vhca_json_opt_bool(res->body, "bound", &w->bound, NULL);
	(void)vhca_json_get_guid(res->body, "port_guid", &w->port_guid, NULL);
	(void)snprintf(w->code, sizeof(w->code), "%s", r < 0 ? err.code : "");
	(void)json_object_put(req->body);
}

static enum vhca_sm_answer report(struct world *w, struct vhca_sm_binding b)
{
	struct vhca_sm_request req;
	struct vhca_http_result res;
	enum vhca_sm_answer answer;

	assert_int_equal(vhca_sm_vhcasm.binding_request(&b, &req), 0);
	send_request(w, &req, &res);
	answer = vhca_sm_vhcasm.binding_answer(res.status, res.body, NULL);
	vhca_http_result_done(&res);
	return answer;
}

static enum vhca_sm_answer move(struct world *w, struct vhca_sm_binding b, bool commit)
{
	struct vhca_sm_request req;
	struct vhca_http_result res;
	enum vhca_sm_answer answer;

	b.moved = true;
	b.from_port_guid = FALSE_PORT_A;
	b.from_gid_index = 1;
	assert_int_equal(vhca_uuid_random(&b.move_id), 0);
	assert_true(vhca_sm_binding_is_move(&b));
	assert_int_equal(commit ? vhca_sm_vhcasm.commit_request(&b, &req)
				: vhca_sm_vhcasm.prepare_request(&b, &req),
			 0);
	send_request(w, &req, &res);
	assert_false(vhca_sm_vhcasm.commit_unknown(res.status, res.body));
	answer = vhca_sm_vhcasm.commit_answer(res.status, res.body);
	vhca_http_result_done(&res);
	return answer;
}

/* As who does not know where its guest comes from. */
static enum vhca_sm_answer ask(struct world *w, struct vhca_sm_binding b)
{
	struct vhca_sm_request req;
	struct vhca_http_result res;
	enum vhca_sm_answer answer;

	b.moved = true;
	b.from_port_guid = b.port_guid;
	assert_int_equal(vhca_sm_vhcasm.prepare_request(&b, &req), 0);
	send_request(w, &req, &res);
	answer = vhca_sm_vhcasm.prepare_answer(res.status, res.body);
	vhca_http_result_done(&res);
	return answer;
}

static enum vhca_sm_answer declare(struct world *w, struct vhca_sm_members m)
{
	struct vhca_sm_request req;
	struct vhca_http_result res;
	enum vhca_sm_answer answer;

	assert_int_equal(vhca_sm_vhcasm.members_request(&m, &req), 0);
	send_request(w, &req, &res);
	answer = vhca_sm_vhcasm.members_answer(res.status, res.body);
	vhca_http_result_done(&res);
	return answer;
}

/* ---- cases ---- */

static void binding_is_taken_and_withdrawn(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(1, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(1, FALSE_PORT_A)), VHCA_SM_ACCEPTED); /* again */
	assert_int_equal(report(w, binding(1, 0)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(1, 0)), VHCA_SM_ACCEPTED);
	assert_string_equal(w->code, "");
}

static void withdrawn_epoch_is_over(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(3, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(3, 0)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(3, FALSE_PORT_A)), VHCA_SM_SUPERSEDED);
	assert_string_equal(w->code, "superseded");
	assert_int_equal(w->known_epoch, 3);
	assert_true(!w->bound && w->port_guid == 0);
	assert_int_equal(report(w, binding(4, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
}

static void unknown_vguid_is_withdrawn_all_the_same(void **state)
{
	assert_int_equal(report(*state, binding(7, 0)), VHCA_SM_ACCEPTED);
}

static void no_keys_is_a_binding_too(void **state)
{
	struct vhca_sm_binding b = binding(1, FALSE_PORT_A);

	b.n_pkeys = 0;
	b.lid = 0;
	assert_int_equal(report(*state, b), VHCA_SM_ACCEPTED);
}

static void lower_epochs_are_superseded(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(4, FALSE_PORT_B)), VHCA_SM_SUPERSEDED);
	assert_string_equal(w->code, "superseded");
	assert_int_equal(w->known_epoch, 5);
	assert_true(w->bound && w->port_guid == FALSE_PORT_A);
	assert_int_equal(report(w, binding(4, 0)), VHCA_SM_SUPERSEDED);
	assert_int_equal(w->known_epoch, 5);
	assert_int_equal(report(w, binding(6, FALSE_PORT_B)), VHCA_SM_ACCEPTED);
}

static void ties_are_refused(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(5, FALSE_PORT_B)), VHCA_SM_SUPERSEDED);
	assert_string_equal(w->code, "epoch_tie");
	assert_int_equal(w->known_epoch, 5);
	assert_true(w->bound && w->port_guid == FALSE_PORT_A);
	/* Withdrawn: what a host hears where the stopped guest is started next. */
	assert_int_equal(report(w, binding(5, 0)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(1, FALSE_PORT_B)), VHCA_SM_SUPERSEDED);
	assert_int_equal(w->known_epoch, 5);
	assert_true(!w->bound && w->port_guid == 0);
	assert_int_equal(report(w, binding(6, FALSE_PORT_B)), VHCA_SM_ACCEPTED);
}

static void unknown_ports_are_tried_again(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(1, FALSE_PORT_A + 1)), VHCA_SM_RETRY);
	assert_string_equal(w->code, "unknown_port");
}

static void wrong_reports_are_refused(void **state)
{
	struct world *w = *state;
	struct vhca_sm_binding b = binding(1, FALSE_PORT_A);

	b.vguid = UINT64_C(0x0100000000000000); /* multicast */
	assert_int_equal(report(w, b), VHCA_SM_REFUSED);
	assert_string_equal(w->code, "bad_request");
}

static void a_standby_is_asked_again(void **state)
{
	struct world *w = *state;

	w->plugin.subnet.status.master = w->plugin.subnet.status.ready =
		false; /* the server's thread is idle until the request */
	w->plugin.subnet.status.sm_state = "standby";
	assert_int_equal(report(w, binding(1, FALSE_PORT_A)), VHCA_SM_RETRY);
	assert_string_equal(w->code, "not_master");
}

static void members_are_declared_and_given_back(void **state)
{
	struct world *w = *state;
	const struct vhca_sm_members two = {
		.port_guid = FALSE_PORT_A, .n_pkeys = 2, .pkeys = {0x8001, 0x8002}};
	const struct vhca_sm_members none = {.port_guid = FALSE_PORT_A};

	assert_int_equal(declare(w, two), VHCA_SM_ACCEPTED);
	assert_int_equal(declare(w, two), VHCA_SM_ACCEPTED); /* again */
	assert_int_equal(declare(w, none), VHCA_SM_ACCEPTED);
	assert_int_equal(declare(w, none), VHCA_SM_ACCEPTED);
	assert_string_equal(w->code, "");
}

static void members_of_unknown_ports_are_tried_again(void **state)
{
	struct world *w = *state;
	struct vhca_sm_members m = {.port_guid = FALSE_PORT_A + 1, .n_pkeys = 1, .pkeys = {0x8001}};

	assert_int_equal(declare(w, m), VHCA_SM_RETRY);
	assert_string_equal(w->code, "unknown_port");
	m.n_pkeys = 0; /* a port that has gone gives back its keys */
	assert_int_equal(declare(w, m), VHCA_SM_ACCEPTED);
}

static void wrong_members_are_refused(void **state)
{
	struct world *w = *state;
	struct vhca_sm_members m = {.port_guid = FALSE_PORT_A};

	for (unsigned int i = 0; i < VHCA_SM_PORT_PKEYS_MAX; i++)
		m.pkeys[m.n_pkeys++] = (uint16_t)(0x8001 + i);
	assert_int_equal(declare(w, m), VHCA_SM_REFUSED); /* one entry is the default partition's */
	assert_string_equal(w->code, "bad_request");
	m.n_pkeys = 1;
	m.port_guid = UINT64_C(0x0100000000000000); /* multicast */
	assert_int_equal(declare(w, m), VHCA_SM_REFUSED);
}

static void a_standby_is_asked_for_members_again(void **state)
{
	const struct vhca_sm_members m = {
		.port_guid = FALSE_PORT_A, .n_pkeys = 1, .pkeys = {0x8001}};
	struct world *w = *state;

	assert_int_equal(declare(w, m), VHCA_SM_RETRY);
	assert_string_equal(w->code, "not_master");
}

static void a_move_is_in_effect_and_fenced(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(move(w, binding(4, FALSE_PORT_B), true), VHCA_SM_SUPERSEDED);
	assert_int_equal(move(w, binding(5, FALSE_PORT_B), true), VHCA_SM_SUPERSEDED);
	assert_string_equal(w->code, "epoch_tie");
	assert_true(w->known_epoch == 5 && w->bound && w->port_guid == FALSE_PORT_A);
	assert_int_equal(move(w, binding(6, FALSE_PORT_B), true), VHCA_SM_ACCEPTED);
	assert_int_equal(move(w, binding(6, FALSE_PORT_B), true), VHCA_SM_ACCEPTED); /* again */
	assert_int_equal(report(w, binding(6, FALSE_PORT_B)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(5, 0)), VHCA_SM_SUPERSEDED); /* the source is late */
	assert_int_equal(move(w, binding(7, FALSE_PORT_B + 1), true), VHCA_SM_RETRY);
	assert_string_equal(w->code, "unknown_port");
}

static void prepare_is_understood_and_no_commit(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(move(w, binding(6, FALSE_PORT_B), false), VHCA_SM_RETRY);
	assert_string_equal(w->code, "");
	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(move(w, binding(4, FALSE_PORT_B), false), VHCA_SM_SUPERSEDED);
}

static void what_is_asked_binds_nothing(void **state)
{
	struct world *w = *state;

	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(ask(w, binding(4, FALSE_PORT_B)), VHCA_SM_SUPERSEDED);
	assert_true(w->known_epoch == 5 && w->bound && w->port_guid == FALSE_PORT_A);
	assert_int_equal(ask(w, binding(5, FALSE_PORT_B)), VHCA_SM_SUPERSEDED);
	assert_int_equal(ask(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(ask(w, binding(6, FALSE_PORT_B)), VHCA_SM_ACCEPTED);
	assert_int_equal(report(w, binding(5, FALSE_PORT_A)), VHCA_SM_ACCEPTED);
	assert_int_equal(ask(w, binding(6, FALSE_PORT_A + 1)), VHCA_SM_RETRY);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(binding_is_taken_and_withdrawn),
		CASE(withdrawn_epoch_is_over),
		CASE(unknown_vguid_is_withdrawn_all_the_same),
		CASE(no_keys_is_a_binding_too),
		CASE(lower_epochs_are_superseded),
		CASE(ties_are_refused),
		CASE(unknown_ports_are_tried_again),
		CASE(wrong_reports_are_refused),
		CASE(a_move_is_in_effect_and_fenced),
		CASE(prepare_is_understood_and_no_commit),
		CASE(what_is_asked_binds_nothing),
		CASE(members_are_declared_and_given_back),
		CASE(members_of_unknown_ports_are_tried_again),
		CASE(wrong_members_are_refused),
		cmocka_unit_test_setup_teardown(a_standby_is_asked_again, setup_standby, teardown),
		cmocka_unit_test_setup_teardown(a_standby_is_asked_for_members_again, setup_standby,
						teardown),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
