/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_PEER_SERVER_H
#define VHCA_AGENT_API_PEER_SERVER_H
/* What other agents may ask of this one, on the configured address only ([api] peer_listen). */
#include "agent/host/memory.h"
#include "agent/migration/migration.h"
#include "common/http/http_loop.h"

struct vhca_peer_api;

/* Borrowed. */
struct vhca_peer_api_parts {
	struct vhca_migrations *migrations;
	struct vhca_host_memory *memory;   /* NULL: the room for a guest is not looked at */
	const struct vhca_http_auth *auth; /* who may ask; NULL: everybody, by plain HTTP */
};

/* Listens on conf->peer_listen, which must not be "". conf is borrowed: with auth its peers are
 * who may ask, at each request. */
int vhca_peer_api_new(struct vhca_loop *loop, const struct vhca_conf *conf,
		      const struct vhca_peer_api_parts *parts, struct vhca_peer_api **ret,
		      struct vhca_error *err);
/* After the migrations (whose waiters answer through it). Accepts NULL, returns NULL. */
struct vhca_peer_api *vhca_peer_api_free(struct vhca_peer_api *api);

#endif
