/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plugin's configuration: refused with file and line, or within every limit. */
#include <string.h>

#include "opensm/bindings/conf.h"
#include "opensm/lids/dynamic.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"

static bool is_file(const char *path, size_t size)
{
	return memchr(path, '\0', size) && (!path[0] || path[0] == '/');
}

static void check_policy(const struct vhca_osm_policy *policy)
{
	FUZZ_ASSERT(policy->n_allowed <= VHCA_OSM_RANGES_MAX);
	for (size_t i = 0; i < policy->n_allowed; i++) {
		const struct vhca_osm_range *range = &policy->allowed[i];

		FUZZ_ASSERT(range->first >= 1 && range->first <= range->last &&
			    range->last <= 0x7fff);
		FUZZ_ASSERT(vhca_osm_policy_allows(policy, range->first));
		FUZZ_ASSERT(vhca_osm_policy_allows(policy, range->last | 0x8000));
	}
}

static void check_agents(const struct vhca_osm_agents *agents)
{
	FUZZ_ASSERT(agents->n <= VHCA_OSM_AGENTS_MAX && (agents->listed || agents->n == 0));
	for (size_t i = 0; i < agents->n; i++) {
		const struct vhca_osm_agent *agent = &agents->list[i];

		FUZZ_ASSERT(vhca_name_is_valid(agent->node));
		FUZZ_ASSERT(vhca_caller_is_certificate(agent->certificate));
		FUZZ_ASSERT(vhca_osm_agents_find(agents, agent->certificate) == agent);
		FUZZ_ASSERT(agent->n_ports <= VHCA_OSM_NODE_PORTS_MAX);
		for (size_t p = 0; p < agent->n_ports; p++)
			FUZZ_ASSERT(vhca_osm_agents_at(agents, agent->ports[p]) == agent);
	}
}

static void check_accepted(const struct vhca_osm_conf *conf)
{
	FUZZ_ASSERT(memchr(conf->listen, '\0', sizeof(conf->listen)) && strchr(conf->listen, ':'));
	FUZZ_ASSERT(conf->socket_mode <= 0777);
	FUZZ_ASSERT(is_file(conf->tls_certificate, sizeof(conf->tls_certificate)));
	FUZZ_ASSERT(is_file(conf->tls_key, sizeof(conf->tls_key)));
	FUZZ_ASSERT(is_file(conf->tls_ca, sizeof(conf->tls_ca)));
	FUZZ_ASSERT(is_file(conf->tls_crl, sizeof(conf->tls_crl)));
	FUZZ_ASSERT(is_file(conf->token_file, sizeof(conf->token_file)));
	FUZZ_ASSERT(is_file(conf->base_file, sizeof(conf->base_file)));
	FUZZ_ASSERT(conf->state_dir[0] == '/' && is_file(conf->state_dir, sizeof(conf->state_dir)));
	FUZZ_ASSERT(conf->inherit_s <= 86400 && conf->dynamic <= VHCA_OSM_DYNAMIC_MAX);
	check_policy(&conf->policy);
	check_agents(&conf->agents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vhca_osm_conf untouched;
	const char *path = input_file(data, size);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_conf conf = untouched;

	if (vhca_osm_conf_load(path, &conf, &err) == 0) {
		fuzz_verdict(true);
		check_accepted(&conf);
		vhca_osm_conf_done(&conf);
		return 0;
	}
	fuzz_verdict(false);
	FUZZ_ASSERT(memcmp(&conf, &untouched, sizeof(conf)) == 0);
	FUZZ_ASSERT(err.kind == VHCA_ERR_INVALID && *err.code);
	FUZZ_ASSERT(strncmp(err.msg, path, strlen(path)) == 0);
	return 0;
}
