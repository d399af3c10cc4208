/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_PEER_H
#define VHCA_AGENT_MIGRATION_PEER_H
/*
 * Asking another agent (the peer API of docs/design/0002-migration.md): the source's effects CLAIM,
 * HANDOVER, STATUS and ABORT.
 */
#include "agent/migration/migration.h"
#include "common/http/client.h"

struct vhca_peer;

/*
 * All but ret is borrowed. auth: who this host is, and who a peer at an https:// URL must be; NULL
 * = nobody.
 */
int vhca_peer_new(struct vhca_loop *loop, struct vhca_http_multi *http,
		  const struct vhca_conf *conf, const struct vhca_http_auth *auth,
		  struct vhca_peer **ret);
/* Requests under way are forgotten. Accepts NULL, returns NULL. */
struct vhca_peer *vhca_peer_free(struct vhca_peer *p);
/* Answers with vhca_migrations_effect_done(). */
void vhca_peer_effect(struct vhca_peer *p, struct vhca_mig *m, enum vhca_mig_effect effect);

#endif
