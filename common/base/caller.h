/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_CALLER_H
#define VHCA_BASE_CALLER_H
/*
 * Who asks a program, and for what he may ask. Who he is, the door finds out; which role he has,
 * the rules of the program say at each request, so that one that changes counts for connections
 * that stay.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Those up to admin may do what the ones before them may; an agent reports, and does nothing
 * else. */
enum vhca_caller_role {
	VHCA_CALLER_NOBODY, /* of a route: whoever is let in */
	VHCA_CALLER_METRICS,
	VHCA_CALLER_READ,
	VHCA_CALLER_OPERATE,
	VHCA_CALLER_ADMIN, /* also what an agent may */
	VHCA_CALLER_AGENT,
	VHCA_CALLER_AGENT_READ, /* of no route */
	VHCA_CALLER_ROLES
};

const char *vhca_caller_role_to_string(enum vhca_caller_role role); /* never NULL */
/* Any but nobody. The error names those there are. */
int vhca_caller_role_parse(const char *word, enum vhca_caller_role *ret, struct vhca_error *err);
bool vhca_caller_may(enum vhca_caller_role has, enum vhca_caller_role needed);

#define VHCA_CALLER_NAME_MAX 160
#define VHCA_CALLER_FROM_MAX 72 /* an IPv6 address with its scope */

struct vhca_caller {
	char name[VHCA_CALLER_NAME_MAX]; /* "uid:1000", "cert:hv1.example.org" */
	char from[VHCA_CALLER_FROM_MAX]; /* for the log: "pid 4242", "10.0.0.1" */
	bool local;			 /* by a unix socket: then it has what follows */
	uid_t uid;
	size_t n_gids;
	gid_t *gids; /* all of its process's */
};

/* Frees what it holds. */
void vhca_caller_done(struct vhca_caller *caller);

/* Is it the name of a certificate, "cert:NAME" or "cert-sha256:HEX"? */
bool vhca_caller_is_certificate(const char *name);
/*
 * One that somebody wrote, in the form in which callers are compared with it: host and digest in
 * lower case, an address in its one form, a URI as it is. -EINVAL if it is none.
 */
int vhca_caller_take_certificate(const char *name, char ret[static VHCA_CALLER_NAME_MAX]);

#define VHCA_CALLER_RULES_MAX 64

struct vhca_caller_rules {
	const char *may; /* who has more: "root, and whom [api] roles in vhcad.conf names" */
	enum vhca_caller_role others; /* of whom no rule fits, and the door has let in */
	/* Who on the network has the role agent, whatever the list says; NULL = nobody. */
	bool (*is_agent)(const void *agents, const char *name);
	const void *agents;
	unsigned int n;
	struct vhca_caller_rule {
		enum vhca_caller_who {
			VHCA_CALLER_ANYBODY,
			VHCA_CALLER_USER,
			VHCA_CALLER_GROUP,
			VHCA_CALLER_NAME,
		} who;
		enum vhca_caller_role role;
		id_t id;			 /* of a user or a group */
		char name[VHCA_CALLER_NAME_MAX]; /* WHO, but of anybody */
	} list[VHCA_CALLER_RULES_MAX];
};

/* Replaces the list: blank-separated "WHO:ROLE". WHO is "*", or for a unix socket (local) a user or
 * "@GROUP", else a caller's name. Blocking if local: asks the system for ids. Errors name the
 * word. */
int vhca_caller_rules_parse(struct vhca_caller_rules *rules, const char *text, bool local,
			    struct vhca_error *err);
/* At a unix socket root is admin, and so is whom this process runs as; on the network an agent
 * is an agent; of anybody else the first rule that fits speaks. */
enum vhca_caller_role vhca_caller_role(const struct vhca_caller_rules *rules,
				       const struct vhca_caller *caller);

#endif
