/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests at the plugin, on the real service and a fake subnet: each is answered; who is refused
 * has changed nothing that would be written down; a binding that is accepted is told as it was
 * reported, and its epoch never goes back unless it is forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "opensm/bindings/state_file.h"
#include "opensm/http/api.h"
#include "tests/fuzz/kit/door.h"

#define PORT_A UINT64_C(0x0002c90300000a01)
#define PORT_B UINT64_C(0x0002c90300000b01)

static struct {
	struct vhca_osm_conf conf;
	struct vhca_osm_service *service;
	struct vhca_osm_mover *mover;
	struct vhca_osm_gate gate;
	struct vhca_osm_api *api;
	char lock[sizeof(((struct vhca_osm_conf *)0)->state_dir) + 8];
} t;

/* ---- the fake subnet ---- */

static bool fake_busy(void *ctx)
{
	(void)ctx;
	return false;
}

static void fake_status(void *ctx, struct vhca_osm_status *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_status){
		.sm_state = "master", .master = true, .ready = true, .version = "fake"};
}

static bool fake_port(void *ctx, uint64_t guid, struct vhca_osm_port_info *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_port_info){.lid = 5, .state = VHCA_OSM_PORT_ACTIVE, .pkey_cap = 32};
	return guid == PORT_A || guid == PORT_B;
}

static bool fake_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	(void)ctx, (void)guid, (void)ret;
	return false;
}

static bool fake_vport(void *ctx, uint64_t port_guid, uint16_t vport,
		       struct vhca_osm_port_info *ret)
{
	(void)ctx, (void)port_guid, (void)vport, (void)ret;
	return false;
}

static bool fake_is_vport(void *ctx, uint64_t port_guid, uint64_t hca_guid)
{
	(void)ctx, (void)port_guid, (void)hca_guid;
	return false;
}

static bool fake_is_physical(void *ctx, uint64_t port_guid)
{
	(void)ctx;
	return port_guid == PORT_B;
}

static bool fake_has_pkey(void *ctx, uint64_t port, uint16_t pkey)
{
	(void)ctx, (void)port;
	return pkey & 1;
}

static void fake_each_port(void *ctx, vhca_osm_port_fn fn, void *arg)
{
	(void)ctx, (void)fn, (void)arg;
}

static int fake_apply(void *ctx)
{
	(void)ctx;
	return 0;
}

static size_t fake_unanswered(void *ctx)
{
	(void)ctx;
	return 0;
}

static void fake_sweep(void *ctx)
{
	(void)ctx;
}

static void fake_smps(void *ctx, struct vhca_osm_smps *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_smps){.guid_info = 1};
}

static const struct vhca_osm_subnet_ops subnet = {
	.is_busy = fake_busy,
	.status = fake_status,
	.find_port = fake_port,
	.find_alias = fake_alias,
	.find_vport = fake_vport,
	.is_vport_of = fake_is_vport,
	.is_physical = fake_is_physical,
	.has_pkey = fake_has_pkey,
	.each_port = fake_each_port,
	.apply = fake_apply,
	.unanswered = fake_unanswered,
	.sweep = fake_sweep,
	.smps = fake_smps,
};

/* Even LIDs are where they are wanted, odd ones nowhere: nothing is to be moved. */
static int fake_resolve(void *ctx, const struct vhca_osm_lid_want *want,
			const struct vhca_osm_lids_promised *promised,
			struct vhca_osm_lid_pair *ret, struct vhca_error *err)
{
	(void)ctx, (void)promised;
	if (want->lid & 1)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "unknown_lid", 0, "fake");
	*ret = (struct vhca_osm_lid_pair){.guid = {want->port_guid, want->port_guid},
					  .lid = {want->lid, want->lid},
					  .dynamic = want->dynamic};
	return 1;
}

static int fake_check_done(void *ctx, const struct vhca_osm_lid_pair *pair, struct vhca_error *err)
{
	(void)ctx, (void)pair, (void)err;
	return 0;
}

static size_t fake_missing(void *ctx, const struct vhca_osm_lid_pair *pair,
			   const struct vhca_osm_switch_set *at, bool resend)
{
	(void)ctx, (void)pair, (void)at, (void)resend;
	return 0;
}

static bool fake_master(void *ctx)
{
	(void)ctx;
	return true;
}

static unsigned int fake_timeout(void *ctx)
{
	(void)ctx;
	return 200;
}

static void fake_counts(void *ctx, struct vhca_osm_lid_counts *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_lid_counts){.dynamic = 1};
}

static bool fake_find(void *ctx, uint16_t lid, struct vhca_osm_lid_place *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_lid_place){.port_guid = PORT_A, .node = "host1"};
	return !(lid & 1);
}

static void fake_list(void *ctx, struct vhca_osm_lid_set *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_lid_set){0};
	for (uint16_t lid = 1; lid < 8; lid++)
		vhca_osm_lid_set_add(ret, lid);
}

static void fake_info(void *ctx, struct vhca_osm_fabric_info *ret)
{
	(void)ctx;
	*ret = (struct vhca_osm_fabric_info){.engine = "none"};
}

static int fake_rebalance(void *ctx, struct vhca_error *err)
{
	(void)ctx;
	(void)err;
	return 0;
}

static const struct vhca_osm_lid_ops lids = {
	.resolve = fake_resolve,
	.check_done = fake_check_done,
	.missing = fake_missing,
	.send_keys = fake_sweep,
	.is_master = fake_master,
	.timeout_ms = fake_timeout,
	.counts = fake_counts,
	.find = fake_find,
	.list = fake_list,
	.info = fake_info,
	.sweep = fake_sweep,
	.rebalance = fake_rebalance,
};

/* ---- what stands in for the production symbols: no disk ---- */

int __wrap_vhca_write_file_atomic(const char *path, const void *data, size_t len, mode_t mode);
int __wrap_vhca_write_file_atomic(const char *path, const void *data, size_t len, mode_t mode)
{
	(void)path, (void)data, (void)len, (void)mode;
	return 0;
}

int __real_vhca_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len);
int __wrap_vhca_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len);
int __wrap_vhca_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len)
{
	if (t.lock[0] && strncmp(path, t.conf.state_dir, strlen(t.conf.state_dir)) == 0)
		return -ENOENT;
	return __real_vhca_read_file(path, max, ret_data, ret_len); /* replay.c's */
}

/* ---- requests ---- */

static char *state(void)
{
	char *text = NULL;
	size_t len;

	FUZZ_ASSERT(vhca_osm_state_format(vhca_osm_service_table(t.service), &text, &len) == 0);
	return text;
}

/* What was asked for, and waits for the disk, for its LID, or for a sweep that does not come. */
static unsigned int serve(const struct door_answer *answer)
{
	uint64_t now = vhca_now_ms();

	for (int i = 0; i < 3 && !answer->status; i++) {
		vhca_osm_mover_run(t.mover, now + (uint64_t)i * VHCA_OSM_MOVE_WAIT_MS);
		vhca_osm_api_run(t.api);
	}
	FUZZ_ASSERT(answer->status);
	return answer->status;
}

/* Of an accepted PUT: path and body say what the answer has to. */
static void check_told(const struct door_request *req, struct json_object *told)
{
	struct json_object *body = NULL;
	uint64_t epoch = 0, told_epoch = 0, port = 0, told_port = 0, vguid = 0;

	FUZZ_ASSERT(vhca_json_parse(req->body, req->body_len, &body, NULL) == 0);
	FUZZ_ASSERT(vhca_json_get_u64(body, "epoch", INT64_MAX, &epoch, NULL) == 0 &&
		    vhca_json_get_guid(body, "port_guid", &port, NULL) == 0);
	FUZZ_ASSERT(vhca_json_get_guid(told, "vguid", &vguid, NULL) == 0 &&
		    vhca_guid_is_valid(vguid));
	FUZZ_ASSERT(vhca_json_get_u64(told, "epoch", INT64_MAX, &told_epoch, NULL) == 0 &&
		    vhca_json_get_guid(told, "port_guid", &told_port, NULL) == 0);
	FUZZ_ASSERT(epoch == told_epoch && port == told_port);
	FUZZ_ASSERT(port == PORT_A || port == PORT_B);
	(void)json_object_put(body);
}

struct epoch {
	uint64_t vguid, epoch;
};

static struct epoch *epochs(size_t *ret_n)
{
	const struct vhca_osm_table *table = vhca_osm_service_table(t.service);
	struct epoch *list;

	*ret_n = vhca_osm_table_records(table);
	list = calloc(*ret_n + 1, sizeof(*list));
	FUZZ_ASSERT(list);
	for (size_t i = 0; i < *ret_n; i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_record(table, i);

		list[i] = (struct epoch){b->vguid, b->epoch};
	}
	return list;
}

static void check_epochs(const struct epoch *before, size_t n)
{
	const struct vhca_osm_table *table = vhca_osm_service_table(t.service);

	for (size_t i = 0; i < n; i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_find(table, before[i].vguid);

		FUZZ_ASSERT(b && b->epoch >= before[i].epoch);
	}
}

static void each(void *ctx, const struct door_request *req)
{
	VHCA_AUTO_FREE char *before = state(), *after = NULL;
	size_t n = 0;
	VHCA_AUTO_FREE struct epoch *known = epochs(&n);
	const struct door_answer *answer = door_ask(req);
	unsigned int status = serve(answer);

	(void)ctx;
	fuzz_verdict(status < 400);
	after = state();
	if (strncmp(req->path, "/v1/epochs/", 11) != 0)
		check_epochs(known, n);
	if (status >= 400 || strcmp(req->method, "GET") == 0)
		FUZZ_ASSERT(strcmp(before, after) == 0);
	if (status == 200 && strcmp(req->method, "PUT") == 0 &&
	    strncmp(req->path, "/v1/bindings/", 13) == 0)
		check_told(req, answer->body);
}

static void start(void)
{
	FUZZ_ASSERT(vhca_osm_gate_init(&t.gate) == 0);
	FUZZ_ASSERT(vhca_osm_service_new(&t.conf, &subnet, NULL, &t.service, NULL) == 0);
	FUZZ_ASSERT(vhca_osm_mover_new(&lids, NULL, &t.gate, &t.mover) == 0);
	FUZZ_ASSERT(vhca_osm_api_new(&t.conf, t.service, t.mover, &t.api, NULL) == 0);
}

static void stop(void)
{
	t.mover = vhca_osm_mover_free(t.mover);
	t.api = vhca_osm_api_free(t.api);
	t.service = vhca_osm_service_free(t.service);
	vhca_osm_gate_done(&t.gate);
	FUZZ_ASSERT(unlink(t.lock) == 0 && rmdir(t.conf.state_dir) == 0);
}

/* The service makes the directory, and a lock file in it. */
static void name_state_dir(void)
{
	vhca_log_set_level(VHCA_LOG_ERROR);
	vhca_osm_conf_set_defaults(&t.conf);
	(void)snprintf(t.conf.state_dir, sizeof(t.conf.state_dir), "/tmp/vhca-fuzz.%ld",
		       (long)getpid());
	(void)snprintf(t.lock, sizeof(t.lock), "%s/lock", t.conf.state_dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!t.lock[0])
		name_state_dir();
	start();
	door_play(data, size, each, NULL);
	stop();
	door_close();
	return 0;
}
