/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/agents.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define GROWS_BY 64

static int bad(struct vhca_error *err, const char *word, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0, "\"%.160s\" %s", word, why);
}

const struct vhca_osm_agent *vhca_osm_agents_of(const struct vhca_osm_agents *agents,
						const char *node)
{
	for (size_t i = 0; i < agents->n; i++)
		if (strcmp(agents->list[i].node, node) == 0)
			return &agents->list[i];
	return NULL;
}

static int add_port(struct vhca_osm_agent *agent, const char *word, struct vhca_error *err)
{
	uint64_t guid;

	if (vhca_guid_parse(word, &guid) < 0 || !vhca_guid_is_valid(guid))
		return bad(err, word, "is no port GUID");
	if (agent->n_ports == VHCA_OSM_NODE_PORTS_MAX)
		return bad(err, word, "is one port too many: a node has up to 16");
	agent->ports[agent->n_ports++] = guid;
	return 0;
}

/* "CERTIFICATE [PORT_GUID...]" */
static int read_line(struct vhca_osm_agent *agent, const char *value, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *copy = strdup(value);
	char *rest = copy, *word = copy ? strsep(&rest, " \t") : NULL;
	int r = 0;

	if (!word)
		return vhca_error_no_memory(err, "[agents]");
	if (vhca_caller_take_certificate(word, agent->certificate) < 0)
		return bad(err, word, "is not cert:NAME or cert-sha256:HEX");
	while (r == 0 && (word = strsep(&rest, " \t")))
		if (*word)
			r = add_port(agent, word, err);
	return r;
}

int vhca_osm_agents_add(struct vhca_osm_agents *agents, const char *node, const char *value,
			struct vhca_error *err)
{
	struct vhca_osm_agent agent = {.n_ports = 0}, *list = agents->list;
	int r;

	if (!vhca_name_is_valid(node) || vhca_strcpy(agent.node, sizeof(agent.node), node) < 0)
		return bad(err, node, "is no name of up to 31 letters, digits, \"_\" and \"-\"");
	r = read_line(&agent, value, err);
	if (r < 0)
		return r;
	if (vhca_osm_agents_of(agents, node))
		return bad(err, node, "stands twice in [agents]");
	if (agents->n == VHCA_OSM_AGENTS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "more than %d in [agents]", VHCA_OSM_AGENTS_MAX);
	if (agents->n % GROWS_BY == 0)
		list = reallocarray(list, agents->n + GROWS_BY, sizeof(*list));
	if (!list)
		return vhca_error_no_memory(err, "[agents]");
	agents->list = list;
	agents->list[agents->n++] = agent;
	return 0;
}

static int by_certificate(const void *a, const void *b)
{
	const struct vhca_osm_agent *x = a, *y = b;

	return strcmp(x->certificate, y->certificate);
}

static int by_guid(const void *a, const void *b)
{
	const struct vhca_osm_agent_port *x = a, *y = b;

	return (x->guid > y->guid) - (x->guid < y->guid);
}

/* The list is not to grow any more. */
static int sort_ports(struct vhca_osm_agents *agents, struct vhca_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < agents->n; i++)
		n += agents->list[i].n_ports;
	if (n == 0)
		return 0;
	agents->ports = calloc(n, sizeof(*agents->ports));
	if (!agents->ports)
		return vhca_error_no_memory(err, "[agents]");
	for (size_t i = 0; i < agents->n; i++)
		for (size_t p = 0; p < agents->list[i].n_ports; p++)
			agents->ports[agents->n_ports++] = (struct vhca_osm_agent_port){
				.guid = agents->list[i].ports[p], .agent = &agents->list[i]};
	qsort(agents->ports, agents->n_ports, sizeof(*agents->ports), by_guid);
	for (size_t i = 1; i < agents->n_ports; i++)
		if (agents->ports[i - 1].guid == agents->ports[i].guid)
			return bad(err, VHCA_GUID_STR(agents->ports[i].guid),
				   "stands twice in [agents]");
	return 0;
}

int vhca_osm_agents_sort(struct vhca_osm_agents *agents, struct vhca_error *err)
{
	if (agents->n)
		qsort(agents->list, agents->n, sizeof(*agents->list), by_certificate);
	for (size_t i = 1; i < agents->n; i++)
		if (by_certificate(&agents->list[i - 1], &agents->list[i]) == 0)
			return bad(err, agents->list[i].certificate, "stands twice in [agents]");
	return sort_ports(agents, err);
}

const struct vhca_osm_agent *vhca_osm_agents_find(const struct vhca_osm_agents *agents,
						  const char *certificate)
{
	struct vhca_osm_agent key;

	if (agents->n == 0 ||
	    vhca_strcpy(key.certificate, sizeof(key.certificate), certificate) < 0)
		return NULL;
	return bsearch(&key, agents->list, agents->n, sizeof(key), by_certificate);
}

const struct vhca_osm_agent *vhca_osm_agents_at(const struct vhca_osm_agents *agents,
						uint64_t port_guid)
{
	const struct vhca_osm_agent_port key = {.guid = port_guid}, *found;

	if (agents->n_ports == 0)
		return NULL;
	found = bsearch(&key, agents->ports, agents->n_ports, sizeof(key), by_guid);
	return found ? found->agent : NULL;
}

void vhca_osm_agents_done(struct vhca_osm_agents *agents)
{
	free(agents->ports);
	free(agents->list);
	*agents = (struct vhca_osm_agents){.n = 0};
}
