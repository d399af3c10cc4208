/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A configuration file of any content is either refused with a message that names the file, or
 * obeys every limit.
 */
#include <string.h>

#include "conf/conf.h"
#include "tests/fuzz/fuzz.h"

static bool is_string(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static void check_hcas(const struct vhca_conf *conf)
{
	FUZZ_ASSERT(conf->n_hcas <= VHCA_CONF_HCAS_MAX);
	for (unsigned int i = 0; i < conf->n_hcas; i++) {
		const struct vhca_conf_hca *hca = &conf->hcas[i];

		FUZZ_ASSERT(vhca_name_is_valid(hca->fabric));
		FUZZ_ASSERT(hca->port == 1 || hca->port == 2);
		if (!hca->is_default) /* no address stands twice */
			FUZZ_ASSERT(vhca_conf_hca(conf, hca->bdf) == hca);
	}
}

/* Every partition is found by its name, and only with permission if it is the default one. */
static void check_partitions(const struct vhca_conf *conf)
{
	FUZZ_ASSERT(conf->n_partitions <= VHCA_CONF_PARTITIONS_MAX);
	for (unsigned int i = 0; i < conf->n_partitions; i++) {
		const struct vhca_conf_partition *p = &conf->partitions[i];
		struct vhca_error err = VHCA_ERROR_INIT;
		uint16_t pkey = 0;
		size_t n = 0;
		int r = vhca_conf_resolve_pkeys(conf, p->name, &pkey, 1, &n, &err);

		FUZZ_ASSERT(vhca_pkey_base(p->pkey) != 0);
		if (r < 0)
			FUZZ_ASSERT(err.kind == VHCA_ERR_DENIED && !conf->allow_default_partition);
		else
			FUZZ_ASSERT(n == 1 && pkey == p->pkey);
	}
}

static void check_sm(const struct vhca_conf *conf)
{
	FUZZ_ASSERT(conf->n_sm_urls <= VHCA_CONF_URLS_MAX);
	for (unsigned int i = 0; i < conf->n_sm_urls; i++)
		FUZZ_ASSERT(is_string(conf->sm_urls[i], sizeof(conf->sm_urls[i])) &&
			    strncmp(conf->sm_urls[i], "http", 4) == 0);
	if (strcmp(conf->sm_backend, "vhcasm") == 0)
		FUZZ_ASSERT(conf->n_sm_urls > 0);
	FUZZ_ASSERT(conf->poll_ms >= 100 && conf->detach_retry_ms <= conf->detach_timeout_ms);
}

/* What a migration connects to is there, and no name stands twice. */
static void check_peers(const struct vhca_conf *conf)
{
	FUZZ_ASSERT(conf->n_peers <= VHCA_CONF_PEERS_MAX);
	for (unsigned int i = 0; i < conf->n_peers; i++) {
		const struct vhca_conf_peer *p = &conf->peers[i];

		FUZZ_ASSERT(vhca_name_is_valid(p->name) && vhca_conf_peer(conf, p->name) == p);
		FUZZ_ASSERT(is_string(p->agent, sizeof(p->agent)) &&
			    (strncmp(p->agent, "http://", 7) == 0 ||
			     strncmp(p->agent, "https://", 8) == 0));
		FUZZ_ASSERT(is_string(p->libvirt, sizeof(p->libvirt)) && strchr(p->libvirt, ':'));
		FUZZ_ASSERT(is_string(p->migration, sizeof(p->migration)));
	}
	FUZZ_ASSERT(is_string(conf->peer_listen, sizeof(conf->peer_listen)));
	FUZZ_ASSERT(!conf->peer_listen[0] || strchr(conf->peer_listen, ':'));
	FUZZ_ASSERT(conf->lease_ms >= 10000 && conf->lease_ms <= 3600000);
}

static void check_accepted(const struct vhca_conf *conf)
{
	FUZZ_ASSERT(is_string(conf->node_name, sizeof(conf->node_name)) && conf->node_name[0]);
	FUZZ_ASSERT(conf->state_dir[0] == '/' &&
		    is_string(conf->state_dir, sizeof(conf->state_dir)));
	FUZZ_ASSERT(conf->run_dir[0] == '/' && is_string(conf->run_dir, sizeof(conf->run_dir)));
	FUZZ_ASSERT(conf->log_level <= VHCA_LOG_DEBUG);
	FUZZ_ASSERT(conf->guid_prefix_bits >= 8 && conf->guid_prefix_bits <= 48);
	FUZZ_ASSERT(vhca_guid_is_valid(conf->guid_prefix));
	check_sm(conf);
	check_hcas(conf);
	check_partitions(conf);
	check_peers(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_conf *conf = NULL;

	if (vhca_conf_parse("f", (const char *)data, size, &conf, &err) < 0) {
		fuzz_verdict(false);
		FUZZ_ASSERT(!conf && err.kind == VHCA_ERR_INVALID && *err.code);
		FUZZ_ASSERT(err.msg[0] == 'f' && err.msg[1] == ':');
		return 0;
	}
	fuzz_verdict(true);
	check_accepted(conf);
	free(conf);
	return 0;
}
