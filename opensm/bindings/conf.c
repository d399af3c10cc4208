/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/conf.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/ini/ini_file.h"

void vhca_osm_conf_set_defaults(struct vhca_osm_conf *conf)
{
	*conf = (struct vhca_osm_conf){
		.listen = "unix:/run/opensm/vhcasm.sock",
		.socket_mode = 0660,
		.state_dir = "/var/lib/vhcasm",
		.inherit_s = 600,
		.keep_s = 600,
		.settle_s = 120,
		.policy = {.n_allowed = 1, .allowed = {{0x0001, 0x7ffe}}, .ipoib = true},
	};
}

static int set_text(char *dst, size_t size, const char *value, struct vhca_error *err)
{
	if (vhca_strcpy(dst, size, value) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "longer than %zu characters", size - 1);
	return 0;
}

static int set_path(char *dst, size_t size, const char *value, struct vhca_error *err)
{
	if (value[0] != '/')
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is no absolute path", value);
	return set_text(dst, size, value, err);
}

static int set_listen(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (strncmp(value, "unix:/", 6) != 0 && !strchr(value, ':'))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither unix:/PATH nor ADDRESS:PORT", value);
	return set_text(conf->listen, sizeof(conf->listen), value, err);
}

static int set_socket_mode(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	mode_t mode = 0;
	size_t n = strspn(value, "01234567");

	if (n == 0 || n > 4 || value[n] != '\0')
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is no octal mode such as 0660", value);
	for (; *value; value++)
		mode = mode * 8 + (mode_t)(*value - '0');
	conf->socket_mode = mode & 0777;
	return 0;
}

static int set_state_dir(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_path(conf->state_dir, sizeof(conf->state_dir), value, err);
}

/* A path, or none. */
static int set_file(char *dst, size_t size, const char *value, struct vhca_error *err)
{
	if (value[0] == '\0') {
		dst[0] = '\0';
		return 0;
	}
	return set_path(dst, size, value, err);
}

static int set_base_file(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_file(conf->base_file, sizeof(conf->base_file), value, err);
}

static int set_tls_certificate(struct vhca_osm_conf *conf, const char *value,
			       struct vhca_error *err)
{
	return set_file(conf->tls_certificate, sizeof(conf->tls_certificate), value, err);
}

static int set_tls_key(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_file(conf->tls_key, sizeof(conf->tls_key), value, err);
}

static int set_tls_ca(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_file(conf->tls_ca, sizeof(conf->tls_ca), value, err);
}

static int set_tls_crl(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_file(conf->tls_crl, sizeof(conf->tls_crl), value, err);
}

static int set_token_file(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_file(conf->token_file, sizeof(conf->token_file), value, err);
}

static int set_insecure(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (vhca_parse_bool(value, &conf->insecure) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither yes nor no", value);
	return 0;
}

static int set_roles(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_text(conf->roles, sizeof(conf->roles), value, err);
}

static int set_allowed(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return vhca_osm_policy_parse_allowed(&conf->policy, value, err);
}

static int set_default_members(struct vhca_osm_conf *conf, const char *value,
			       struct vhca_error *err)
{
	if (strcmp(value, "full") != 0 && strcmp(value, "limited") != 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither full nor limited", value);
	conf->policy.default_limited = strcmp(value, "limited") == 0;
	return 0;
}

static int set_ipoib(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (vhca_parse_bool(value, &conf->policy.ipoib) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither yes nor no", value);
	return 0;
}

static int set_seconds(uint32_t *ret, const char *value, struct vhca_error *err)
{
	if (vhca_parse_u32(value, 10, 86400, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is no number of seconds up to 86400", value);
	return 0;
}

static int set_inherit(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_seconds(&conf->inherit_s, value, err);
}

static int set_keep(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_seconds(&conf->keep_s, value, err);
}

static int set_lids_move(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (vhca_parse_bool(value, &conf->lids_move) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither yes nor no", value);
	return 0;
}

static int set_drain(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (vhca_parse_bool(value, &conf->drain) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither yes nor no", value);
	return 0;
}

static int set_dynamic(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (vhca_parse_u32(value, 10, VHCA_OSM_DYNAMIC_MAX, &conf->dynamic) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is no number of LIDs up to %d", value,
				      VHCA_OSM_DYNAMIC_MAX);
	return 0;
}

static int set_tickets(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	if (vhca_parse_bool(value, &conf->tickets) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "\"%s\" is neither yes nor no", value);
	return 0;
}

static int set_settle(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err)
{
	return set_seconds(&conf->settle_s, value, err);
}

static const struct {
	const char *section, *key;
	int (*set)(struct vhca_osm_conf *conf, const char *value, struct vhca_error *err);
	bool again; /* a change of the file is enough */
} keys[] = {
	{"http", "listen", set_listen},
	{"http", "socket_mode", set_socket_mode},
	{"http", "tls_certificate", set_tls_certificate},
	{"http", "tls_key", set_tls_key},
	{"http", "tls_ca", set_tls_ca},
	{"http", "tls_crl", set_tls_crl},
	{"http", "token_file", set_token_file},
	{"http", "insecure", set_insecure},
	{"http", "roles", set_roles},
	{"state", "dir", set_state_dir},
	{"partitions", "base_file", set_base_file},
	{"partitions", "allowed", set_allowed, true},
	{"partitions", "default_members", set_default_members},
	{"partitions", "inherit", set_inherit},
	{"partitions", "ipoib", set_ipoib},
	{"tickets", "required", set_tickets},
	{"tickets", "settle", set_settle},
	{"lids", "enable", set_lids_move},
	{"lids", "drain", set_drain, true},
	{"lids", "dynamic", set_dynamic, true},
	{"lids", "keep", set_keep, true},
};

const char *vhca_osm_conf_read_again(size_t i)
{
	for (size_t k = 0; k < VHCA_ARRAY_SIZE(keys); k++)
		if (keys[k].again && i-- == 0)
			return keys[k].key;
	return NULL;
}

/* An empty [agents] counts: then nobody is one. */
static int on_section(void *ctx, const char *section, const char *key, const char *value,
		      unsigned int line, struct vhca_error *err)
{
	struct vhca_osm_conf *conf = ctx;

	(void)key;
	(void)value;
	(void)line;
	(void)err;
	if (strcmp(section, "agents") == 0)
		conf->agents.listed = true;
	return 0;
}

static int on_pair(void *ctx, const char *section, const char *key, const char *value,
		   unsigned int line, struct vhca_error *err)
{
	struct vhca_osm_conf *conf = ctx;

	(void)line;
	if (strcmp(section, "agents") == 0)
		return vhca_osm_agents_add(&conf->agents, key, value, err);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(keys); i++)
		if (strcmp(section, keys[i].section) == 0 && strcmp(key, keys[i].key) == 0)
			return keys[i].set(conf, value, err);
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0, "no such key in section [%s]",
			      section);
}

static int load(const char *path, struct vhca_osm_conf *conf, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = vhca_read_file(path, VHCA_INI_FILE_MAX, &text, &len);

	if (r < 0)
		return vhca_error_set(err, r == -ENOENT ? VHCA_ERR_NOT_FOUND : VHCA_ERR_INVALID,
				      "unreadable_config", -r, "%s", path);
	r = vhca_ini_list_sections(path, text, len, on_section, conf, err);
	if (r == 0)
		r = vhca_ini_parse_text(path, text, len, on_pair, conf, err);
	if (r < 0)
		return r;
	r = vhca_osm_agents_sort(&conf->agents, err);
	/* Who has set one of these means LIDs to move, and would find out by refused reports. */
	if (r == 0 && !conf->lids_move && (conf->drain || conf->dynamic))
		r = vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				   "[lids] %s has no effect without enable = yes",
				   conf->dynamic ? "dynamic" : "drain");
	if (r < 0)
		vhca_error_prefix(err, "%s", path);
	return r;
}

int vhca_osm_conf_load(const char *path, struct vhca_osm_conf *ret, struct vhca_error *err)
{
	struct vhca_osm_conf conf;
	int r;

	vhca_osm_conf_set_defaults(&conf);
	r = load(path, &conf, err);
	if (r == 0)
		*ret = conf;
	else
		vhca_osm_conf_done(&conf);
	return r;
}

void vhca_osm_conf_done(struct vhca_osm_conf *conf)
{
	vhca_osm_agents_done(&conf->agents);
}
