/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a peer answers to a migration's source: it is an error, or no two things at once, and its
 * VFs can be told again as they were.
 */
#include <string.h>

#include "agent/migration/peer.h"
#include "common/http/json.h"
#include "tests/fuzz/fuzz.h"

static struct {
	struct vhca_conf conf;
	vhca_http_done_fn done;
	void *arg;
	const struct vhca_mig_result *res;
	struct vhca_mig_result copy;
} door;

/* ---- what stands in for the production symbols ---- */

int __wrap_vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
				 vhca_http_done_fn done, void *arg);
int __wrap_vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
				 vhca_http_done_fn done, void *arg)
{
	(void)m;
	FUZZ_ASSERT(strcmp(args->method, "GET") == 0 && !args->body);
	door.done = done;
	door.arg = arg;
	return 0;
}

void __wrap_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res);
void __wrap_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res)
{
	FUZZ_ASSERT(m && effect == VHCA_MIG_EFFECT_STATUS && !door.res);
	door.copy = *res;
	door.res = &door.copy;
}

/* ---- claims ---- */

static void check_vfs(const struct vhca_mig_result *res)
{
	struct vhca_mig_vf again[VHCA_MIGRATION_VFS_MAX];
	struct json_object *list = json_object_new_array();

	FUZZ_ASSERT(res->n_vfs <= VHCA_MIGRATION_VFS_MAX);
	for (unsigned int i = 0; i < res->n_vfs; i++) {
		FUZZ_ASSERT(vhca_name_is_valid(res->vfs[i].name));
		FUZZ_ASSERT(res->vfs[i].epoch < UINT64_MAX);
		json_object_array_add(list, vhca_mig_vf_to_json(&res->vfs[i]));
	}
	FUZZ_ASSERT(vhca_mig_vfs_parse(list, again) == res->n_vfs);
	for (unsigned int i = 0; i < res->n_vfs; i++)
		FUZZ_ASSERT(again[i].guid == res->vfs[i].guid &&
			    again[i].epoch == res->vfs[i].epoch &&
			    vhca_bdf_cmp(again[i].bdf, res->vfs[i].bdf) == 0 &&
			    strcmp(again[i].name, res->vfs[i].name) == 0 &&
			    again[i].attached == res->vfs[i].attached &&
			    again[i].granted == res->vfs[i].granted);
	(void)json_object_put(list);
}

static void check_result(const struct vhca_mig_result *res)
{
	FUZZ_ASSERT(res->ended + res->waits + res->arrived <= 1);
	fuzz_verdict(res->rc == 0);
	if (res->rc < 0)
		FUZZ_ASSERT(res->err.kind != VHCA_ERR_NONE && *res->err.code && res->err.msg[0]);
	check_vfs(res);
}

static void ask(struct json_object *body)
{
	struct vhca_http_result http = {.status = 200, .body = body};
	struct vhca_mig m = {.source = true, .peer = "other"};
	struct vhca_peer *p = NULL;

	door.res = NULL;
	door.conf.n_peers = 1;
	(void)strcpy(door.conf.peers[0].name, "other");
	(void)strcpy(door.conf.peers[0].agent, "http://other");
	FUZZ_ASSERT(vhca_peer_new(NULL, NULL, &door.conf, NULL, &p) == 0);
	vhca_peer_effect(p, &m, VHCA_MIG_EFFECT_STATUS);
	door.done(door.arg, 0, &http, NULL);
	FUZZ_ASSERT(door.res);
	check_result(door.res);
	(void)vhca_peer_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *body = NULL;

	/* As the client does it: what is no JSON is no body. */
	if (vhca_json_parse((const char *)data, size, &body, NULL) < 0)
		body = NULL;
	ask(body);
	(void)json_object_put(body);
	return 0;
}
