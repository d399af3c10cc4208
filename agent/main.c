/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>
#include <stdio.h>

#include "agent/agent.h"
#include "agent/plan.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/sysfs/sysfs.h"
#include "config.h"

enum mode { RUN, CHECK, PLAN };

struct options {
	enum mode mode;
	const char *conf_path;
};

static void usage(FILE *to)
{
	fputs("Usage: vhcad [--config FILE] [--check-config | --plan]\n"
	      "\n"
	      "  -c, --config FILE   configuration (" VHCA_SYSCONFDIR "/vhcad/vhcad.conf)\n"
	      "      --check-config  read the configuration, say what is wrong, and exit\n"
	      "      --plan          say what a first start would do to this host, and exit\n"
	      "      --version\n"
	      "      --help\n"
	      "\n"
	      "vhcad(8), vhcad.conf(5)\n",
	      to);
}

/* Returns -1 to go on, else the exit status. */
static int parse_argv(int argc, char *argv[], struct options *ret)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'}, {"check-config", no_argument, NULL, 'k'},
		{"plan", no_argument, NULL, 'p'},	  {"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},	  {NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			ret->conf_path = optarg;
			break;
		case 'k':
			ret->mode = CHECK;
			break;
		case 'p':
			ret->mode = PLAN;
			break;
		case 'v':
			puts("vhcad " VHCA_VERSION);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind == argc)
		return -1;
	usage(stderr);
	return 2;
}

static int fail(const struct vhca_error *err)
{
	fprintf(stderr, "vhcad: %s%s%s\n", err->msg, err->hint[0] ? "; " : "", err->hint);
	return vhca_err_to_exit(err->kind);
}

static int check(const struct options *opt)
{
	VHCA_AUTO_FREE struct vhca_conf *conf = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_conf_load(opt->conf_path, &conf, &err) < 0)
		return fail(&err);
	vhca_plan_warn(conf, vhca_sysfs_default_root());
	if (opt->mode == CHECK)
		printf("%s: ok\n", opt->conf_path);
	else if (vhca_plan_print(conf, vhca_sysfs_default_root(), "/dev", &err) < 0)
		return fail(&err);
	return 0;
}

static int run(const struct options *opt)
{
	struct vhca_agent_args args = {.conf_path = opt->conf_path, .watch_hardware = true};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_agent *agent = NULL;
	int status;

	if (vhca_agent_block_signals() < 0)
		return 1;
	if (vhca_agent_new(&args, &agent, &err) < 0) {
		vhca_log_error("cannot start: %s%s%s", err.msg, err.hint[0] ? "; " : "", err.hint);
		return vhca_err_to_exit(err.kind);
	}
	status = vhca_agent_run(agent);
	vhca_agent_free(agent);
	return status;
}

int main(int argc, char *argv[])
{
	struct options opt = {.mode = RUN, .conf_path = VHCA_SYSCONFDIR "/vhcad/vhcad.conf"};
	int r = parse_argv(argc, argv, &opt);

	if (r >= 0)
		return r;
	return opt.mode == RUN ? run(&opt) : check(&opt);
}
