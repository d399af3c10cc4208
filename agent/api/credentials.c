/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/credentials.h"

/* The token is the SM's: other agents neither get it nor come in by it. */
int vhca_credentials_load(const struct vhca_conf *conf, struct vhca_credentials *ret,
			  struct vhca_error *err)
{
	struct vhca_http_auth_files files = {
		.certificate = conf->tls_certificate,
		.key = conf->tls_key,
		.authority = conf->tls_ca,
		.revoked = conf->tls_crl,
	};
	int r = vhca_http_auth_load(&files, &ret->peer, err);

	files.tokens = conf->sm_token_file;
	return r < 0 ? r : vhca_http_auth_load(&files, &ret->sm, err);
}

void vhca_credentials_replace(struct vhca_credentials *c, struct vhca_credentials *later)
{
	vhca_http_auth_replace(c->sm, &later->sm);
	vhca_http_auth_replace(c->peer, &later->peer);
}

void vhca_credentials_done(struct vhca_credentials *c)
{
	c->sm = vhca_http_auth_free(c->sm);
	c->peer = vhca_http_auth_free(c->peer);
}
