/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/server.h"

#include <errno.h>
#include <string.h>

#include "common/base/text.h"

int vhca_ctl_refuse(struct vhca_error *err, const char *message, const char *hint)
{
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s", message);
	vhca_error_hint(err, "%s", hint);
	return -EINVAL;
}

static bool has_files(const struct vhca_ctl *ctl)
{
	return ctl->opts[VHCA_OPT_CA] || ctl->opts[VHCA_OPT_CERT] || ctl->opts[VHCA_OPT_KEY] ||
	       ctl->opts[VHCA_OPT_TOKEN_FILE];
}

int vhca_ctl_use_socket(struct vhca_ctl *ctl, const char *path, struct vhca_error *err)
{
	if (has_files(ctl))
		return vhca_ctl_refuse(
			err, "a unix socket asks for no certificate and no token",
			"--ca, --cert, --key and --token-file go with an https --url");
	ctl->server.socket_path = path;
	return vhca_strcpy(ctl->server.url, sizeof(ctl->server.url), "http://localhost");
}

int vhca_ctl_parse_url(struct vhca_ctl *ctl, const char *what, const char *url,
		       struct vhca_error *err)
{
	static const char https[] = "https://", http[] = "http://";
	char *own = ctl->server.url;
	const char *host = NULL;
	size_t len;

	if (strncmp(url, https, sizeof(https) - 1) == 0)
		host = url + sizeof(https) - 1;
	else if (strncmp(url, http, sizeof(http) - 1) == 0)
		host = url + sizeof(http) - 1;
	if (!host || vhca_strcpy(own, sizeof(ctl->server.url), url) < 0) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "%s: neither https://HOST:PORT nor http://HOST:PORT", what);
		vhca_error_hint(err, "%s help", ctl->program->name);
		return -EINVAL;
	}
	len = strlen(own);
	if (len > 0 && own[len - 1] == '/')
		own[len - 1] = '\0';
	host = own + (host - url);
	if (host[0] && !strpbrk(host, "/?#@"))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
			     "%s: a host and a port, and nothing else", what);
	vhca_error_hint(err, "a token goes into --token-file");
	return -EINVAL;
}

int vhca_ctl_use_url(struct vhca_ctl *ctl, struct vhca_http_auth_files files,
		     struct vhca_error *err)
{
	const char *const *opts = ctl->opts;
	int r;

	if (strncmp(ctl->server.url, "https:", 6) != 0 && has_files(ctl))
		return vhca_ctl_refuse(err, "certificates and tokens go by https only",
				       "--url https://HOST:PORT");
	if (opts[VHCA_OPT_CA])
		files.authority = opts[VHCA_OPT_CA];
	if (opts[VHCA_OPT_CERT] || opts[VHCA_OPT_KEY] || opts[VHCA_OPT_TOKEN_FILE]) {
		files.certificate = opts[VHCA_OPT_CERT];
		files.key = opts[VHCA_OPT_KEY];
		files.tokens = opts[VHCA_OPT_TOKEN_FILE];
		files.names_tokens = false;
	}
	r = vhca_http_auth_load(&files, &ctl->server.auth, err);
	if (r < 0 && !err->hint[0])
		vhca_error_hint(err, "say --ca, --cert and --key, or --token-file; or be root");
	return r;
}
