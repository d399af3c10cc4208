/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conf/keys.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "conf/conf.h"
#include "conf/nearest.h"
#include "conf/value.h"

static const char *const scope_names[] = {
	[VHCA_CONF_AGENT] = "agent",
	[VHCA_CONF_API] = "api",
	[VHCA_CONF_TLS] = "tls",
	[VHCA_CONF_LIBVIRT] = "libvirt",
	[VHCA_CONF_GUID] = "guid",
	[VHCA_CONF_SM] = "sm",
	[VHCA_CONF_MIGRATION] = "migration",
	[VHCA_CONF_POLICY] = "policy",
	[VHCA_CONF_PARTITION] = "partition",
	[VHCA_CONF_HCA] = "hca",
	[VHCA_CONF_PEER] = "peer",
};

static const char *const log_level_words[] = {"error", "warning", "notice", "info", "debug", NULL};
static const char *const backend_words[] = {"none", "vhcasm", NULL};
static const char *const sm_pkeys_words[] = {"dynamic", "static", NULL};
static const char *const lid_policy_words[] = {"host", "vport", "dynamic", "follow", NULL};
static const char *const escalation_words[] = {"none", "guest-agent", NULL};
static const char *const sm_require_words[] = {"nothing", "attach", NULL};
static const char *const index_policy_words[] = {"force-off", "alarm", NULL};

/* sm.url: blank-separated; the whole list is replaced. */
static int parse_urls(const char *value, const struct vhca_conf_type *type, void *field,
		      struct vhca_error *err);

/* [hca] exclude and reserve: blank-separated; the whole list is replaced. */
static int parse_exclude(const char *value, const struct vhca_conf_type *type, void *field,
			 struct vhca_error *err);
static int parse_reserve(const char *value, const struct vhca_conf_type *type, void *field,
			 struct vhca_error *err);

#define MS  UINT64_C(1)
#define S   (1000 * MS)
#define MIN (60 * S)
#define H   (60 * MIN)

#define FIELD(m) offsetof(struct vhca_conf, m)
#define STRING(m)                                          \
	FIELD(m),                                          \
	{                                                  \
		.size = sizeof(((struct vhca_conf *)0)->m) \
	}
#define WORDS(m, w)          \
	FIELD(m),            \
	{                    \
		.words = (w) \
	}
#define RANGE(m, lo, hi)                 \
	FIELD(m),                        \
	{                                \
		.min = (lo), .max = (hi) \
	}
#define HCA(m) offsetof(struct vhca_conf_hca, m)
#define PEER(m)                                                 \
	offsetof(struct vhca_conf_peer, m),                     \
	{                                                       \
		.size = sizeof(((struct vhca_conf_peer *)0)->m) \
	}

static const struct key {
	enum vhca_conf_scope scope;
	const char *name;
	vhca_conf_value_fn parse;
	size_t offset;
	struct vhca_conf_type type;
} keys[] = {
	{VHCA_CONF_AGENT, "node_name", vhca_conf_text, STRING(node_name)},
	{VHCA_CONF_AGENT, "state_dir", vhca_conf_path, STRING(state_dir)},
	{VHCA_CONF_AGENT, "run_dir", vhca_conf_path, STRING(run_dir)},
	{VHCA_CONF_AGENT, "log_level", vhca_conf_word, WORDS(log_level, log_level_words)},
	{VHCA_CONF_API, "group", vhca_conf_text, STRING(api_group)},
	{VHCA_CONF_API, "roles", vhca_conf_roles, FIELD(api_roles), {0}},
	{VHCA_CONF_API, "peer_listen", vhca_conf_listen, STRING(peer_listen)},
	{VHCA_CONF_API, "listen", vhca_conf_listen, STRING(api_listen)},
	{VHCA_CONF_API, "listen_roles", vhca_conf_network_roles, FIELD(api_listen_roles), {0}},
	{VHCA_CONF_API, "token_file", vhca_conf_file, STRING(api_token_file)},
	{VHCA_CONF_API, "insecure", vhca_conf_bool, FIELD(api_insecure), {0}},
	{VHCA_CONF_TLS, "certificate", vhca_conf_file, STRING(tls_certificate)},
	{VHCA_CONF_TLS, "key", vhca_conf_file, STRING(tls_key)},
	{VHCA_CONF_TLS, "ca", vhca_conf_file, STRING(tls_ca)},
	{VHCA_CONF_TLS, "crl", vhca_conf_file, STRING(tls_crl)},
	{VHCA_CONF_LIBVIRT, "uri", vhca_conf_uri, STRING(libvirt_uri)},
	{VHCA_CONF_LIBVIRT, "detach_timeout", vhca_conf_duration,
	 RANGE(detach_timeout_ms, 1 * S, 1 * H)},
	{VHCA_CONF_LIBVIRT, "detach_retry", vhca_conf_duration,
	 RANGE(detach_retry_ms, 100 * MS, 10 * MIN)},
	{VHCA_CONF_LIBVIRT, "detach_escalation", vhca_conf_word,
	 WORDS(detach_escalation, escalation_words)},
	{VHCA_CONF_GUID, "prefix", vhca_conf_guid, FIELD(guid_prefix), {0}},
	{VHCA_CONF_GUID, "prefix_bits", vhca_conf_uint, RANGE(guid_prefix_bits, 8, 48)},
	{VHCA_CONF_SM,
	 "backend",
	 vhca_conf_choice,
	 FIELD(sm_backend),
	 {.words = backend_words, .size = sizeof(((struct vhca_conf *)0)->sm_backend)}},
	{VHCA_CONF_SM, "url", parse_urls, 0, {0}},
	{VHCA_CONF_SM, "insecure", vhca_conf_bool, FIELD(sm_insecure), {0}},
	{VHCA_CONF_SM, "token_file", vhca_conf_file, STRING(sm_token_file)},
	{VHCA_CONF_SM, "pkeys", vhca_conf_word, WORDS(sm_pkeys, sm_pkeys_words)},
	{VHCA_CONF_SM, "require", vhca_conf_word, WORDS(sm_require, sm_require_words)},
	{VHCA_CONF_SM, "lid_policy", vhca_conf_word, WORDS(lid_policy, lid_policy_words)},
	{VHCA_CONF_SM, "timeout", vhca_conf_duration, RANGE(sm_timeout_ms, 100 * MS, 5 * MIN)},
	{VHCA_CONF_SM, "pkey_timeout", vhca_conf_duration, RANGE(pkey_timeout_ms, 1 * S, 10 * MIN)},
	{VHCA_CONF_SM, "poll", vhca_conf_duration, RANGE(poll_ms, 100 * MS, 10 * MIN)},
	{VHCA_CONF_MIGRATION, "lease", vhca_conf_duration, RANGE(lease_ms, 10 * S, 1 * H)},
	{VHCA_CONF_MIGRATION, "external_lease", vhca_conf_duration,
	 RANGE(external_lease_ms, 10 * S, 24 * H)},
	{VHCA_CONF_MIGRATION, "copy_timeout", vhca_conf_duration,
	 RANGE(copy.timeout_ms, 0, VHCA_COPY_TIMEOUT_MAX_MS)},
	{VHCA_CONF_MIGRATION, "copy_expected_max", vhca_conf_duration,
	 RANGE(copy.expected_max_ms, 0, VHCA_COPY_TIMEOUT_MAX_MS)},
	{VHCA_CONF_MIGRATION, "bandwidth", vhca_conf_uint,
	 RANGE(copy.bandwidth_mib, 0, VHCA_COPY_BANDWIDTH_MAX)},
	{VHCA_CONF_MIGRATION, "connections", vhca_conf_uint,
	 RANGE(copy.connections, 0, VHCA_COPY_CONNECTIONS_MAX)},
	{VHCA_CONF_MIGRATION, "auto_converge", vhca_conf_bool, FIELD(copy.auto_converge), {0}},
	{VHCA_CONF_MIGRATION, "tls", vhca_conf_bool, FIELD(copy.tls), {0}},
	{VHCA_CONF_POLICY,
	 "allow_default_partition",
	 vhca_conf_bool,
	 FIELD(allow_default_partition),
	 {0}},
	{VHCA_CONF_POLICY, "port_lease", vhca_conf_duration, RANGE(port_lease_ms, 0, 24 * H)},
	{VHCA_CONF_POLICY, "pkey_index_changed", vhca_conf_word,
	 WORDS(index_policy, index_policy_words)},
	{VHCA_CONF_PARTITION,
	 "pkey",
	 vhca_conf_pkey,
	 offsetof(struct vhca_conf_partition, pkey),
	 {0}},
	{VHCA_CONF_HCA, "manage", vhca_conf_bool, HCA(manage), {0}},
	{VHCA_CONF_HCA, "vfs", vhca_conf_vfs, HCA(vfs), {.min = 0, .max = VHCA_CONF_VFS_KEEP - 1}},
	{VHCA_CONF_HCA, "fabric", vhca_conf_name, HCA(fabric), {0}},
	{VHCA_CONF_HCA, "port", vhca_conf_port, HCA(port), {.min = 1, .max = 2}},
	{VHCA_CONF_HCA, "exclude", parse_exclude, 0, {0}},
	{VHCA_CONF_HCA, "reserve", parse_reserve, 0, {0}},
	{VHCA_CONF_PEER, "agent", vhca_conf_agent, PEER(agent)},
	{VHCA_CONF_PEER, "libvirt", vhca_conf_uri, PEER(libvirt)},
	{VHCA_CONF_PEER, "migration", vhca_conf_uri, PEER(migration)},
	{VHCA_CONF_PEER, "certificate", vhca_conf_certificate, PEER(certificate)},
	{VHCA_CONF_PEER,
	 "insecure",
	 vhca_conf_bool,
	 offsetof(struct vhca_conf_peer, insecure),
	 {0}},
};

static int add_url(struct vhca_conf *conf, const char *url, size_t len, struct vhca_error *err)
{
	char *dst = conf->sm_urls[conf->n_sm_urls];
	size_t scheme = vhca_conf_http_scheme(url);

	if (!scheme || len <= scheme)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "\"%.*s\" is not an http:// or https:// URL",
				      len > 80 ? 80 : (int)len, url);
	if (vhca_conf_url_user(url, len))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "a URL with a user, which whoever looks at vhcad would see; "
				      "token_file has what is sent");
	if (conf->n_sm_urls == VHCA_CONF_URLS_MAX || len >= sizeof(conf->sm_urls[0]))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "more than %d URLs, or one of more than %zu characters",
				      VHCA_CONF_URLS_MAX, sizeof(conf->sm_urls[0]) - 1);
	memcpy(dst, url, len);
	dst[len] = '\0';
	conf->n_sm_urls++;
	return 0;
}

static int parse_urls(const char *value, const struct vhca_conf_type *type, void *field,
		      struct vhca_error *err)
{
	struct vhca_conf *conf = field;

	(void)type;
	conf->n_sm_urls = 0;
	memset(conf->sm_urls, 0, sizeof(conf->sm_urls));
	for (const char *p = value + strspn(value, " \t"); *p; p += strspn(p, " \t")) {
		size_t len = strcspn(p, " \t");
		int r = add_url(conf, p, len, err);

		if (r < 0)
			return r;
		p += len;
	}
	return 0;
}

static int add_address(struct vhca_bdf *list, unsigned int max, unsigned int *n, const char *word,
		       size_t len, struct vhca_error *err)
{
	char bdf[VHCA_BDF_STRLEN] = "";

	if (*n == max)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "more than %u addresses", max);
	if (len < sizeof(bdf))
		memcpy(bdf, word, len);
	if (vhca_bdf_parse(bdf, &list[*n]) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "\"%.*s\" is not a VF's PCI address like 0000:03:00.1",
				      len > 80 ? 80 : (int)len, word);
	(*n)++;
	return 0;
}

static int parse_addresses(const char *value, struct vhca_bdf *list, unsigned int max,
			   unsigned int *n, struct vhca_error *err)
{
	*n = 0;
	for (const char *p = value + strspn(value, " \t"); *p; p += strspn(p, " \t")) {
		size_t len = strcspn(p, " \t");
		int r = add_address(list, max, n, p, len, err);

		if (r < 0)
			return r;
		p += len;
	}
	return 0;
}

static int parse_exclude(const char *value, const struct vhca_conf_type *type, void *field,
			 struct vhca_error *err)
{
	struct vhca_conf_hca *hca = field;

	(void)type;
	return parse_addresses(value, hca->exclude, VHCA_CONF_EXCLUDE_MAX, &hca->n_exclude, err);
}

static int parse_reserve(const char *value, const struct vhca_conf_type *type, void *field,
			 struct vhca_error *err)
{
	struct vhca_conf_hca *hca = field;

	(void)type;
	return parse_addresses(value, hca->reserve, VHCA_CONF_RESERVE_MAX, &hca->n_reserve, err);
}

int vhca_conf_find_scope(const char *section, enum vhca_conf_scope *ret, const char **ret_arg,
			 struct vhca_error *err)
{
	size_t word = strcspn(section, " ");
	const char *arg = section[word] ? section + word + 1 : "";
	struct vhca_nearest nearest = vhca_nearest_init(section);

	for (unsigned int i = 0; i < VHCA_CONF_SCOPES; i++) {
		if (strncmp(section, scope_names[i], word) != 0 || scope_names[i][word] != '\0' ||
		    word == 0)
			continue;
		if ((i >= VHCA_CONF_PARTITION) != (*arg != '\0'))
			return vhca_error_set(err, VHCA_ERR_INVALID, "unknown_section", 0,
					      i >= VHCA_CONF_PARTITION
						      ? "[%s] needs a name: [%s NAME]"
						      : "[%s] takes no name",
					      scope_names[i], scope_names[i]);
		*ret = (enum vhca_conf_scope)i;
		*ret_arg = arg;
		return 0;
	}
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(scope_names); i++)
		vhca_nearest_offer(&nearest, scope_names[i]);
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "unknown_section", 0,
			     "unknown section; the nearest known one is [%s]", nearest.best);
	return -EINVAL;
}

/*
 * A key of another section is most likely in the wrong place; else the nearest spelling in this
 * one.
 */
static int unknown_key(enum vhca_conf_scope scope, const char *key, struct vhca_error *err)
{
	struct vhca_nearest n = vhca_nearest_init(key);

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(keys); i++) {
		if (keys[i].scope == scope)
			vhca_nearest_offer(&n, keys[i].name);
		else if (strcmp(keys[i].name, key) == 0)
			return vhca_error_set(err, VHCA_ERR_INVALID, "unknown_key", 0,
					      "unknown key in [%s]; it belongs to [%s]",
					      scope_names[scope], scope_names[keys[i].scope]);
	}
	return vhca_error_set(err, VHCA_ERR_INVALID, "unknown_key", 0,
			      "unknown key in [%s]; the nearest known one is \"%s\"",
			      scope_names[scope], n.best);
}

int vhca_conf_set_key(enum vhca_conf_scope scope, void *object, const char *key, const char *value,
		      struct vhca_error *err)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(keys); i++)
		if (keys[i].scope == scope && strcmp(keys[i].name, key) == 0)
			return keys[i].parse(value, &keys[i].type, (char *)object + keys[i].offset,
					     err);
	return unknown_key(scope, key, err);
}

static void format_addresses(struct vhca_strbuf *sb, const struct vhca_bdf *list, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		vhca_strbuf_add(sb, "%s%s", i > 0 ? " " : "", VHCA_BDF_STR(list[i]));
}

static void format_key(struct vhca_strbuf *sb, const struct key *key, const void *object)
{
	const struct vhca_conf *conf = object;
	const struct vhca_conf_hca *hca = object;

	if (key->parse == parse_exclude)
		format_addresses(sb, hca->exclude, hca->n_exclude);
	else if (key->parse == parse_reserve)
		format_addresses(sb, hca->reserve, hca->n_reserve);
	else if (key->parse == parse_urls)
		for (unsigned int i = 0; i < conf->n_sm_urls; i++)
			vhca_strbuf_add(sb, "%s%s", i > 0 ? " " : "", conf->sm_urls[i]);
	else
		vhca_conf_format(sb, key->parse, &key->type, (const char *)object + key->offset);
}

const char *vhca_conf_format_key(enum vhca_conf_scope scope, unsigned int n, const void *object,
				 char *buf, size_t size)
{
	struct vhca_strbuf sb;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(keys); i++) {
		if (keys[i].scope != scope || n-- > 0)
			continue;
		vhca_strbuf_init(&sb, buf, size);
		format_key(&sb, &keys[i], object);
		return keys[i].name;
	}
	return NULL;
}

const char *vhca_conf_scope_to_string(enum vhca_conf_scope scope)
{
	return scope_names[scope];
}

bool vhca_conf_nth_key(unsigned int n, const char **ret_section, const char **ret_key)
{
	if (n >= VHCA_ARRAY_SIZE(keys))
		return false;
	*ret_section = scope_names[keys[n].scope];
	*ret_key = keys[n].name;
	return true;
}
