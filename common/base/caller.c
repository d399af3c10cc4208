/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/caller.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

#define ENTRY_SIZE 65536 /* of a group with thousands of members */

static const char *const role_words[] = {
	[VHCA_CALLER_NOBODY] = "nobody",
	[VHCA_CALLER_METRICS] = "metrics",
	[VHCA_CALLER_READ] = "read",
	[VHCA_CALLER_OPERATE] = "operate",
	[VHCA_CALLER_ADMIN] = "admin",
	[VHCA_CALLER_AGENT] = "agent",
	[VHCA_CALLER_AGENT_READ] = "agent+read",
};
_Static_assert(VHCA_ARRAY_SIZE(role_words) == VHCA_CALLER_ROLES, "one word a role");

const char *vhca_caller_role_to_string(enum vhca_caller_role role)
{
	return role < VHCA_CALLER_ROLES ? role_words[role] : "unknown";
}

int vhca_caller_role_parse(const char *word, enum vhca_caller_role *ret, struct vhca_error *err)
{
	int i = vhca_word_find(role_words, VHCA_ARRAY_SIZE(role_words), word);

	if (i < 0 || i == VHCA_CALLER_NOBODY)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "\"%.40s\" is not one of metrics | read | operate | admin | "
				      "agent | agent+read",
				      word);
	*ret = (enum vhca_caller_role)i;
	return 0;
}

bool vhca_caller_may(enum vhca_caller_role has, enum vhca_caller_role needed)
{
	if (needed == VHCA_CALLER_NOBODY)
		return true;
	if (needed == VHCA_CALLER_AGENT)
		return has >= VHCA_CALLER_ADMIN;
	if (has == VHCA_CALLER_AGENT_READ)
		return needed <= VHCA_CALLER_READ;
	return has != VHCA_CALLER_AGENT && has >= needed;
}

void vhca_caller_done(struct vhca_caller *caller)
{
	free(caller->gids);
	caller->gids = NULL;
	caller->n_gids = 0;
}

bool vhca_caller_is_certificate(const char *name)
{
	static const char *const kinds[] = {"cert:", "cert-sha256:"};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (strncmp(name, kinds[i], len) == 0 && name[len])
			return strlen(name) < VHCA_CALLER_NAME_MAX;
	}
	return false;
}

/* Of an IPv6 address at this place of the name: the form in which callers have it. */
static void shorten(char name[static VHCA_CALLER_NAME_MAX], char *at)
{
	struct in6_addr address;

	if (inet_pton(AF_INET6, at, &address) == 1)
		(void)inet_ntop(AF_INET6, &address, at,
				(socklen_t)(name + VHCA_CALLER_NAME_MAX - at));
}

int vhca_caller_take_certificate(const char *name, char ret[static VHCA_CALLER_NAME_MAX])
{
	char *own = ret + strcspn(name, ":") + 1;

	if (!vhca_caller_is_certificate(name) || vhca_strcpy(ret, VHCA_CALLER_NAME_MAX, name) < 0)
		return -EINVAL;
	shorten(ret, own);
	if (!strpbrk(own, ":/"))
		for (; *own; own++)
			*own = (char)tolower((unsigned char)*own);
	return 0;
}

/* ---- rules ---- */

/* 0, -ENOENT if there is no such name, or what the system says. */
static int find_id(const char *name, bool is_group, id_t *ret)
{
	VHCA_AUTO_FREE char *entry = malloc(ENTRY_SIZE);
	struct passwd pw, *user = NULL;
	struct group gr, *group = NULL;
	int r;

	if (!entry)
		return -ENOMEM;
	r = is_group ? getgrnam_r(name, &gr, entry, ENTRY_SIZE, &group)
		     : getpwnam_r(name, &pw, entry, ENTRY_SIZE, &user);
	if (!group && !user)
		return r != 0 ? -r : -ENOENT;
	*ret = group ? group->gr_gid : user->pw_uid;
	return 0;
}

static int parse_local(const char *who, struct vhca_caller_rule *ret, struct vhca_error *err)
{
	bool is_group = *who == '@';
	int r = find_id(who + is_group, is_group, &ret->id);

	ret->who = is_group ? VHCA_CALLER_GROUP : VHCA_CALLER_USER;
	if (r == -ENOENT)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "there is no %s \"%.80s\"", is_group ? "group" : "user",
				      who + is_group);
	if (r < 0 || vhca_strcpy(ret->name, sizeof(ret->name), who) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", r < 0 ? -r : 0, "%.80s",
				      who);
	return 0;
}

/* A word that no name begins with would never fit, and nobody would see it. */
static int parse_remote(const char *who, struct vhca_caller_rule *ret, struct vhca_error *err)
{
	bool is_address = strncmp(who, "address:", 8) == 0;
	int r;

	ret->who = VHCA_CALLER_NAME;
	if (is_address || strcmp(who, "token") == 0)
		r = vhca_strcpy(ret->name, sizeof(ret->name), who);
	else
		r = vhca_caller_take_certificate(who, ret->name);
	if (r == 0 && is_address)
		shorten(ret->name, ret->name + 8);
	if (r == 0)
		return 0;
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
			      "\"%.80s\" is no name on the network: *, cert:NAME, "
			      "cert-sha256:HEX, token or address:ADDRESS",
			      who);
}

/* The word is cut. */
static int parse_rule(char *word, bool local, struct vhca_caller_rule *ret, struct vhca_error *err)
{
	char *colon = strrchr(word, ':');
	int r;

	if (!colon || colon == word)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "\"%.80s\" is not WHO:ROLE", word);
	*colon = '\0';
	r = vhca_caller_role_parse(colon + 1, &ret->role, err);
	if (r < 0)
		return r;
	if (strcmp(word, "*") == 0) {
		ret->who = VHCA_CALLER_ANYBODY;
		return 0;
	}
	return local ? parse_local(word, ret, err) : parse_remote(word, ret, err);
}

int vhca_caller_rules_parse(struct vhca_caller_rules *rules, const char *text, bool local,
			    struct vhca_error *err)
{
	VHCA_AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *word;

	if (!copy)
		return vhca_error_no_memory(err, "rules");
	memset(rules->list, 0, sizeof(rules->list));
	rules->n = 0;
	while ((word = strsep(&rest, " \t"))) {
		int r = 0;

		if (*word && rules->n == VHCA_CALLER_RULES_MAX)
			return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
					      "more than %d rules", VHCA_CALLER_RULES_MAX);
		if (*word)
			r = parse_rule(word, local, &rules->list[rules->n++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_in_group(const struct vhca_caller *caller, id_t gid)
{
	for (size_t i = 0; i < caller->n_gids; i++)
		if (gid == caller->gids[i])
			return true;
	return false;
}

static bool fits(const struct vhca_caller_rule *rule, const struct vhca_caller *caller)
{
	switch (rule->who) {
	case VHCA_CALLER_ANYBODY:
		return true;
	case VHCA_CALLER_USER:
		return caller->local && rule->id == caller->uid;
	case VHCA_CALLER_GROUP:
		return caller->local && is_in_group(caller, rule->id);
	case VHCA_CALLER_NAME:
		return strcmp(rule->name, caller->name) == 0;
	}
	return false;
}

enum vhca_caller_role vhca_caller_role(const struct vhca_caller_rules *rules,
				       const struct vhca_caller *caller)
{
	if (caller->local && (caller->uid == 0 || caller->uid == geteuid()))
		return VHCA_CALLER_ADMIN;
	if (!caller->local && rules->is_agent && rules->is_agent(rules->agents, caller->name))
		return VHCA_CALLER_AGENT;
	for (unsigned int i = 0; i < rules->n; i++)
		if (fits(&rules->list[i], caller))
			return rules->list[i].role;
	return rules->others;
}
