/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/door.h"

#include <errno.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/text.h"

static bool is_on_network(const struct vhca_osm_conf *conf)
{
	return strncmp(conf->listen, "unix:", 5) != 0;
}

static bool is_agent(const void *agents, const char *name)
{
	return vhca_osm_agents_find(agents, name) != NULL;
}

/* Two places that say who is an agent would hide one another. */
static int check_agents(const struct vhca_osm_conf *conf, const struct vhca_caller_rules *rules,
			struct vhca_error *err)
{
	if (!conf->agents.listed && conf->tickets)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "[tickets] required = yes: without [agents] no node has a "
				      "name or a key by which one could name another");
	if (!conf->agents.listed)
		return 0;
	if (!is_on_network(conf) || !conf->tls_ca[0])
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
				      "[agents] lists certificates, and nobody shows one: [http] "
				      "listen has to be ADDRESS:PORT, with tls_ca");
	for (unsigned int i = 0; i < rules->n; i++)
		if (rules->list[i].role >= VHCA_CALLER_AGENT)
			return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
					      "[http] roles: %s is given by [agents]",
					      vhca_caller_role_to_string(rules->list[i].role));
	return 0;
}

/* For a certificate in [agents] no rule counts. */
static const char *allowed_callers(const struct vhca_osm_conf *conf)
{
	if (!is_on_network(conf))
		return "root, OpenSM's user, and whom [http] roles in vhcasm.conf names";
	if (conf->agents.listed)
		return "report whom [agents] in vhcasm.conf lists, and do other things whom [http] "
		       "roles names and [agents] does not list";
	return "whom [http] roles in vhcasm.conf names";
}

/* Without [agents] whoever is let in reports and reads, as ever; what he is not to do needs a
 * rule. */
static int load_rules(struct vhca_caller_rules *rules, const struct vhca_osm_conf *conf,
		      struct vhca_error *err)
{
	bool local = !is_on_network(conf), listed = conf->agents.listed;
	int r;

	*rules = (struct vhca_caller_rules){
		.may = allowed_callers(conf),
		.others = listed ? VHCA_CALLER_READ : VHCA_CALLER_AGENT_READ,
		.is_agent = listed ? is_agent : NULL,
		.agents = &conf->agents,
	};
	r = vhca_caller_rules_parse(rules, conf->roles, local, err);
	if (r < 0)
		vhca_error_prefix(err, "[http] roles");
	return r < 0 ? r : check_agents(conf, rules, err);
}

static void take_stamps(const struct vhca_osm_conf *conf,
			struct vhca_osm_file_stamp ret[static VHCA_OSM_DOOR_FILES])
{
	const char *const files[VHCA_OSM_DOOR_FILES] = {conf->tls_certificate, conf->tls_key,
							conf->tls_ca, conf->tls_crl,
							conf->token_file};

	for (size_t i = 0; i < VHCA_OSM_DOOR_FILES; i++)
		vhca_osm_file_stamp_take(files[i], &ret[i]);
}

/* The stamps first: what changes while it is read is read again. */
static int load_auth(struct vhca_osm_door *door, struct vhca_http_auth **ret,
		     struct vhca_error *err)
{
	const struct vhca_osm_conf *conf = door->conf;
	const struct vhca_http_auth_files files = {
		.certificate = conf->tls_certificate,
		.key = conf->tls_key,
		.authority = conf->tls_ca,
		.revoked = conf->tls_crl,
		.tokens = conf->token_file,
		.names_tokens = true,
	};

	take_stamps(conf, door->read);
	return vhca_http_auth_load(&files, ret, err);
}

/* Without these two everybody has the role of an agent. */
static bool is_unguarded(const struct vhca_osm_conf *conf)
{
	return is_on_network(conf) && !conf->tls_ca[0] && !conf->token_file[0];
}

static int check_network(const struct vhca_osm_conf *conf, struct vhca_error *err)
{
	if (!is_unguarded(conf) || conf->insecure || vhca_is_loopback(conf->listen))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
			     "%s is beyond this host, and everybody who reaches it may report",
			     conf->listen);
	vhca_error_hint(err, "set tls_certificate, tls_key and tls_ca (or token_file), or insecure "
			     "= yes in [http] where the network itself keeps others out");
	return -EINVAL;
}

static void note_pinned_nodes(const struct vhca_osm_agents *agents)
{
	size_t n = 0;

	for (size_t i = 0; i < agents->n; i++)
		n += agents->list[i].n_ports == 0;
	if (n)
		vhca_log_notice("%zu of %zu nodes in [agents] have no port in their line: the "
				"first that speaks for a port has it",
				n, agents->n);
}

static void warn_open_door(const struct vhca_osm_conf *conf)
{
	if (is_unguarded(conf))
		vhca_log_warning("%s: everybody who reaches it may report; tls_ca and token_file "
				 "are not set",
				 conf->listen);
	else if (conf->agents.listed)
		note_pinned_nodes(&conf->agents);
	else if (is_on_network(conf))
		vhca_log_warning("%s: whoever is let in may report for any host; there is no "
				 "section [agents]",
				 conf->listen);
}

int vhca_osm_door_open(const struct vhca_osm_conf *conf, struct vhca_osm_door *ret,
		       struct vhca_error *err)
{
	int r = check_network(conf, err);

	ret->conf = conf;
	if (r == 0)
		r = load_auth(ret, &ret->auth, err);
	if (r == 0 && ret->auth && !is_on_network(conf))
		r = vhca_error_set(
			err, VHCA_ERR_INVALID, "bad_config", 0,
			"%s: TLS and tokens are for ADDRESS:PORT; socket_mode guards a unix socket",
			conf->listen);
	if (r == 0)
		r = load_rules(&ret->rules, conf, err);
	if (r == 0)
		warn_open_door(conf);
	return r;
}

void vhca_osm_door_look(struct vhca_osm_door *door)
{
	struct vhca_osm_file_stamp now[VHCA_OSM_DOOR_FILES];
	struct vhca_http_auth *fresh = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	bool written;

	take_stamps(door->conf, now);
	written = memcmp(now, door->seen, sizeof(now)) != 0;
	memcpy(door->seen, now, sizeof(now));
	if (written || memcmp(now, door->read, sizeof(now)) == 0)
		return;
	if (load_auth(door, &fresh, &err) < 0) {
		memset(door->read, 0xff, sizeof(door->read)); /* no stamp of a file */
		if (strcmp(door->problem, err.msg) == 0)
			return;
		(void)vhca_strcpy(door->problem, sizeof(door->problem), err.msg); /* same size */
		vhca_log_error("certificates and tokens are not taken, the old ones stay: %s%s%s",
			       err.msg, err.hint[0] ? "; " : "", err.hint);
		return;
	}
	door->problem[0] = '\0';
	vhca_http_auth_replace(door->auth, &fresh);
	vhca_log_notice("certificates and tokens were read again");
}

void vhca_osm_door_done(struct vhca_osm_door *door)
{
	door->auth = vhca_http_auth_free(door->auth);
}
