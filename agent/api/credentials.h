/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_CREDENTIALS_H
#define VHCA_AGENT_API_CREDENTIALS_H
/* Certificates and tokens of the configuration: this host's own, and those that it believes. */
#include "common/http/auth.h"
#include "conf/conf.h"

struct vhca_credentials {
	struct vhca_http_auth *sm, *peer, *api; /* NULL = plain HTTP */
};

/* Reads conf's files into an empty *ret; on failure the caller calls done(), too. Blocking. */
int vhca_credentials_load(const struct vhca_conf *conf, struct vhca_credentials *ret,
			  struct vhca_error *err);
/* Who borrows them goes on with the later ones, of which nothing is left in *later. */
void vhca_credentials_replace(struct vhca_credentials *c, struct vhca_credentials *later);
void vhca_credentials_done(struct vhca_credentials *c);

#endif
