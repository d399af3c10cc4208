/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conf/conf.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/ini/ini_file.h"
#include "conf/keys.h"
#include "conf/validate.h"
#include "conf/value.h"

#define DROP_INS_MAX 128

/* One file after the other goes through the same loader. */
struct loader {
	struct vhca_conf *conf;
	unsigned int file; /* number of the current file, from 1 */
	unsigned int partition_file[VHCA_CONF_PARTITIONS_MAX]; /* file that had the section last */
	unsigned int hca_file[VHCA_CONF_HCAS_MAX];
	unsigned int peer_file[VHCA_CONF_PEERS_MAX];
};

void vhca_conf_set_defaults(struct vhca_conf *conf)
{
	*conf = (struct vhca_conf){
		.state_dir = "/var/lib/vhcad",
		.run_dir = "/run/vhcad",
		.log_level = VHCA_LOG_INFO,
		.api_roles = {.may = "root, and whom [api] roles in vhcad.conf names",
			      .others = VHCA_CALLER_OPERATE},
		.api_listen_roles = {.may = "whom [api] listen_roles in vhcad.conf names",
				     .others = VHCA_CALLER_NOBODY},
		.libvirt_uri = "qemu:///system",
		.detach_timeout_ms = 60000,
		.detach_retry_ms = 5000,
		.detach_escalation = VHCA_ESCALATION_NONE,
		.guid_prefix = UINT64_C(0x02c9ab0000000000),
		.guid_prefix_bits = 24,
		.sm_backend = "none",
		.sm_pkeys = VHCA_SM_PKEYS_DYNAMIC,
		.lid_policy = VHCA_LID_HOST,
		.sm_require = VHCA_SM_REQUIRE_NOTHING,
		.sm_timeout_ms = 5000,
		.pkey_timeout_ms = 20000,
		.poll_ms = 5000,
		.lease_ms = 120000,
		.external_lease_ms = 300000,
		.port_lease_ms = 3600000,
		.index_policy = VHCA_INDEX_FORCE_OFF,
	};
}

/* Two spellings of one section ("0000:0A:00.0", "0000:0a:00.0") in one file are found here too. */
static int claim_for_file(unsigned int *last_file, unsigned int file, struct vhca_error *err)
{
	if (*last_file == file)
		return vhca_error_set(err, VHCA_ERR_INVALID, "duplicate_section", 0,
				      "section stands twice in this file");
	*last_file = file;
	return 0;
}

/* Of a partition or a peer. */
static int check_name(const char *name, const char *whose, struct vhca_error *err)
{
	if (vhca_name_is_valid(name))
		return 0;
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_section", 0,
			      "a %s's name is up to 31 letters, digits, \"_\" and \"-\"", whose);
}

static struct vhca_conf_partition *find_partition(struct vhca_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->n_partitions; i++)
		if (strcmp(conf->partitions[i].name, name) == 0)
			return &conf->partitions[i];
	return NULL;
}

static int open_partition(struct loader *l, const char *name, struct vhca_error *err)
{
	struct vhca_conf *conf = l->conf;
	struct vhca_conf_partition *p = find_partition(conf, name);
	uint64_t number;
	int r = check_name(name, "partition", err);

	if (r < 0)
		return r;
	if (vhca_parse_u64(name, 0, UINT64_MAX, &number) != -EINVAL)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_section", 0,
				      "a partition's name must not be a number");
	if (!p) {
		if (conf->n_partitions == VHCA_CONF_PARTITIONS_MAX)
			return vhca_error_set(err, VHCA_ERR_INVALID, "too_many_sections", 0,
					      "more than %d partitions", VHCA_CONF_PARTITIONS_MAX);
		p = &conf->partitions[conf->n_partitions++];
		(void)vhca_strcpy(p->name, sizeof(p->name), name); /* length was checked */
	}
	return claim_for_file(&l->partition_file[p - conf->partitions], l->file, err);
}

static int parse_hca_name(const char *name, struct vhca_conf_hca *ret, struct vhca_error *err)
{
	*ret = (struct vhca_conf_hca){.vfs = VHCA_CONF_VFS_KEEP, .fabric = "default", .port = 1};
	ret->is_default = strcmp(name, "default") == 0;
	if (!ret->is_default && vhca_bdf_parse(name, &ret->bdf) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_section", 0,
				      "\"%s\" is neither a PCI address with domain (0000:03:00.0) "
				      "nor \"default\"",
				      name);
	return 0;
}

static struct vhca_conf_hca *find_hca(struct vhca_conf *conf, const struct vhca_conf_hca *like)
{
	for (unsigned int i = 0; i < conf->n_hcas; i++)
		if (conf->hcas[i].is_default == like->is_default &&
		    vhca_bdf_cmp(conf->hcas[i].bdf, like->bdf) == 0)
			return &conf->hcas[i];
	return NULL;
}

static int open_hca(struct loader *l, const char *name, struct vhca_error *err)
{
	struct vhca_conf *conf = l->conf;
	struct vhca_conf_hca fresh, *hca;
	int r = parse_hca_name(name, &fresh, err);

	if (r < 0)
		return r;
	hca = find_hca(conf, &fresh);
	if (!hca) {
		if (conf->n_hcas == VHCA_CONF_HCAS_MAX)
			return vhca_error_set(err, VHCA_ERR_INVALID, "too_many_sections", 0,
					      "more than %d [hca] sections", VHCA_CONF_HCAS_MAX);
		hca = &conf->hcas[conf->n_hcas++];
		*hca = fresh;
	}
	return claim_for_file(&l->hca_file[hca - conf->hcas], l->file, err);
}

static struct vhca_conf_peer *find_peer(struct vhca_conf *conf, const char *name)
{
	const struct vhca_conf_peer *p = vhca_conf_peer(conf, name);

	return p ? &conf->peers[p - conf->peers] : NULL;
}

static int open_peer(struct loader *l, const char *name, struct vhca_error *err)
{
	struct vhca_conf *conf = l->conf;
	struct vhca_conf_peer *p = find_peer(conf, name);
	int r = check_name(name, "peer", err);

	if (r < 0)
		return r;
	if (!p) {
		if (conf->n_peers == VHCA_CONF_PEERS_MAX)
			return vhca_error_set(err, VHCA_ERR_INVALID, "too_many_sections", 0,
					      "more than %d peers", VHCA_CONF_PEERS_MAX);
		p = &conf->peers[conf->n_peers++];
		(void)vhca_strcpy(p->name, sizeof(p->name), name); /* length was checked */
	}
	return claim_for_file(&l->peer_file[p - conf->peers], l->file, err);
}

/* First pass over a file: makes the entries of its sections. */
static int on_section(void *ctx, const char *section, const char *key, const char *value,
		      unsigned int line, struct vhca_error *err)
{
	enum vhca_conf_scope scope;
	const char *arg;
	int r = vhca_conf_find_scope(section, &scope, &arg, err);

	(void)key;
	(void)value;
	(void)line;
	if (r < 0)
		return r;
	if (scope == VHCA_CONF_PARTITION)
		return open_partition(ctx, arg, err);
	if (scope == VHCA_CONF_HCA)
		return open_hca(ctx, arg, err);
	if (scope == VHCA_CONF_PEER)
		return open_peer(ctx, arg, err);
	return 0;
}

static void *entry_of(struct vhca_conf *conf, enum vhca_conf_scope scope, const char *arg)
{
	struct vhca_conf_hca like;

	if (scope == VHCA_CONF_PARTITION)
		return find_partition(conf, arg);
	if (scope == VHCA_CONF_HCA)
		return parse_hca_name(arg, &like, NULL) < 0 ? NULL : find_hca(conf, &like);
	if (scope == VHCA_CONF_PEER)
		return find_peer(conf, arg);
	return conf;
}

/* Second pass: sets the keys. */
static int on_pair(void *ctx, const char *section, const char *key, const char *value,
		   unsigned int line, struct vhca_error *err)
{
	struct loader *l = ctx;
	enum vhca_conf_scope scope;
	const char *arg;
	void *entry;
	int r;

	(void)line;
	if (section[0] == '\0')
		return vhca_error_set(err, VHCA_ERR_INVALID, "unknown_section", 0,
				      "stands before the first [section]");
	r = vhca_conf_find_scope(section, &scope, &arg, err);
	if (r < 0)
		return r;
	entry = entry_of(l->conf, scope, arg);
	if (!entry)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "internal", 0,
				      "section was not opened");
	return vhca_conf_set_key(scope, entry, key, value, err);
}

static int load_text(struct loader *l, const char *name, const char *text, size_t len,
		     struct vhca_error *err)
{
	int r;

	l->file++;
	r = vhca_ini_list_sections(name, text, len, on_section, l, err);
	return r < 0 ? r : vhca_ini_parse_text(name, text, len, on_pair, l, err);
}

static int load_file(struct loader *l, const char *path, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	int r = vhca_ini_read_file(path, &text, &len, err);

	return r < 0 ? r : load_text(l, path, text, len, err);
}

static int is_drop_in(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return e->d_name[0] != '.' && len > 5 && strcmp(e->d_name + len - 5, ".conf") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name); /* alphasort() would follow the locale */
}

static int load_named(struct loader *l, const char *dir, struct dirent **names, int n,
		      struct vhca_error *err)
{
	char path[PATH_MAX];

	if (n > DROP_INS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, "too_many_files", 0,
				      "%s: more than %d files", dir, DROP_INS_MAX);
	for (int i = 0; i < n; i++) {
		int r;

		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) >=
		    sizeof(path))
			return vhca_error_set(err, VHCA_ERR_INVALID, "unreadable_config",
					      ENAMETOOLONG, "%s", dir);
		r = load_file(l, path, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int load_drop_ins(struct loader *l, const char *conf_path, struct vhca_error *err)
{
	struct dirent **names = NULL;
	char dir[PATH_MAX];
	int n, r;

	if ((size_t)snprintf(dir, sizeof(dir), "%s.d", conf_path) >= sizeof(dir))
		return vhca_error_set(err, VHCA_ERR_INVALID, "unreadable_config", ENAMETOOLONG,
				      "%s", conf_path);
	n = scandir(dir, &names, is_drop_in, by_name);
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "unreadable_config", errno, "%s", dir);
	r = load_named(l, dir, names, n, err);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}

static int finish(struct vhca_conf *conf, const char *name, struct vhca_error *err)
{
	int r = vhca_conf_validate(conf, err);

	if (r < 0) {
		vhca_error_prefix(err, "%s", name);
		return r;
	}
	/* A name that is cut is still a name; without one the daemon says "localhost". */
	if (!conf->node_name[0] && gethostname(conf->node_name, sizeof(conf->node_name) - 1) < 0)
		(void)vhca_strcpy(conf->node_name, sizeof(conf->node_name), "localhost");
	conf->node_name[sizeof(conf->node_name) - 1] = '\0';
	for (unsigned int i = 0; i < conf->n_peers; i++)
		if (!conf->peers[i].certificate[0])
			vhca_conf_certificate_of(conf->peers[i].agent, conf->peers[i].certificate);
	return 0;
}

static int new_conf(struct vhca_conf **ret, struct vhca_error *err)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return vhca_error_no_memory(err, "configuration");
	vhca_conf_set_defaults(*ret);
	return 0;
}

int vhca_conf_parse(const char *name, const char *text, size_t len, struct vhca_conf **ret,
		    struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_conf *conf = NULL;
	struct loader l = {0};
	int r = new_conf(&conf, err);

	if (r < 0)
		return r;
	l.conf = conf;
	r = load_text(&l, name, text, len, err);
	if (r == 0)
		r = finish(conf, name, err);
	if (r == 0)
		*ret = vhca_steal_ptr(&conf);
	return r;
}

int vhca_conf_load(const char *path, struct vhca_conf **ret, struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_conf *conf = NULL;
	struct loader l = {0};
	int r = new_conf(&conf, err);

	if (r < 0)
		return r;
	l.conf = conf;
	r = load_file(&l, path, err);
	if (r == 0)
		r = load_drop_ins(&l, path, err);
	if (r == 0)
		r = finish(conf, path, err);
	if (r == 0)
		*ret = vhca_steal_ptr(&conf);
	return r;
}
