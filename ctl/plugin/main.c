/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vhcasmctl: the command line to the HTTP API of libvhcasm.so, the plugin inside OpenSM. */
#include "common/base/cleanup.h"
#include "ctl/plugin/commands.h"
#include "ctl/plugin/connection.h"

static const struct vhca_ctl_option options[] = {
	[VHCA_OPT_JSON] = {"json", NULL, "print the plugin's answer as it is"},
	[VHCA_OPT_SOCKET] = {"socket", "PATH", "unix socket of the plugin"},
	[VHCA_OPT_URL] = {"url", "URL", "https://HOST:PORT (or http://) of the plugin"},
	[VHCA_OPT_CA] = {"ca", "FILE", "PEM: the authority of the plugin's certificate"},
	[VHCA_OPT_CERT] = {"cert", "FILE", "PEM: the certificate to show"},
	[VHCA_OPT_KEY] = {"key", "FILE", "PEM: its key"},
	[VHCA_OPT_TOKEN_FILE] = {"token-file", "FILE", "the token to send is its first line"},
	[VHCA_OPT_TIMEOUT] = {"timeout", "SECONDS", "wait at most that long for an answer"},
	[VHCA_OPT_WIDE] = {"wide", NULL, "all columns of a table, whole, on a terminal, too"},
	[VHCA_OPT_FIELDS] = {"fields", "FIELDS",
			     "these members of each, 'vguid,state', and whole; -o is the same"},
	[VHCA_OPT_HELP] = {"help", NULL, "explain vhcasmctl or the command"},
	[VHCA_OPT_VERSION] = {"version", NULL, "print the version of vhcasmctl"},
	[VHCA_OPT_CONFIG] = {"config", "FILE",
			     "says it where no option does [" VHCA_PLUGIN_CONF "]"},
	[VHCA_OPT_PORT] = {"port", "PORT_GUID", "only those of this port"},
	[VHCA_OPT_MODE] = {"mode", "MODE", "auto, deterministic or skyline [auto]"},
};
_Static_assert(VHCA_ARRAY_SIZE(options) == VHCA_PLUGIN_OPTS, "one row an option");
_Static_assert(VHCA_PLUGIN_OPTS <= VHCA_CTL_OPTS_MAX, "a bit an option");

static const struct vhca_ctl_command *const commands[] = {
	&vhca_plugin_status, &vhca_plugin_fabric,    &vhca_plugin_bindings, &vhca_plugin_members,
	&vhca_plugin_lids,   &vhca_plugin_plan,	     &vhca_plugin_move,	    &vhca_plugin_pause,
	&vhca_plugin_resume, &vhca_plugin_rebalance, &vhca_plugin_gc,	    &vhca_plugin_forget,
	&vhca_plugin_unpin,  &vhca_plugin_owner,
};

int main(int argc, char **argv)
{
	static const struct vhca_ctl_program vhcasmctl = {
		.name = "vhcasmctl",
		.manual = "vhcasmctl(8)",
		.about = "Asks the plugin of vhcad inside OpenSM which virtual GUID is where and "
			 "which keys a port needs,\n"
			 "and moves LIDs. Without --socket and --url vhcasm.conf of this host says "
			 "where it is.\n",
		.peers = "plugin",
		.options = options,
		.n_options = VHCA_PLUGIN_OPTS,
		.n_common = VHCA_PLUGIN_OPTS_COMMON,
		.commands = commands,
		.n_commands = VHCA_ARRAY_SIZE(commands),
		.connect = vhca_plugin_connect,
		.disconnect = vhca_plugin_disconnect,
	};

	return vhca_ctl_main(&vhcasmctl, argc, argv);
}
