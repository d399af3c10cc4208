/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conf/validate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "conf/value.h"

static int check_sm(const struct vhca_conf *conf, struct vhca_error *err)
{
	static const char *const policies[] = {[VHCA_LID_VPORT] = "vport",
					       [VHCA_LID_DYNAMIC] = "dynamic",
					       [VHCA_LID_FOLLOW] = "follow"};
	bool none = strcmp(conf->sm_backend, "none") == 0;

	if (!none && conf->n_sm_urls == 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[sm] url: needed with backend = %s", conf->sm_backend);
	if (none && conf->sm_require != VHCA_SM_REQUIRE_NOTHING)
		return vhca_error_set(
			err, VHCA_ERR_INVALID, "contradiction", 0,
			"[sm] require: attach cannot be fulfilled with backend = none");
	if (none && conf->lid_policy != VHCA_LID_HOST)
		return vhca_error_set(err, VHCA_ERR_INVALID, "contradiction", 0,
				      "[sm] lid_policy: %s cannot be fulfilled with backend = none",
				      policies[conf->lid_policy]);
	return 0;
}

/* A token in clear may be used by whoever reads it on its way. */
static int check_token(const struct vhca_conf *conf, struct vhca_error *err)
{
	for (unsigned int i = 0; i < conf->n_sm_urls && conf->sm_token_file[0]; i++)
		if (strncmp(conf->sm_urls[i], "https:", 6) != 0)
			return vhca_error_set(err, VHCA_ERR_INVALID, "contradiction", 0,
					      "[sm] token_file: %.120s is no https:// URL",
					      conf->sm_urls[i]);
	return 0;
}

/* A role is of no use to somebody whom the socket does not let in. */
static int check_roles(const struct vhca_conf *conf, struct vhca_error *err)
{
	if (conf->api_roles.n > 0 && !conf->api_group[0])
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[api] group: missing: without it only root can open the "
				      "socket, and no role counts");
	return 0;
}

/* Nobody is let in whom nothing names, and what names somebody is of use to somebody. */
static int check_listen(const struct vhca_conf *conf, struct vhca_error *err)
{
	bool tls = conf->tls_certificate[0], tokens = conf->api_token_file[0],
	     roles = conf->api_listen_roles.n > 0;

	if (!conf->api_listen[0] && (tokens || roles))
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[api] listen: missing: only there %s counts",
				      tokens ? "token_file" : "listen_roles");
	if (!conf->api_listen[0])
		return 0;
	if (vhca_conf_listen_overlaps(conf->api_listen, conf->peer_listen))
		return vhca_error_set(err, VHCA_ERR_INVALID, "contradiction", 0,
				      "[api] listen: %s and peer_listen = %s are one address: each "
				      "needs a port of its own",
				      conf->api_listen, conf->peer_listen);
	if (tokens && !tls)
		return vhca_error_set(
			err, VHCA_ERR_INVALID, "missing_key", 0,
			"[tls] certificate: missing: tokens of [api] token_file go by "
			"https only");
	if (tls && !tokens && !conf->tls_ca[0])
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[tls] ca: missing: it, or [api] token_file, says who may "
				      "ask at [api] listen");
	if (!tokens && !roles)
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[api] listen_roles: missing: without it nobody has a role "
				      "at [api] listen");
	return 0;
}

/* Who is on the way to another host reads what is said in clear, and says what he likes. */
static bool is_in_clear(const char *url)
{
	return strncmp(url, "http://", 7) == 0 && !vhca_is_loopback(url + 7);
}

static int refuse_clear(const char *section, const char *key, const char *value,
			struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "insecure", 0,
			     "[%s] %s: %.120s is plain HTTP beyond this host: whoever is there "
			     "may report and ask for VFs",
			     section, key, value);
	vhca_error_hint(err,
			"use https with [tls] (certificate, key, ca), or write insecure = yes in "
			"[%s] where the network itself keeps others out",
			section);
	return -EINVAL;
}

static bool may_be_heard(const struct vhca_conf *conf, const char *listen)
{
	return listen[0] && !conf->tls_certificate[0] && !conf->api_insecure &&
	       !vhca_is_loopback(listen);
}

static int check_clear(const struct vhca_conf *conf, struct vhca_error *err)
{
	bool told = strcmp(conf->sm_backend, "none") != 0 && !conf->sm_insecure;
	char section[VHCA_NAME_MAX + 8];

	if (may_be_heard(conf, conf->peer_listen))
		return refuse_clear("api", "peer_listen", conf->peer_listen, err);
	if (may_be_heard(conf, conf->api_listen))
		return refuse_clear("api", "listen", conf->api_listen, err);
	for (unsigned int i = 0; i < conf->n_sm_urls && told; i++)
		if (is_in_clear(conf->sm_urls[i]))
			return refuse_clear("sm", "url", conf->sm_urls[i], err);
	for (unsigned int i = 0; i < conf->n_peers; i++) {
		const struct vhca_conf_peer *p = &conf->peers[i];

		(void)snprintf(section, sizeof(section), "peer %s", p->name);
		if (is_in_clear(p->agent) && !p->insecure)
			return refuse_clear(section, "agent", p->agent, err);
	}
	return 0;
}

static int check_tls(const struct vhca_conf *conf, struct vhca_error *err)
{
	if (!conf->tls_certificate[0] != !conf->tls_key[0])
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0, "[tls] %s: missing",
				      conf->tls_key[0] ? "certificate" : "key");
	/* Encrypted, and open to all, would look safer than it is. */
	if (conf->tls_certificate[0] && conf->peer_listen[0] && !conf->tls_ca[0])
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[tls] ca: missing: it says which agents may ask at [api] "
				      "peer_listen");
	if (conf->tls_crl[0] && !conf->tls_ca[0])
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[tls] ca: missing: crl says which of its certificates are "
				      "revoked");
	return 0;
}

static int check_libvirt(const struct vhca_conf *conf, struct vhca_error *err)
{
	if (conf->detach_retry_ms > conf->detach_timeout_ms)
		return vhca_error_set(err, VHCA_ERR_INVALID, "contradiction", 0,
				      "[libvirt] detach_retry: longer than detach_timeout");
	return 0;
}

static int check_guid(const struct vhca_conf *conf, struct vhca_error *err)
{
	uint64_t below = UINT64_MAX >> conf->guid_prefix_bits;

	if (!vhca_guid_is_valid(conf->guid_prefix))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "[guid] prefix: %s is no unicast GUID",
				      VHCA_GUID_STR(conf->guid_prefix));
	if (conf->guid_prefix & below)
		return vhca_error_set(err, VHCA_ERR_INVALID, "contradiction", 0,
				      "[guid] prefix: %s has bits below the first prefix_bits = %u",
				      VHCA_GUID_STR(conf->guid_prefix), conf->guid_prefix_bits);
	return 0;
}

static int check_partitions(const struct vhca_conf *conf, struct vhca_error *err)
{
	for (unsigned int i = 0; i < conf->n_partitions; i++)
		if (!conf->partitions[i].pkey)
			return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
					      "[partition %s] pkey: missing",
					      conf->partitions[i].name);
	return 0;
}

static int check_peers(const struct vhca_conf *conf, struct vhca_error *err)
{
	for (unsigned int i = 0; i < conf->n_peers; i++) {
		const struct vhca_conf_peer *p = &conf->peers[i];

		if (!p->agent[0] || !p->libvirt[0])
			return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
					      "[peer %s] %s: missing", p->name,
					      p->agent[0] ? "libvirt" : "agent");
	}
	return 0;
}

static int check_migration(const struct vhca_conf *conf, struct vhca_error *err)
{
	if (conf->copy.timeout_ms && conf->copy.timeout_ms < VHCA_COPY_TIMEOUT_MIN_MS)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "[migration] copy_timeout: %ums is less than %ums; 0s is no "
				      "limit",
				      conf->copy.timeout_ms, VHCA_COPY_TIMEOUT_MIN_MS);
	if (conf->copy.expected_max_ms && conf->copy.expected_max_ms < 1000)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "[migration] copy_expected_max: %ums is less than 1000ms; 0s "
				      "is no limit",
				      conf->copy.expected_max_ms);
	if (conf->copy.expected_max_ms && !conf->copy.bandwidth_mib)
		return vhca_error_set(err, VHCA_ERR_INVALID, "missing_key", 0,
				      "[migration] bandwidth: missing; without it nobody knows how "
				      "long a copy takes, and copy_expected_max limits nothing");
	return 0;
}

/* What is left alone can be promised to nobody. */
static int check_reserved(const struct vhca_conf *conf, struct vhca_error *err)
{
	for (unsigned int i = 0; i < conf->n_hcas; i++) {
		const struct vhca_conf_hca *hca = &conf->hcas[i];
		unsigned int n = 0;

		while (n < hca->n_reserve &&
		       !vhca_bdf_find(hca->exclude, hca->n_exclude, hca->reserve[n]))
			n++;
		if (n < hca->n_reserve)
			return vhca_error_set(err, VHCA_ERR_INVALID, "contradiction", 0,
					      "[hca %s] reserve: %s stands in exclude, too",
					      hca->is_default ? "default" : VHCA_BDF_STR(hca->bdf),
					      VHCA_BDF_STR(hca->reserve[n]));
	}
	return 0;
}

int vhca_conf_validate(const struct vhca_conf *conf, struct vhca_error *err)
{
	static int (*const checks[])(const struct vhca_conf *, struct vhca_error *) = {
		check_sm,    check_token,     check_roles, check_listen,
		check_tls,   check_libvirt,   check_guid,  check_partitions,
		check_peers, check_migration, check_clear, check_reserved};
	int r = 0;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(checks) && r == 0; i++)
		r = checks[i](conf, err);
	return r;
}
