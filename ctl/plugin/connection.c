/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/plugin/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "ctl/cli/server.h"
#include "ctl/plugin/commands.h"
#include "opensm/bindings/conf.h"

/* Who listens everywhere listens here. */
static void set_url(const struct vhca_osm_conf *conf, char ret[static VHCA_CTL_URL_MAX])
{
	static const char any[] = "0.0.0.0:", any_v6[] = "[::]:";
	const char *listen = conf->listen, *host = "";
	struct vhca_strbuf sb;

	if (strncmp(listen, any, sizeof(any) - 1) == 0) {
		host = "127.0.0.1";
		listen = strrchr(listen, ':');
	} else if (strncmp(listen, any_v6, sizeof(any_v6) - 1) == 0) {
		host = "[::1]";
		listen = strrchr(listen, ':');
	}
	vhca_strbuf_init(&sb, ret, VHCA_CTL_URL_MAX);
	vhca_strbuf_add(&sb, "%s://%s%s", conf->tls_certificate[0] ? "https" : "http", host,
			listen);
}

static int by_socket(struct vhca_ctl *ctl, const char *path, struct vhca_error *err)
{
	ctl->server.denied = "be root or OpenSM's user, or say --socket PATH or --url URL";
	ctl->server.silent = "systemctl status opensm; its log says \"vhcasm: not started\" and "
			     "why, if the plugin was refused";
	return vhca_ctl_use_socket(ctl, path, err);
}

static int by_url(struct vhca_ctl *ctl, struct vhca_http_auth_files files, struct vhca_error *err)
{
	ctl->server.denied = "--cert FILE and --key FILE with a certificate that the plugin's "
			     "tls_ca knows, or --token-file FILE";
	ctl->server.silent = "systemctl status opensm there; of https, --ca has to know the "
			     "plugin's certificate, and --url to name it as that does";
	return vhca_ctl_use_url(ctl, files, err);
}

/*
 * As the plugin's own file says, with the plugin's own files. One that is not there, or not for the
 * caller, means what an empty one does.
 */
static int by_conf(struct vhca_ctl *ctl, struct vhca_osm_conf *conf, struct vhca_error *err)
{
	static const char prefix[] = "unix:";
	const char *path = ctl->opts[VHCA_OPT_CONFIG];
	int r = 0;

	if (path || access(VHCA_PLUGIN_CONF, R_OK) == 0)
		r = vhca_osm_conf_load(path ? path : VHCA_PLUGIN_CONF, conf, err);
	if (r < 0) {
		err->kind = VHCA_ERR_INVALID; /* also of a file that is missing: no such LID is 3 */
		vhca_error_hint(err, "mend it, or say --socket PATH or --url URL");
		return r;
	}
	if (strncmp(conf->listen, prefix, sizeof(prefix) - 1) == 0)
		return by_socket(ctl, conf->listen + sizeof(prefix) - 1, err);
	set_url(conf, ctl->server.url);
	return by_url(ctl,
		      (struct vhca_http_auth_files){
			      .certificate = conf->tls_ca[0] ? conf->tls_certificate : NULL,
			      .key = conf->tls_ca[0] ? conf->tls_key : NULL,
			      .authority = conf->tls_certificate,
			      .tokens = conf->token_file,
			      .names_tokens = true,
		      },
		      err);
}

static int find_plugin(struct vhca_ctl *ctl, struct vhca_osm_conf *conf, struct vhca_error *err)
{
	const char *socket = ctl->opts[VHCA_OPT_SOCKET], *url = ctl->opts[VHCA_OPT_URL];
	int r;

	if (socket && url)
		return vhca_ctl_refuse(err, "--socket and --url: one of them", "vhcasmctl help");
	if (socket)
		return by_socket(ctl, socket, err);
	if (!url)
		return by_conf(ctl, conf, err);
	r = vhca_ctl_parse_url(ctl, "--url", url, err);
	return r < 0 ? r : by_url(ctl, (struct vhca_http_auth_files){0}, err);
}

int vhca_plugin_connect(struct vhca_ctl *ret, struct vhca_error *err)
{
	struct vhca_osm_conf *conf = calloc(1, sizeof(*conf));

	if (!conf)
		return vhca_error_no_memory(err, "vhcasmctl");
	vhca_osm_conf_set_defaults(conf);
	ret->connection = conf;
	ret->server.name = "the plugin";
	return find_plugin(ret, conf, err);
}

void vhca_plugin_disconnect(struct vhca_ctl *ctl)
{
	struct vhca_osm_conf *conf = ctl->connection;

	if (!conf)
		return;
	vhca_osm_conf_done(conf);
	free(conf);
	ctl->connection = NULL;
}
