/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/caller.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define ENTRY_SIZE 65536 /* of a group with thousands of members */

static const char *const role_words[] = {
	[VHCA_CALLER_NOBODY] = "nobody", [VHCA_CALLER_METRICS] = "metrics",
	[VHCA_CALLER_READ] = "read",	 [VHCA_CALLER_OPERATE] = "operate",
	[VHCA_CALLER_ADMIN] = "admin",	 [VHCA_CALLER_AGENT] = "agent",
};
_Static_assert(VHCA_ARRAY_SIZE(role_words) == VHCA_CALLER_ROLES, "one word a role");

const char *vhca_caller_role_to_string(enum vhca_caller_role role)
{
	return role < VHCA_CALLER_ROLES ? role_words[role] : "unknown";
}

bool vhca_caller_may(enum vhca_caller_role has, enum vhca_caller_role needed)
{
	if (has == VHCA_CALLER_AGENT || needed == VHCA_CALLER_AGENT)
		return has == needed || has == VHCA_CALLER_ADMIN || needed == VHCA_CALLER_NOBODY;
	return has >= needed;
}

void vhca_caller_done(struct vhca_caller *caller)
{
	free(caller->gids);
	caller->gids = NULL;
	caller->n_gids = 0;
}

/* ---- rules ---- */

static int find_role(const char *word, enum vhca_caller_role *ret)
{
	for (unsigned int i = VHCA_CALLER_METRICS; i < VHCA_CALLER_ROLES; i++)
		if (strcmp(word, role_words[i]) == 0) {
			*ret = (enum vhca_caller_role)i;
			return 0;
		}
	return -EINVAL;
}

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
		return r ? -r : -ENOENT;
	*ret = group ? group->gr_gid : user->pw_uid;
	return 0;
}

/* The word "WHO:ROLE", which is cut. */
static int parse_rule(char *word, struct vhca_caller_rule *ret, struct vhca_error *err)
{
	char *colon = strrchr(word, ':');
	int r;

	ret->is_group = *word == '@';
	if (!colon || colon == word + ret->is_group)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "\"%.80s\" is neither USER:ROLE nor @GROUP:ROLE", word);
	*colon = '\0';
	if (find_role(colon + 1, &ret->role) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "\"%.40s\" is not one of metrics | read | operate | admin | "
				      "agent",
				      colon + 1);
	r = find_id(word + ret->is_group, ret->is_group, &ret->id);
	if (r == -ENOENT)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "there is no %s \"%.80s\"", ret->is_group ? "group" : "user",
				      word + ret->is_group);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", -r, "%.80s", word);
	return 0;
}

int vhca_caller_rules_parse(struct vhca_caller_rules *rules, const char *text,
			    struct vhca_error *err)
{
	VHCA_AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *word;

	if (!copy)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "rules");
	memset(rules->list, 0, sizeof(rules->list));
	rules->n = 0;
	while ((word = strsep(&rest, " \t"))) {
		int r = 0;

		if (*word && rules->n == VHCA_CALLER_RULES_MAX)
			return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
					      "more than %d rules", VHCA_CALLER_RULES_MAX);
		if (*word)
			r = parse_rule(word, &rules->list[rules->n++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool fits(const struct vhca_caller_rule *rule, const struct vhca_caller *caller)
{
	if (!rule->is_group)
		return rule->id == caller->uid;
	for (size_t i = 0; i < caller->n_gids; i++)
		if (rule->id == caller->gids[i])
			return true;
	return false;
}

enum vhca_caller_role vhca_caller_role(const struct vhca_caller_rules *rules,
				       const struct vhca_caller *caller)
{
	if (caller->local && caller->uid == 0)
		return VHCA_CALLER_ADMIN;
	for (unsigned int i = 0; caller->local && i < rules->n; i++)
		if (fits(&rules->list[i], caller))
			return rules->list[i].role;
	return rules->others;
}
