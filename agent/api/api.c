/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/api.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "common/base/file.h"
#include "common/base/log.h"

struct door {
	struct api_context context;
	struct vhca_http_server *server;
};

struct vhca_api {
	struct vhca_http_answers answers;
	struct api_polls *polls;
	struct door here, network; /* vhcad.sock; [api] listen, or no server */
};

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/node", VHCA_CALLER_READ, api_get_node},
	{"GET", "/v1/hcas", VHCA_CALLER_READ, api_get_hcas, "fields", api_openapi_hcas},
	{"GET", "/v1/hcas/{}", VHCA_CALLER_READ, api_get_hca},
	{"DELETE", "/v1/hcas/{}", VHCA_CALLER_ADMIN, api_delete_hca},
	{"GET", "/v1/vfs", VHCA_CALLER_READ, api_get_vfs,
	 "state domain pf fabric numa partition limit after fields", api_openapi_vfs},
	{"GET", "/v1/vfs/{}", VHCA_CALLER_READ, api_get_vf},
	{"GET", "/v1/vfs/{}/explain", VHCA_CALLER_READ, api_explain_vf},
	{"GET", "/v1/domains", VHCA_CALLER_READ, api_get_domains, "limit after fields",
	 api_openapi_domains},
	{"GET", "/v1/domains/{}", VHCA_CALLER_READ, api_get_domain},
	{"GET", "/v1/domains/{}/explain", VHCA_CALLER_READ, api_explain_domain},
	{"POST", "/v1/domains/{}/adopt", VHCA_CALLER_OPERATE, api_post_adopt},
	{"POST", "/v1/domains/{}/takeover", VHCA_CALLER_ADMIN, api_post_takeover},
	{"POST", "/v1/domains/{}/vfs/{}", VHCA_CALLER_OPERATE, api_post_attach},
	{"DELETE", "/v1/domains/{}/vfs/{}", VHCA_CALLER_OPERATE, api_delete_attach},
	{"GET", "/v1/claims", VHCA_CALLER_READ, api_get_claims,
	 "domain pf fabric numa partition limit after fields", api_openapi_claims},
	{"GET", "/v1/claims/{}", VHCA_CALLER_READ, api_get_claim},
	{"POST", "/v1/claims", VHCA_CALLER_OPERATE, api_post_claims},
	{"DELETE", "/v1/claims/{}", VHCA_CALLER_OPERATE, api_delete_claim, NULL, NULL,
	 api_claim_state, "/v1/claims/{id}"},
	{"POST", "/v1/claims/{}/lease", VHCA_CALLER_OPERATE, api_renew_claim, NULL, NULL,
	 api_claim_state, "/v1/claims/{id}"},
	{"POST", "/v1/plan", VHCA_CALLER_READ, api_post_plan},
	{"GET", "/v1/partitions", VHCA_CALLER_READ, api_get_partitions, "limit after fields",
	 api_openapi_partitions},
	{"GET", "/v1/partitions/{}", VHCA_CALLER_READ, api_get_partition},
	{"PUT", "/v1/fabrics/{}/ports/{}", VHCA_CALLER_OPERATE, api_put_port, NULL, NULL,
	 api_port_state, "/v1/claims/{id}"},
	{"PUT", "/v1/fabrics/{}/ports/{}/partitions", VHCA_CALLER_OPERATE, api_put_partitions, NULL,
	 NULL, api_port_state, "/v1/claims/{id}"},
	{"DELETE", "/v1/fabrics/{}/ports/{}", VHCA_CALLER_OPERATE, api_delete_port, NULL, NULL,
	 api_port_state, "/v1/claims/{id}"},
	{"GET", "/v1/migrations", VHCA_CALLER_READ, api_get_migrations,
	 "domain peer state final limit after fields", api_openapi_migrations},
	{"POST", "/v1/migrations", VHCA_CALLER_OPERATE, api_post_migrations},
	{"GET", "/v1/migrations/{}", VHCA_CALLER_READ, api_get_migration},
	{"POST", "/v1/migrations/{}/abort", VHCA_CALLER_OPERATE, api_abort_migration},
	{"POST", "/v1/migrations/{}/lease", VHCA_CALLER_OPERATE, api_extend_migration},
	{"GET", "/v1/drain", VHCA_CALLER_READ, api_get_drain},
	{"POST", "/v1/drain", VHCA_CALLER_ADMIN, api_post_drain},
	{"DELETE", "/v1/drain", VHCA_CALLER_ADMIN, api_delete_drain},
	{"GET", "/v1/config", VHCA_CALLER_READ, api_get_config, "fields", api_openapi_settings},
	{"POST", "/v1/reload", VHCA_CALLER_ADMIN, api_post_reload},
	{"GET", "/v1/outbox", VHCA_CALLER_READ, api_get_outbox, "fields", api_openapi_outbox},
	{"GET", "/v1/events", VHCA_CALLER_READ, api_get_events, "since wait"},
	{"GET", "/v1/opennebula/probe/host-system", VHCA_CALLER_READ, api_get_opennebula},
	{"GET", "/openapi.json", VHCA_CALLER_READ, api_get_openapi},
	{"GET", "/metrics", VHCA_CALLER_METRICS, api_get_metrics},
	{"GET", "/healthz", VHCA_CALLER_METRICS, api_get_healthz},
	{"GET", "/readyz", VHCA_CALLER_METRICS, api_get_readyz},
	{.method = NULL},
};

/* ---- life ---- */

static int give_to_group(const char *path, const char *group, struct vhca_error *err)
{
	const struct group *g;

	if (!group[0])
		return 0;
	g = getgrnam(group); /* start-up: the loop does not run yet */
	if (!g)
		return vhca_error_set(err, VHCA_ERR_INVALID, "no_such_group", 0,
				      "api.group: group %s does not exist", group);
	if (chown(path, (uid_t)-1, g->gr_gid) < 0 || chmod(path, 0660) < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "api_socket", errno,
				      "%s: cannot give to group %s", path, group);
	return 0;
}

static int open_door(struct door *door, const char *url, const struct vhca_http_limits *limits,
		     struct vhca_error *err)
{
	struct api_context *ctx = &door->context;
	int r = vhca_http_server_new(url, 0600, limits, routes, ctx, &door->server, err);

	if (r == 0 && vhca_http_loop_attach(ctx->args.loop, door->server, &ctx->adapter) < 0)
		r = vhca_error_no_memory(err, "API");
	return r;
}

static void close_door(struct door *door)
{
	vhca_http_loop_detach(door->context.adapter);
	vhca_http_server_free(door->server);
}

static int open_here(struct vhca_api *api, const struct vhca_conf *conf, struct vhca_error *err)
{
	const struct vhca_http_limits limits = {.admit = api_admit,
						.rules = &conf->api_roles,
						.answers = &api->answers,
						.answering_max = VHCA_HTTP_ANSWERING_MAX};
	char url[128], path[108];
	int r;

	(void)snprintf(path, sizeof(path), "%s/vhcad.sock", conf->run_dir);
	(void)snprintf(url, sizeof(url), "unix:%s", path);
	r = open_door(&api->here, url, &limits, err);
	if (r == 0)
		r = give_to_group(path, conf->api_group, err);
	return r;
}

static int open_network(struct vhca_api *api, const struct vhca_api_args *args,
			struct vhca_error *err)
{
	const struct vhca_http_limits limits = {.auth = args->auth,
						.admit = api_admit,
						.rules = &args->conf->api_listen_roles,
						.answers = &api->answers,
						.answering_max = VHCA_HTTP_ANSWERING_MAX};

	if (!args->conf->api_listen[0])
		return 0;
	if (!args->auth)
		vhca_log_warning("[api] listen: nobody shows who he is at %s: without [tls] it is "
				 "plain HTTP",
				 args->conf->api_listen);
	return open_door(&api->network, args->conf->api_listen, &limits, err);
}

int vhca_api_new(const struct vhca_api_args *args, struct vhca_api **ret, struct vhca_error *err)
{
	struct vhca_api *api = calloc(1, sizeof(*api));
	int r;

	if (!api || api_polls_new(args->loop, args->events, &api->polls) < 0) {
		free(api);
		return vhca_error_no_memory(err, "API");
	}
	api->here.context = api->network.context =
		(struct api_context){.args = *args,
				     .started_ms = vhca_wall_ms(),
				     .polls = api->polls,
				     .answers = &api->answers};
	r = open_here(api, args->conf, err);
	if (r == 0)
		r = open_network(api, args, err);
	if (r < 0) {
		vhca_api_free(api);
		return r;
	}
	*ret = api;
	return 0;
}

struct vhca_api *vhca_api_free(struct vhca_api *api)
{
	if (!api)
		return NULL;
	api_polls_free(api->polls);
	close_door(&api->here);
	close_door(&api->network);
	free(api);
	return NULL;
}
