/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/credentials.h"

/* The SM gets its token, and those of [api] listen let in there: other agents neither get the one
 * nor come in by the others. */
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
	if (r == 0)
		r = vhca_http_auth_load(&files, &ret->sm, err);
	files.tokens = conf->api_token_file;
	files.names_tokens = true;
	if (r == 0 && conf->api_listen[0] && conf->tls_certificate[0])
		r = vhca_http_auth_load(&files, &ret->api, err);
	return r;
}

void vhca_credentials_replace(struct vhca_credentials *c, struct vhca_credentials *later)
{
	vhca_http_auth_replace(c->sm, &later->sm);
	vhca_http_auth_replace(c->peer, &later->peer);
	vhca_http_auth_replace(c->api, &later->api);
}

void vhca_credentials_done(struct vhca_credentials *c)
{
	c->sm = vhca_http_auth_free(c->sm);
	c->peer = vhca_http_auth_free(c->peer);
	c->api = vhca_http_auth_free(c->api);
}
