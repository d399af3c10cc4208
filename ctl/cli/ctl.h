/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_CTL_H
#define VHCA_CTL_CLI_CTL_H
/*
 * A command line to somebody's HTTP API. A program is a table of options and a table of
 * sub-commands; help, argument checks and the bash completion's test come from these.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

#define VHCA_CTL_ARGS_MAX 2
#define VHCA_CTL_OPTS_MAX 64
#define VHCA_CTL_URL_MAX  320 /* without a path */

struct vhca_http_auth;

/* The first options of each program. */
enum vhca_ctl_opt {
	VHCA_OPT_JSON,
	VHCA_OPT_SOCKET,
	VHCA_OPT_URL,
	VHCA_OPT_CA,
	VHCA_OPT_CERT,
	VHCA_OPT_KEY,
	VHCA_OPT_TOKEN_FILE,
	VHCA_OPT_TIMEOUT,
	VHCA_OPT_WIDE,	 /* these two: of tables */
	VHCA_OPT_FIELDS, /* also -o */
	VHCA_OPT_HELP,
	VHCA_OPT_VERSION,
	VHCA_CTL_OPTS_SHARED /* the program's own begin here */
};
#define VHCA_OPT_BIT(opt) (UINT64_C(1) << (opt))

struct vhca_ctl_option {
	const char *name;
	const char *arg; /* NULL: a flag */
	const char *help;
	const char *several; /* hint for who gives it twice; NULL: there is none */
};

/* Whom to ask. All strings are borrowed. */
struct vhca_ctl_server {
	const char *name;	     /* for messages: "the agent" */
	const char *socket_path;     /* NULL: by url alone */
	char url[VHCA_CTL_URL_MAX];  /* without a path: "http://localhost" for a socket */
	struct vhca_http_auth *auth; /* owned */
	const char *denied, *silent; /* the way out: the socket is forbidden; there is no answer */
};

struct vhca_ctl_program;

/* One invocation, after its command line was checked. Strings are borrowed from argv. */
struct vhca_ctl {
	const struct vhca_ctl_program *program;
	const char *opts[VHCA_CTL_OPTS_MAX]; /* value, "" for a flag, NULL if not given */
	const char *args[VHCA_CTL_ARGS_MAX]; /* NULL: not given */
	char *const *rest;		     /* further arguments, of a command that takes them */
	int n_rest;
	uint32_t timeout_ms; /* 0 = the command's own default */
	struct vhca_ctl_server server;
	bool keeps_controls; /* in texts of answers: no terminal shows them */
	void *connection;    /* what connect() keeps for disconnect() */
};

struct vhca_ctl_command {
	const char *name;
	const char *args[VHCA_CTL_ARGS_MAX]; /* names of the arguments */
	bool may_have_args;		     /* none of them is required */
	const char *rest;	     /* name of any number of arguments behind them; NULL: none */
	bool has_table;		     /* it takes --wide and --fields */
	uint64_t required, optional; /* VHCA_OPT_BIT() of its own options */
	uint64_t first_arg_only;     /* those of them with which only the first argument is taken */
	const char *summary;	     /* a line of the command list */
	const char *help;	     /* paragraphs behind it, "" if there is no more to say */
	/* The exit status, or a negative errno with err set. */
	int (*run)(const struct vhca_ctl *ctl, struct vhca_error *err);
};

struct vhca_ctl_program {
	const char *name, *manual; /* "vhcactl", "vhcactl(1)" */
	const char *about;	   /* lines of the overview */
	const char *peers;	   /* who may be not reachable: "agent or a peer of it" */
	const struct vhca_ctl_option *options;
	unsigned int n_options, n_common; /* the first n_common are of all commands */
	const struct vhca_ctl_command *const *commands;
	unsigned int n_commands;
	/* Fills ret->server from the options before a command runs. */
	int (*connect)(struct vhca_ctl *ret, struct vhca_error *err);
	void (*disconnect)(struct vhca_ctl *ctl); /* behind each connect(), for ctl->connection;
						   * NULL: nothing to do */
};

/* The whole program: the exit status of main(). */
int vhca_ctl_main(const struct vhca_ctl_program *program, int argc, char **argv);

#endif
