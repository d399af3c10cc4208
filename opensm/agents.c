/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/agents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define GROWS_BY 64

static int bad(struct vhca_error *err, const char *word, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0, "\"%.160s\" %s", word, why);
}

static int reserve(struct vhca_osm_agents *agents, struct vhca_error *err)
{
	struct vhca_osm_agent *list;

	if (agents->n % GROWS_BY)
		return 0;
	list = reallocarray(agents->list, agents->n + GROWS_BY, sizeof(*list));
	if (!list)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "[agents]");
	agents->list = list;
	return 0;
}

static bool has_node(const struct vhca_osm_agents *agents, const char *node)
{
	for (size_t i = 0; i < agents->n; i++)
		if (strcmp(agents->list[i].node, node) == 0)
			return true;
	return false;
}

int vhca_osm_agents_add(struct vhca_osm_agents *agents, const char *node, const char *value,
			struct vhca_error *err)
{
	struct vhca_osm_agent agent;

	if (!vhca_name_is_valid(node) || vhca_strcpy(agent.node, sizeof(agent.node), node) < 0)
		return bad(err, node, "is no name of up to 31 letters, digits, \"_\" and \"-\"");
	if (strpbrk(value, " \t") || !vhca_caller_is_certificate(value))
		return bad(err, value, "is not cert:NAME or cert-sha256:HEX");
	if (has_node(agents, node))
		return bad(err, node, "stands twice in [agents]");
	if (agents->n == VHCA_OSM_AGENTS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "more than %d in [agents]", VHCA_OSM_AGENTS_MAX);
	if (reserve(agents, err) < 0)
		return -ENOMEM;
	(void)vhca_strcpy(agent.certificate, sizeof(agent.certificate), value); /* was checked */
	agents->list[agents->n++] = agent;
	return 0;
}

static int by_certificate(const void *a, const void *b)
{
	const struct vhca_osm_agent *x = a, *y = b;

	return strcmp(x->certificate, y->certificate);
}

int vhca_osm_agents_sort(struct vhca_osm_agents *agents, struct vhca_error *err)
{
	if (agents->n)
		qsort(agents->list, agents->n, sizeof(*agents->list), by_certificate);
	for (size_t i = 1; i < agents->n; i++)
		if (by_certificate(&agents->list[i - 1], &agents->list[i]) == 0)
			return bad(err, agents->list[i].certificate, "stands twice in [agents]");
	return 0;
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

void vhca_osm_agents_done(struct vhca_osm_agents *agents)
{
	free(agents->list);
	*agents = (struct vhca_osm_agents){.n = 0};
}
