/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

#define TIMEOUT_MAX_S 3600
#define OPTION_MAX    40

static int usage(const struct vhca_ctl_program *program, struct vhca_error *err,
		 const char *command)
{
	vhca_error_hint(err, "%s help%s%s", program->name, command ? " " : "",
			command ? command : "");
	return -EINVAL;
}

static const struct vhca_ctl_command *find_command(const struct vhca_ctl_program *program,
						   const char *name, struct vhca_error *err)
{
	for (size_t i = 0; i < program->n_commands; i++)
		if (strcmp(program->commands[i]->name, name) == 0)
			return program->commands[i];
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "no command '%s'", name);
	(void)usage(program, err, NULL);
	return NULL;
}

/* ---- help ---- */

/* "--guid GUID" */
static const char *option_text(char buf[static OPTION_MAX], const struct vhca_ctl_option *option)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, OPTION_MAX);
	vhca_strbuf_add(&sb, "--%s", option->name);
	if (option->arg)
		vhca_strbuf_add(&sb, " %s", option->arg);
	return buf;
}

static void print_option(FILE *out, const struct vhca_ctl_option *option)
{
	char text[OPTION_MAX];

	(void)fprintf(out, "  %-22s %s\n", option_text(text, option), option->help);
}

static void print_synopsis(FILE *out, const struct vhca_ctl_program *program,
			   const struct vhca_ctl_command *cmd)
{
	const struct vhca_ctl_option *options = program->options;
	char text[OPTION_MAX];

	(void)fprintf(out, "Usage: %s [OPTIONS] %s", program->name, cmd->name);
	for (size_t i = 0; i < VHCA_CTL_ARGS_MAX && cmd->args[i]; i++)
		(void)fprintf(out, cmd->may_have_args ? " [%s]" : " %s", cmd->args[i]);
	if (cmd->rest)
		(void)fprintf(out, " [%s...]", cmd->rest);
	for (size_t i = 0; i < program->n_options; i++) {
		if (cmd->required & VHCA_OPT_BIT(i))
			(void)fprintf(out, " %s", option_text(text, &options[i]));
		if (cmd->optional & ~cmd->first_arg_only & VHCA_OPT_BIT(i))
			(void)fprintf(out, " [%s]", option_text(text, &options[i]));
	}
	(void)fputc('\n', out);
	for (size_t i = 0; i < program->n_options; i++)
		if (cmd->first_arg_only & VHCA_OPT_BIT(i))
			(void)fprintf(out, "       %s [OPTIONS] %s %s %s\n", program->name,
				      cmd->name, cmd->args[0], option_text(text, &options[i]));
}

static void print_overview(FILE *out, const struct vhca_ctl_program *program)
{
	(void)fprintf(out, "Usage: %s [OPTIONS] COMMAND [ARGUMENTS]\n\n%s\nCommands:\n",
		      program->name, program->about);
	for (size_t i = 0; i < program->n_commands; i++)
		(void)fprintf(out, "  %-20s %s\n", program->commands[i]->name,
			      program->commands[i]->summary);
	(void)fprintf(out, "  %-20s explain %s or one command\n\nOptions:\n", "help [COMMAND]",
		      program->name);
	for (size_t i = 0; i < program->n_common; i++)
		print_option(out, &program->options[i]);
	(void)fprintf(out,
		      "\nExit status: 0 done, 2 wrong usage or request, 3 not found, 4 conflict, 5 "
		      "exhausted, 6 device\n"
		      "refused, 7 %s not reachable, 8 not allowed, 1 anything "
		      "else. See %s.\n",
		      program->peers, program->manual);
}

int vhca_ctl_print_help(FILE *out, const struct vhca_ctl_program *program, const char *name,
			struct vhca_error *err)
{
	const struct vhca_ctl_command *cmd;

	if (!name) {
		print_overview(out, program);
		return 0;
	}
	cmd = find_command(program, name, err);
	if (!cmd)
		return -ENOENT;
	print_synopsis(out, program, cmd);
	(void)fprintf(out, "\n%c%s.\n%s", toupper(cmd->summary[0]), cmd->summary + 1, cmd->help);
	if (cmd->required | cmd->optional)
		(void)fputc('\n', out);
	for (size_t i = 0; i < program->n_options; i++)
		if ((cmd->required | cmd->optional) & VHCA_OPT_BIT(i))
			print_option(out, &program->options[i]);
	(void)fprintf(out, "\nOptions of all commands: %s help\n", program->name);
	return 0;
}

/* ---- parsing ---- */

/* A second value would take the place of the first without a word. Options of all commands may
 * be repeated: an alias has some. */
static int check_given_once(const struct vhca_ctl *ctl, unsigned int opt, struct vhca_error *err)
{
	const struct vhca_ctl_option *option = &ctl->program->options[opt];

	if (opt < ctl->program->n_common || !ctl->opts[opt])
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "--%s is given twice",
			     option->name);
	if (!option->several)
		return usage(ctl->program, err, NULL);
	vhca_error_hint(err, "%s", option->several);
	return -EINVAL;
}

static int parse_options(int argc, char **argv, struct vhca_ctl *ctl, struct vhca_error *err)
{
	const struct vhca_ctl_program *program = ctl->program;
	struct option longopts[VHCA_CTL_OPTS_MAX + 1] = {0};
	int c;

	for (unsigned int i = 0; i < program->n_options; i++)
		longopts[i] = (struct option){
			.name = program->options[i].name,
			.has_arg = program->options[i].arg ? required_argument : no_argument,
			.val = (int)i + 1, /* 0 would mean "a flag was set" */
		};
	opterr = 0; /* the message below names the way out */
	while ((c = getopt_long(argc, argv, ":o:", longopts, NULL)) != -1) {
		if (c == 'o')
			c = VHCA_OPT_FIELDS + 1;
		if (c == '?' || c == ':') {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
					     c == '?' ? "unknown option '%s'"
						      : "option '%s' needs a value",
					     argv[optind - 1]);
			return usage(program, err, NULL);
		}
		if (check_given_once(ctl, (unsigned int)c - 1, err) < 0)
			return -EINVAL;
		ctl->opts[c - 1] = optarg ? optarg : "";
	}
	return 0;
}

static int check_timeout(struct vhca_ctl *ctl, struct vhca_error *err)
{
	const char *timeout = ctl->opts[VHCA_OPT_TIMEOUT];
	uint32_t seconds = 0;

	if (timeout && (vhca_parse_u32(timeout, 10, TIMEOUT_MAX_S, &seconds) < 0 || seconds == 0)) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "--timeout %s: want 1 to %d seconds", timeout, TIMEOUT_MAX_S);
		return usage(ctl->program, err, NULL);
	}
	ctl->timeout_ms = seconds * 1000;
	return 0;
}

/* Options that belong to other commands are refused: an ignored --state would be a wrong answer. */
static int check_options(const struct vhca_ctl *ctl, const struct vhca_ctl_command *cmd,
			 struct vhca_error *err)
{
	const struct vhca_ctl_option *options = ctl->program->options;
	bool is_of_table = ctl->opts[VHCA_OPT_WIDE] || ctl->opts[VHCA_OPT_FIELDS];

	if (is_of_table && !cmd->has_table) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "%s shows no table: no --wide, no --fields", cmd->name);
		return usage(ctl->program, err, cmd->name);
	}
	if (ctl->opts[VHCA_OPT_WIDE] ? ctl->opts[VHCA_OPT_JSON] || ctl->opts[VHCA_OPT_FIELDS]
				     : ctl->opts[VHCA_OPT_JSON] && ctl->opts[VHCA_OPT_FIELDS]) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "--json, --wide and --fields: one of them");
		return usage(ctl->program, err, cmd->name);
	}
	for (size_t i = ctl->program->n_common; i < ctl->program->n_options; i++) {
		uint64_t bit = VHCA_OPT_BIT(i);

		if (ctl->opts[i] && !((cmd->required | cmd->optional) & bit)) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s takes no --%s",
					     cmd->name, options[i].name);
			return usage(ctl->program, err, cmd->name);
		}
		if (!ctl->opts[i] && (cmd->required & bit)) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s needs --%s %s",
					     cmd->name, options[i].name, options[i].arg);
			return usage(ctl->program, err, cmd->name);
		}
	}
	return 0;
}

/* How many arguments the command takes, together with the options that are given. */
static unsigned int count_args(const struct vhca_ctl *ctl, const struct vhca_ctl_command *cmd)
{
	unsigned int n = 0;

	for (size_t i = 0; i < ctl->program->n_options; i++)
		if (ctl->opts[i] && (cmd->first_arg_only & VHCA_OPT_BIT(i)))
			return 1;
	while (n < VHCA_CTL_ARGS_MAX && cmd->args[n])
		n++;
	return n;
}

static int take_args(struct vhca_ctl *ctl, const struct vhca_ctl_command *cmd, int argc,
		     char **argv, struct vhca_error *err)
{
	unsigned int want = count_args(ctl, cmd);
	int n = 0;

	while (n < (int)want && !(n == argc && cmd->may_have_args)) {
		if (n == argc || !argv[n][0]) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "%s needs %s",
					     cmd->name, cmd->args[n]);
			return usage(ctl->program, err, cmd->name);
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
	return usage(ctl->program, err, cmd->name);
}

int vhca_ctl_parse(const struct vhca_ctl_program *program, int argc, char **argv,
		   struct vhca_ctl *ret, const struct vhca_ctl_command **ret_command,
		   struct vhca_error *err)
{
	const struct vhca_ctl_command *cmd;
	struct vhca_ctl ctl = {.program = program};
	const char *word;
	int r = parse_options(argc, argv, &ctl, err);

	if (r == 0)
		r = check_timeout(&ctl, err);
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
		return usage(program, err, NULL);
	}
	cmd = find_command(program, word, err);
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
