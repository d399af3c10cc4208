/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_PEER_API_H
#define VHCA_AGENT_PEER_API_H
/* What other agents may ask of this one, on the configured address only ([api] peer_listen). */
#include "agent/migration.h"
#include "common/http/http_loop.h"

struct vhca_peer_api;

/* Listens on conf->peer_listen, which must not be "". */
int vhca_peer_api_new(struct vhca_loop *loop, const struct vhca_conf *conf,
		      struct vhca_migrations *ms, struct vhca_peer_api **ret,
		      struct vhca_error *err);
/* After the migrations (whose waiters answer through it). Accepts NULL, returns NULL. */
struct vhca_peer_api *vhca_peer_api_free(struct vhca_peer_api *api);

#endif
