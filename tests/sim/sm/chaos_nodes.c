/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose word counts at the SM: the plugin's own rules (opensm/bindings/nodes.h), with each host's
 * port in its line of [agents].
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/http/json.h"
#include "opensm/bindings/nodes.h"
#include "tests/sim/hosts/chaos.h"

void chaos_nodes_list(struct chaos *c)
{
	struct vhca_osm_agents *agents = &c->agents;
	char node[16], line[64];

	agents->listed = true;
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		(void)snprintf(node, sizeof(node), "host%u", i);
		(void)snprintf(line, sizeof(line), "cert:%s %s", node,
			       VHCA_GUID_STR(c->hosts[i].w.port_guid));
		assert(vhca_osm_agents_add(agents, node, line, NULL) == 0);
	}
	assert(vhca_osm_agents_sort(agents, NULL) == 0);
}

/* For which port the request speaks; 0 = none. */
static uint64_t port_of(const struct chaos_request *req)
{
	static const char members[] = "/v1/members/";
	struct json_object *to = req->body ? json_object_object_get(req->body, "to") : NULL;
	uint64_t port = 0;

	if (!strncmp(req->path, members, strlen(members)))
		(void)vhca_guid_parse(req->path + strlen(members), &port);
	else if (req->body)
		(void)vhca_json_get_guid(to ? to : req->body, "port_guid", &port, NULL);
	return port;
}

static int check_withdrawal(const struct chaos *c, const struct chaos_request *req,
			    const struct vhca_osm_node *by, struct vhca_error *err)
{
	const char *guid = req->path + strlen("/v1/bindings/");
	const char *epoch = strstr(guid, "?epoch="), *port = strstr(guid, "port_guid=");

	if (!epoch || !port)
		return 0;
	return vhca_osm_node_check_withdrawal(&c->agents, c->sms[req->sm].table, by,
					      strtoull(guid, NULL, 16),
					      strtoull(epoch + strlen("?epoch="), NULL, 10),
					      strtoull(port + strlen("port_guid="), NULL, 16), err);
}

int chaos_nodes_refuse(const struct chaos *c, const struct chaos_request *req,
		       struct json_object **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char name[16];
	const struct vhca_osm_node by = {.name = name};
	int r;

	if (chaos_is(c, CHAOS_NO_NODES))
		return 0;
	(void)snprintf(name, sizeof(name), "host%u", req->from);
	if (!strcmp(req->method, "DELETE"))
		r = check_withdrawal(c, req, &by, &err);
	else
		r = vhca_osm_node_check(&c->agents, c->sms[req->sm].table, &by, port_of(req), true,
					&err);
	if (r == 0)
		return 0;
	*ret = vhca_json_problem(&err);
	return vhca_json_problem_status(&err);
}
