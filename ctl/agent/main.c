/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vhcactl: the command line to vhcad's HTTP API, on its unix socket or on another host. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/server.h"

#define SOCKET_PATH "/run/vhcad/vhcad.sock"

static const struct vhca_ctl_option options[] = {
	[VHCA_OPT_JSON] = {"json", NULL, "print the agent's answer as it is"},
	[VHCA_OPT_SOCKET] = {"socket", "PATH", "socket of the agent [" SOCKET_PATH "]"},
	[VHCA_OPT_URL] = {"url", "URL",
			  "https://HOST:PORT (or http://) of an agent [$VHCACTL_URL]"},
	[VHCA_OPT_CA] = {"ca", "FILE",
			 "PEM: the authority of the agent's certificate [$VHCACTL_CA]"},
	[VHCA_OPT_CERT] = {"cert", "FILE", "PEM: the certificate to show [$VHCACTL_CERT]"},
	[VHCA_OPT_KEY] = {"key", "FILE", "PEM: its key [$VHCACTL_KEY]"},
	[VHCA_OPT_TOKEN_FILE] = {"token-file", "FILE",
				 "the token to send is its first line [$VHCACTL_TOKEN_FILE]"},
	[VHCA_OPT_TIMEOUT] = {"timeout", "SECONDS", "wait at most that long for an answer"},
	[VHCA_OPT_WIDE] = {"wide", NULL, "all columns of a table, whole, on a terminal, too"},
	[VHCA_OPT_FIELDS] = {"fields", "FIELDS",
			     "these members of each, 'bdf,state', and whole; -o is the same"},
	[VHCA_OPT_HELP] = {"help", NULL, "explain vhcactl or the command"},
	[VHCA_OPT_VERSION] = {"version", NULL, "print the version of vhcactl"},
	[VHCA_OPT_PARTITION] =
		{"partition", "P_KEYS",
		 "P_Keys in the guest's order, numbers or names: '0x8001 storage'; one, of a list",
		 "several P_Keys are one value: --partition '0x8001 storage'"},
	[VHCA_OPT_GUID] = {"guid", "GUID", "address of the VF [derived from the domain and NAME]"},
	[VHCA_OPT_FABRIC] = {"fabric", "NAME", "only VFs of this fabric [attach, plan: default]"},
	[VHCA_OPT_PF] = {"pf", "BDF", "only VFs of this adapter"},
	[VHCA_OPT_NUMA] = {"numa", "NODE", "only VFs of adapters on this NUMA node"},
	[VHCA_OPT_STATE] = {"state", "STATE", "only those in this state"},
	[VHCA_OPT_SINCE] = {"since", "CURSOR",
			    "start behind this event, or with the oldest that is kept, or now"},
	[VHCA_OPT_CANCEL] = {"cancel", NULL, "stop the migration of DOMAIN that is under way"},
	[VHCA_OPT_NO_WAIT] = {"no-wait", NULL, "return when it has begun"},
	[VHCA_OPT_EXTERNAL] = {"external", NULL, "let somebody else call libvirt"},
	[VHCA_OPT_LEASE] = {"lease", "SECONDS", "how long the guest may wait without its VFs"},
	[VHCA_OPT_COPY_TIMEOUT] = {"copy-timeout", "SECONDS",
				   "abort a copy that takes longer; 0 = no limit"},
	[VHCA_OPT_EXPECTED_MAX] = {"expected-max", "SECONDS",
				   "refuse a copy that is expected to take longer; 0 = no limit"},
	[VHCA_OPT_BANDWIDTH] = {"bandwidth", "MIB", "MiB/s that the copy may take; 0 = any"},
	[VHCA_OPT_CONNECTIONS] = {"connections", "N",
				  "copy by so many parallel connections; 0 = libvirt's one"},
	[VHCA_OPT_AUTO_CONVERGE] = {"auto-converge", NULL,
				    "slow down a guest that writes too fast"},
	[VHCA_OPT_TLS] = {"tls", NULL, "send the memory by TLS"},
	[VHCA_OPT_PARK] = {"park", NULL, "take the VFs out; the guests stay"},
	[VHCA_OPT_CHECK] = {"check", NULL, "say by the exit status what was found"},
	[VHCA_OPT_OUTPUT] = {"output", "FILE", "write it there, as a whole or not at all"},
	[VHCA_OPT_DOMAIN] = {"domain", "DOMAIN", "only those of this domain, a UUID or a name"},
	[VHCA_OPT_PEER] = {"peer", "PEER", "only those to or from this peer"},
	[VHCA_OPT_FINAL] = {"final", "true|false", "only those that are over, or under way"},
	[VHCA_OPT_LIMIT] = {"limit", "N", "so many at most, the first ones, 1 to 1000"},
	[VHCA_OPT_XML] = {"xml", "FILE", "all that this domain's XML asks for; - is the input"},
	[VHCA_OPT_ONCE] = {"once", NULL, "show it one time, whole"},
};
_Static_assert(VHCA_ARRAY_SIZE(options) == VHCA_AGENT_OPTS, "one row an option");
_Static_assert(VHCA_AGENT_OPTS <= VHCA_CTL_OPTS_MAX, "a bit an option");

static const struct vhca_ctl_command *const commands[] = {
	&vhca_cmd_status,  &vhca_cmd_node,	 &vhca_cmd_hcas,
	&vhca_cmd_vfs,	   &vhca_cmd_domains,	 &vhca_cmd_claims,
	&vhca_cmd_lease,   &vhca_cmd_partitions, &vhca_cmd_explain,
	&vhca_cmd_adopt,   &vhca_cmd_takeover,	 &vhca_cmd_plan,
	&vhca_cmd_attach,  &vhca_cmd_detach,	 &vhca_cmd_migrate,
	&vhca_cmd_park,	   &vhca_cmd_unpark,	 &vhca_cmd_drain,
	&vhca_cmd_undrain, &vhca_cmd_migrations, &vhca_cmd_outbox,
	&vhca_cmd_watch,   &vhca_cmd_top,	 &vhca_cmd_metrics,
	&vhca_cmd_config,  &vhca_cmd_reload,	 &vhca_cmd_support_bundle,
	&vhca_cmd_forget,
};

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* Who says on the command line who he is, is not somebody else in part. */
static void take_environment(struct vhca_ctl *ctl)
{
	static const struct {
		enum vhca_ctl_opt opt;
		const char *name;
	} who[] = {{VHCA_OPT_CERT, "VHCACTL_CERT"},
		   {VHCA_OPT_KEY, "VHCACTL_KEY"},
		   {VHCA_OPT_TOKEN_FILE, "VHCACTL_TOKEN_FILE"}};
	const char **opts = ctl->opts;
	bool is_said = opts[VHCA_OPT_CERT] || opts[VHCA_OPT_KEY] || opts[VHCA_OPT_TOKEN_FILE];

	if (!opts[VHCA_OPT_CA])
		opts[VHCA_OPT_CA] = environment("VHCACTL_CA");
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(who) && !is_said; i++)
		opts[who[i].opt] = environment(who[i].name);
}

static int by_url(struct vhca_ctl *ctl, const char *what, const char *url, struct vhca_error *err)
{
	int r = vhca_ctl_parse_url(ctl, what, url, err);

	ctl->server.denied = "--cert FILE and --key FILE with a certificate that [tls] ca in that "
			     "host's vhcad.conf knows, or --token-file FILE";
	ctl->server.silent = "systemctl status vhcad there, and [api] listen in its vhcad.conf; of "
			     "https, --ca has to know the agent's certificate, and --url to name "
			     "it as that does";
	if (r < 0)
		return r;
	take_environment(ctl);
	return vhca_ctl_use_url(ctl, (struct vhca_http_auth_files){0}, err);
}

/* The environment says where only if the command line does not. */
static int connect_agent(struct vhca_ctl *ret, struct vhca_error *err)
{
	const char *socket = ret->opts[VHCA_OPT_SOCKET], *url = ret->opts[VHCA_OPT_URL],
		   *usual = environment("VHCACTL_URL");

	ret->server.name = "the agent";
	if (socket && url)
		return vhca_ctl_refuse(err, "--socket and --url: one of them", "vhcactl help");
	if (url)
		return by_url(ret, "--url", url, err);
	if (!socket && usual)
		return by_url(ret, "VHCACTL_URL", usual, err);
	ret->server.denied =
		"be root, or a member of the group that [api] group in vhcad.conf names";
	ret->server.silent = "systemctl status vhcad; journalctl -u vhcad";
	return vhca_ctl_use_socket(ret, socket ? socket : SOCKET_PATH, err);
}

int main(int argc, char **argv)
{
	static const struct vhca_ctl_program vhcactl = {
		.name = "vhcactl",
		.manual = "vhcactl(1)",
		.about = "Looks at the InfiniBand VFs that vhcad keeps on this host, or on that of "
			 "--url, attaches and\n"
			 "detaches them, and migrates domains with them.\n",
		.peers = "agent or a peer of it",
		.options = options,
		.n_options = VHCA_AGENT_OPTS,
		.n_common = VHCA_CTL_OPTS_SHARED,
		.commands = commands,
		.n_commands = VHCA_ARRAY_SIZE(commands),
		.connect = connect_agent,
	};

	return vhca_ctl_main(&vhcactl, argc, argv);
}
