/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_API_H
#define VHCA_AGENT_API_API_H
/*
 * The agent's HTTP API (docs/openapi.yaml). Reads answer from memory; mutations answer when their
 * transaction has ended.
 */
#include "agent/api/pending.h"
#include "agent/migration/drain.h"
#include "agent/vf/engine.h"
#include "agent/host/host.h"
#include "agent/migration/migration.h"
#include "agent/api/configuration.h"
#include "agent/libvirt/virt.h"
#include "common/http/http_loop.h"

struct vhca_api;

struct vhca_api_args {
	struct vhca_loop *loop;
	struct vhca_engine *engine;
	struct vhca_host *host;
	struct vhca_virt *virt; /* NULL in tests without libvirt */
	struct vhca_outbox *outbox;
	struct vhca_migrations *migrations;
	struct vhca_drain *drain;
	struct vhca_events *events;
	struct vhca_reload *reload;
	const struct vhca_sm_ops *sm;
	const struct vhca_conf *conf;
	const char *boot_id;
};

/* Listens on run_dir/vhcad.sock: mode 0600, or 0660 and the configured group. */
int vhca_api_new(const struct vhca_api_args *args, struct vhca_api **ret, struct vhca_error *err);
struct vhca_api *vhca_api_free(struct vhca_api *api); /* accepts NULL, returns NULL */

/* ---- for the handlers in other files; ctx is what handlers get ---- */
const struct vhca_api_args *vhca_api_args_of(const void *ctx); /* borrowed */
/* For a reply that is given later than in its handler. NULL: req has been answered. */
struct vhca_pending *vhca_api_pend(void *ctx, struct vhca_http_request *req);
/* A VF by its address; borrowed. NULL with err set if there is none. */
const struct vhca_vf *vhca_api_find_vf(const void *ctx, const char *text, struct vhca_error *err);
/* A domain by UUID, or by the name of an active one: fills domain and domain_name. */
int vhca_api_find_domain(void *ctx, const char *text, struct vhca_claim_request *ret,
			 struct vhca_error *err);

#endif
