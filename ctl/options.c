/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

#define SOCKET_PATH   "/run/vhcad/vhcad.sock"
#define TIMEOUT_MAX_S 3600
#define OPTION_MAX    40

static const struct {
	const char *name;
	const char *arg; /* NULL: a flag */
	const char *help;
} options[] = {
	[VHCA_OPT_JSON] = {"json", NULL, "print the agent's answer as it is"},
	[VHCA_OPT_SOCKET] = {"socket", "PATH", "socket of the agent [" SOCKET_PATH "]"},
	[VHCA_OPT_TIMEOUT] = {"timeout", "SECONDS", "wait at most that long for an answer"},
	[VHCA_OPT_HELP] = {"help", NULL, "explain vhcactl or the command"},
	[VHCA_OPT_VERSION] = {"version", NULL, "print the version of vhcactl"},
	[VHCA_OPT_PARTITION] = {"partition", "P_KEYS",
				"P_Keys in the guest's order, numbers or names: '0x8001 storage'"},
	[VHCA_OPT_GUID] = {"guid", "GUID", "address of the VF [derived from the domain and NAME]"},
	[VHCA_OPT_FABRIC] = {"fabric", "NAME", "take a VF of this fabric [default]"},
	[VHCA_OPT_PF] = {"pf", "BDF", "take a VF of this adapter"},
	[VHCA_OPT_NUMA] = {"numa", "NODE", "take a VF of an adapter on this NUMA node"},
	[VHCA_OPT_STATE] = {"state", "STATE", "only VFs in this state"},
	[VHCA_OPT_SINCE] = {"since", "CURSOR",
			    "start behind this event, or with the oldest that is kept, or now"},
	[VHCA_OPT_CANCEL] = {"cancel", NULL, "stop the migration of DOMAIN that is under way"},
	[VHCA_OPT_NO_WAIT] = {"no-wait", NULL, "return when it has begun"},
	[VHCA_OPT_EXTERNAL] = {"external", NULL, "let somebody else call libvirt"},
	[VHCA_OPT_LEASE] = {"lease", "SECONDS", "how long the guest may wait without its VFs"},
	[VHCA_OPT_COPY_TIMEOUT] = {"copy-timeout", "SECONDS",
				   "abort a copy that takes longer; 0 = no limit"},
	[VHCA_OPT_BANDWIDTH] = {"bandwidth", "MIB", "MiB/s that the copy may take; 0 = any"},
	[VHCA_OPT_CONNECTIONS] = {"connections", "N",
				  "copy by so many parallel connections; 0 = libvirt's one"},
	[VHCA_OPT_AUTO_CONVERGE] = {"auto-converge", NULL,
				    "slow down a guest that writes too fast"},
	[VHCA_OPT_TLS] = {"tls", NULL, "send the memory by TLS"},
	[VHCA_OPT_PARK] = {"park", NULL, "take the VFs out; the guests stay"},
	[VHCA_OPT_CHECK] = {"check", NULL, "say by the exit status what was found"},
};
_Static_assert(VHCA_ARRAY_SIZE(options) == VHCA_CTL_OPTS, "one row an option");

static const struct vhca_ctl_command *const commands[] = {
	&vhca_cmd_node,	  &vhca_cmd_hcas,    &vhca_cmd_vfs,	&vhca_cmd_domains,
	&vhca_cmd_claims, &vhca_cmd_explain, &vhca_cmd_adopt,	&vhca_cmd_takeover,
	&vhca_cmd_attach, &vhca_cmd_detach,  &vhca_cmd_migrate, &vhca_cmd_park,
	&vhca_cmd_unpark, &vhca_cmd_drain,   &vhca_cmd_undrain, &vhca_cmd_migrations,
	&vhca_cmd_outbox, &vhca_cmd_watch,   &vhca_cmd_reload,	&vhca_cmd_forget,
};

static int usage(struct vhca_error *err, const char *command)
{
	if (command)
		vhca_error_hint(err, "vhcactl help %s", command);
	else
		vhca_error_hint(err, "vhcactl help");
	return -EINVAL;
}

static const struct vhca_ctl_command *find_command(const char *name, struct vhca_error *err)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "no command '%s'", name);
	(void)usage(err, NULL);
	return NULL;
}

/* ---- help ---- */

/* "--guid GUID" */
static const char *option_text(char buf[static OPTION_MAX], size_t opt)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, OPTION_MAX);
	vhca_strbuf_add(&sb, "--%s", options[opt].name);
	if (options[opt].arg)
		vhca_strbuf_add(&sb, " %s", options[opt].arg);
	return buf;
}

static void print_option(FILE *out, size_t opt)
{
	char text[OPTION_MAX];

	(void)fprintf(out, "  %-22s %s\n", option_text(text, opt), options[opt].help);
}

static void print_synopsis(FILE *out, const struct vhca_ctl_command *cmd)
{
	char text[OPTION_MAX];

	(void)fprintf(out, "Usage: vhcactl [OPTIONS] %s", cmd->name);
	for (size_t i = 0; i < VHCA_CTL_ARGS_MAX && cmd->args[i]; i++)
		(void)fprintf(out, " %s", cmd->args[i]);
	if (cmd->rest)
		(void)fprintf(out, " [%s...]", cmd->rest);
	for (size_t i = 0; i < VHCA_CTL_OPTS; i++) {
		if (cmd->required & VHCA_OPT_BIT(i))
			(void)fprintf(out, " %s", option_text(text, i));
		if (cmd->optional & ~cmd->first_arg_only & VHCA_OPT_BIT(i))
			(void)fprintf(out, " [%s]", option_text(text, i));
	}
	(void)fputc('\n', out);
	for (size_t i = 0; i < VHCA_CTL_OPTS; i++)
		if (cmd->first_arg_only & VHCA_OPT_BIT(i))
			(void)fprintf(out, "       vhcactl [OPTIONS] %s %s %s\n", cmd->name,
				      cmd->args[0], option_text(text, i));
}

static void print_command(FILE *out, const struct vhca_ctl_command *cmd)
{
	print_synopsis(out, cmd);
	(void)fprintf(out, "\n%c%s.\n%s", toupper(cmd->summary[0]), cmd->summary + 1, cmd->help);
	if (cmd->required | cmd->optional)
		(void)fputc('\n', out);
	for (size_t i = 0; i < VHCA_CTL_OPTS; i++)
		if ((cmd->required | cmd->optional) & VHCA_OPT_BIT(i))
			print_option(out, i);
	(void)fputs("\nOptions of all commands: vhcactl help\n", out);
}

static void print_overview(FILE *out)
{
	(void)fputs("Usage: vhcactl [OPTIONS] COMMAND [ARGUMENTS]\n\n"
		    "Looks at the InfiniBand VFs that vhcad keeps on this host, attaches and "
		    "detaches them, and\n"
		    "migrates domains with them.\n\n"
		    "Commands:\n",
		    out);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(commands); i++)
		(void)fprintf(out, "  %-20s %s\n", commands[i]->name, commands[i]->summary);
	(void)fprintf(out, "  %-20s %s\n\nOptions:\n", "help [COMMAND]",
		      "explain vhcactl or one command");
	for (size_t i = 0; i < VHCA_OPT_PARTITION; i++)
		print_option(out, i);
	(void)fputs("\nExit status: 0 done, 2 wrong usage or request, 3 not found, 4 conflict, 5 "
		    "exhausted, 6 device\n"
		    "refused, 7 agent or a peer of it not reachable, 8 not allowed, 1 anything "
		    "else. See vhcactl(1).\n",
		    out);
}

int vhca_ctl_print_help(FILE *out, const char *name, struct vhca_error *err)
{
	const struct vhca_ctl_command *cmd;

	if (!name) {
		print_overview(out);
		return 0;
	}
	cmd = find_command(name, err);
	if (!cmd)
		return -ENOENT;
	print_command(out, cmd);
	return 0;
}

/* ---- parsing ---- */

/* A second value would take the place of the first without a word. Options of all commands may
 * be repeated: an alias has some. */
static int check_given_once(const struct vhca_ctl *ctl, int opt, struct vhca_error *err)
{
	if (opt < VHCA_OPT_PARTITION || !ctl->opts[opt])
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "--%s is given twice",
			     options[opt].name);
	if (opt != VHCA_OPT_PARTITION)
		return usage(err, NULL);
	vhca_error_hint(err, "several P_Keys are one value: --partition '0x8001 storage'");
	return -EINVAL;
}

static int parse_options(int argc, char **argv, struct vhca_ctl *ctl, struct vhca_error *err)
{
	struct option longopts[VHCA_CTL_OPTS + 1] = {0};
	int c;

	for (int i = 0; i < VHCA_CTL_OPTS; i++)
		longopts[i] = (struct option){
			.name = options[i].name,
			.has_arg = options[i].arg ? required_argument : no_argument,
			.val = i + 1, /* 0 would mean "a flag was set" */
		};
	opterr = 0; /* the message below names the way out */
	while ((c = getopt_long(argc, argv, ":", longopts, NULL)) != -1) {
		if (c == '?' || c == ':') {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
					     c == '?' ? "unknown option '%s'"
						      : "option '%s' needs a value",
					     argv[optind - 1]);
			return usage(err, NULL);
		}
		if (check_given_once(ctl, c - 1, err) < 0)
			return -EINVAL;
		ctl->opts[c - 1] = optarg ? optarg : "";
	}
	return 0;
}

static int check_values(struct vhca_ctl *ctl, struct vhca_error *err)
{
	const char *timeout = ctl->opts[VHCA_OPT_TIMEOUT];
	uint32_t seconds = 0;

	ctl->socket_path = ctl->opts[VHCA_OPT_SOCKET] ? ctl->opts[VHCA_OPT_SOCKET] : SOCKET_PATH;
	if (timeout && (vhca_parse_u32(timeout, 10, TIMEOUT_MAX_S, &seconds) < 0 || seconds == 0)) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "--timeout %s: want 1 to %d seconds", timeout, TIMEOUT_MAX_S);
		return usage(err, NULL);
	}
	ctl->timeout_ms = seconds * 1000;
	return 0;
}

/* Options that belong to other commands are refused: an ignored --state would be a wrong answer. */
static int check_options(const struct vhca_ctl *ctl, const struct vhca_ctl_command *cmd,
			 struct vhca_error *err)
{
	for (size_t i = VHCA_OPT_PARTITION; i < VHCA_CTL_OPTS; i++) {
		uint32_t bit = VHCA_OPT_BIT(i);

		if (ctl->opts[i] && !((cmd->required | cmd->optional) & bit)) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s takes no --%s",
					     cmd->name, options[i].name);
			return usage(err, cmd->name);
		}
		if (!ctl->opts[i] && (cmd->required & bit)) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s needs --%s %s",
					     cmd->name, options[i].name, options[i].arg);
			return usage(err, cmd->name);
		}
	}
	return 0;
}

/* How many arguments the command takes, together with the options that are given. */
static int count_args(const struct vhca_ctl *ctl, const struct vhca_ctl_command *cmd)
{
	int n = 0;

	for (size_t i = 0; i < VHCA_CTL_OPTS; i++)
		if (ctl->opts[i] && (cmd->first_arg_only & VHCA_OPT_BIT(i)))
			return 1;
	while (n < VHCA_CTL_ARGS_MAX && cmd->args[n])
		n++;
	return n;
}

static int take_args(struct vhca_ctl *ctl, const struct vhca_ctl_command *cmd, int argc,
		     char **argv, struct vhca_error *err)
{
	int n = 0, want = count_args(ctl, cmd);

	while (n < want) {
		if (n == argc || !argv[n][0]) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s needs %s",
					     cmd->name, cmd->args[n]);
			return usage(err, cmd->name);
		}
		ctl->args[n] = argv[n];
		n++;
	}
	if (cmd->rest) {
		ctl->rest = argv + n;
		ctl->n_rest = argc - n;
		return 0;
	}
	if (n == argc)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s: '%s' is one argument too many",
			     cmd->name, argv[n]);
	return usage(err, cmd->name);
}

int vhca_ctl_parse(int argc, char **argv, struct vhca_ctl *ret,
		   const struct vhca_ctl_command **ret_command, struct vhca_error *err)
{
	const struct vhca_ctl_command *cmd;
	struct vhca_ctl ctl = {0};
	const char *word;
	int r = parse_options(argc, argv, &ctl, err);

	if (r == 0)
		r = check_values(&ctl, err);
	if (r < 0)
		return r;
	word = argv[optind];
	if (word && strcmp(word, "help") == 0) {
		ctl.opts[VHCA_OPT_HELP] = "";
		word = argv[++optind];
	}
	if (ctl.opts[VHCA_OPT_HELP] || ctl.opts[VHCA_OPT_VERSION]) {
		ctl.args[0] = word;
		*ret_command = NULL;
		*ret = ctl;
		return 0;
	}
	if (!word) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "a command is needed");
		return usage(err, NULL);
	}
	cmd = find_command(word, err);
	if (!cmd)
		return -EINVAL;
	r = take_args(&ctl, cmd, argc - optind - 1, argv + optind + 1, err);
	if (r == 0)
		r = check_options(&ctl, cmd, err);
	if (r < 0)
		return r;
	*ret_command = cmd;
	*ret = ctl;
	return 0;
}
