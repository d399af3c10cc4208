/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/plugin/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/auth.h"
#include "ctl/cli/api.h"
#include "ctl/plugin/commands.h"
#include "opensm/bindings/conf.h"

struct connection {
	struct vhca_osm_conf conf;
	char url[VHCA_CTL_URL_MAX];
	struct vhca_http_auth *auth;
};

static int refuse(struct vhca_error *err, const char *message, const char *hint)
{
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s", message);
	vhca_error_hint(err, "%s", hint);
	return -EINVAL;
}

/* ---- where ---- */

/* Who listens everywhere listens here. */
static void set_url(struct connection *conn)
{
	static const char any[] = "0.0.0.0:", any_v6[] = "[::]:";
	const char *listen = conn->conf.listen, *host = "";
	struct vhca_strbuf sb;

	if (strncmp(listen, any, sizeof(any) - 1) == 0) {
		host = "127.0.0.1";
		listen = strrchr(listen, ':');
	} else if (strncmp(listen, any_v6, sizeof(any_v6) - 1) == 0) {
		host = "[::1]";
		listen = strrchr(listen, ':');
	}
	vhca_strbuf_init(&sb, conn->url, sizeof(conn->url));
	vhca_strbuf_add(&sb, "%s://%s%s", conn->conf.tls_certificate[0] ? "https" : "http", host,
			listen);
}

static int take_url(const char *text, struct connection *conn, struct vhca_error *err)
{
	static const char https[] = "https://", http[] = "http://";
	const char *host = NULL;
	size_t len;

	if (strncmp(text, https, sizeof(https) - 1) == 0)
		host = text + sizeof(https) - 1;
	else if (strncmp(text, http, sizeof(http) - 1) == 0)
		host = text + sizeof(http) - 1;
	if (!host || vhca_strcpy(conn->url, sizeof(conn->url), text) < 0)
		return refuse(err, "--url: neither https://HOST:PORT nor http://HOST:PORT",
			      "vhcasmctl help");
	len = strlen(conn->url);
	if (len > 0 && conn->url[len - 1] == '/')
		conn->url[len - 1] = '\0';
	if (!host[0] || strpbrk(conn->url + (host - text), "/?#@"))
		return refuse(err, "--url: a host and a port, and nothing else",
			      "a token goes into --token-file");
	return 0;
}

/* ---- who ---- */

static int load_auth(const struct vhca_ctl *ctl, struct vhca_http_auth_files files,
		     struct connection *conn, struct vhca_error *err)
{
	const char *const *opts = ctl->opts;
	int r;

	if (opts[VHCA_OPT_CA])
		files.authority = opts[VHCA_OPT_CA];
	if (opts[VHCA_OPT_CERT] || opts[VHCA_OPT_KEY] || opts[VHCA_OPT_TOKEN_FILE]) {
		files.certificate = opts[VHCA_OPT_CERT];
		files.key = opts[VHCA_OPT_KEY];
		files.tokens = opts[VHCA_OPT_TOKEN_FILE];
		files.names_tokens = false;
	}
	r = vhca_http_auth_load(&files, &conn->auth, err);
	if (r < 0 && !err->hint[0])
		vhca_error_hint(err, "say --ca, --cert and --key, or --token-file; or be root");
	return r;
}

static bool has_files(const struct vhca_ctl *ctl)
{
	return ctl->opts[VHCA_OPT_CA] || ctl->opts[VHCA_OPT_CERT] || ctl->opts[VHCA_OPT_KEY] ||
	       ctl->opts[VHCA_OPT_TOKEN_FILE];
}

/* ---- both ---- */

static int by_socket(struct vhca_ctl *ctl, const char *path, struct vhca_error *err)
{
	if (has_files(ctl))
		return refuse(err, "a unix socket asks for no certificate and no token",
			      "--ca, --cert, --key and --token-file go with an https --url");
	ctl->server.socket_path = path;
	ctl->server.url = "http://localhost";
	ctl->server.denied = "be root or OpenSM's user, or say --socket PATH or --url URL";
	ctl->server.silent = "systemctl status opensm; its log says \"vhcasm: not started\" and "
			     "why, if the plugin was refused";
	return 0;
}

static int by_url(struct vhca_ctl *ctl, struct vhca_http_auth_files files, struct connection *conn,
		  struct vhca_error *err)
{
	int r;

	if (strncmp(conn->url, "https:", 6) != 0 && has_files(ctl))
		return refuse(err, "certificates and tokens go by https only",
			      "--url https://HOST:PORT");
	r = load_auth(ctl, files, conn, err);
	ctl->server.url = conn->url;
	ctl->server.auth = conn->auth;
	ctl->server.denied = "--cert FILE and --key FILE with a certificate that the plugin's "
			     "tls_ca knows, or --token-file FILE";
	ctl->server.silent = "systemctl status opensm there; of https, --ca has to know the "
			     "plugin's certificate, and --url to name it as that does";
	return r;
}

/*
 * As the plugin's own file says, with the plugin's own files. One that is not there, or not for the
 * caller, means what an empty one does.
 */
static int by_conf(struct vhca_ctl *ctl, struct connection *conn, struct vhca_error *err)
{
	static const char prefix[] = "unix:";
	const char *path = ctl->opts[VHCA_OPT_CONFIG];
	const struct vhca_osm_conf *conf = &conn->conf;
	int r = 0;

	if (path || access(VHCA_PLUGIN_CONF, R_OK) == 0)
		r = vhca_osm_conf_load(path ? path : VHCA_PLUGIN_CONF, &conn->conf, err);
	if (r < 0) {
		err->kind = VHCA_ERR_INVALID; /* also of a file that is missing: no such LID is 3 */
		vhca_error_hint(err, "mend it, or say --socket PATH or --url URL");
		return r;
	}
	if (strncmp(conf->listen, prefix, sizeof(prefix) - 1) == 0)
		return by_socket(ctl, conf->listen + sizeof(prefix) - 1, err);
	set_url(conn);
	return by_url(ctl,
		      (struct vhca_http_auth_files){
			      .certificate = conf->tls_ca[0] ? conf->tls_certificate : NULL,
			      .key = conf->tls_ca[0] ? conf->tls_key : NULL,
			      .authority = conf->tls_certificate,
			      .tokens = conf->token_file,
			      .names_tokens = true,
		      },
		      conn, err);
}

static int find_plugin(struct vhca_ctl *ctl, struct connection *conn, struct vhca_error *err)
{
	const char *socket = ctl->opts[VHCA_OPT_SOCKET], *url = ctl->opts[VHCA_OPT_URL];
	int r;

	if (socket && url)
		return refuse(err, "--socket and --url: one of them", "vhcasmctl help");
	if (socket)
		return by_socket(ctl, socket, err);
	if (!url)
		return by_conf(ctl, conn, err);
	r = take_url(url, conn, err);
	return r < 0 ? r : by_url(ctl, (struct vhca_http_auth_files){0}, conn, err);
}

int vhca_plugin_connect(struct vhca_ctl *ret, struct vhca_error *err)
{
	struct connection *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return vhca_error_no_memory(err, "vhcasmctl");
	vhca_osm_conf_set_defaults(&conn->conf);
	ret->connection = conn;
	ret->server.name = "the plugin";
	return find_plugin(ret, conn, err);
}

void vhca_plugin_disconnect(struct vhca_ctl *ctl)
{
	struct connection *conn = ctl->connection;

	if (!conn)
		return;
	(void)vhca_http_auth_free(conn->auth);
	vhca_osm_conf_done(&conn->conf);
	free(conn);
	ctl->connection = NULL;
}
