/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/partitions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

/*
 * 64 members of at most 27 characters stay far below the 4094 that OpenSM's reader takes in one
 * line.
 */
#define MEMBERS_PER_LINE 64

/* ---- policy ---- */

static int parse_base(const char *text, uint16_t *ret)
{
	uint32_t n;

	if (vhca_parse_u32(text, 0, VHCA_PKEY_DEFAULT, &n) < 0 || n == 0)
		return -EINVAL;
	*ret = (uint16_t)n;
	return 0;
}

static int parse_range(char *word, struct vhca_osm_range *ret)
{
	char *dash = strchr(word, '-');

	if (dash)
		*dash = '\0';
	if (parse_base(word, &ret->first) < 0 || parse_base(dash ? dash + 1 : word, &ret->last) < 0)
		return -EINVAL;
	return ret->first <= ret->last ? 0 : -EINVAL;
}

int vhca_osm_policy_parse_allowed(struct vhca_osm_policy *policy, const char *text,
				  struct vhca_error *err)
{
	VHCA_AUTO_FREE char *copy = strdup(text);
	char *save = NULL;

	if (!copy)
		return vhca_error_no_memory(err, "allowed");
	policy->n_allowed = 0;
	for (char *w = strtok_r(copy, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (policy->n_allowed == VHCA_OSM_RANGES_MAX)
			return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
					      "more than %d ranges", VHCA_OSM_RANGES_MAX);
		if (parse_range(w, &policy->allowed[policy->n_allowed]) < 0)
			return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", 0,
					      "\"%s\" is no range of keys 0x0001-0x7fff", w);
		policy->n_allowed++;
	}
	return 0;
}

bool vhca_osm_policy_allows(const struct vhca_osm_policy *policy, uint16_t pkey)
{
	uint16_t base = vhca_pkey_base(pkey);

	for (size_t i = 0; i < policy->n_allowed; i++)
		if (base >= policy->allowed[i].first && base <= policy->allowed[i].last)
			return true;
	return false;
}

/* ---- text ---- */

#define LIMITED 1U
#define FULL	2U

struct member {
	uint16_t pkey_base;
	unsigned int membership;
	uint64_t guid;
};

struct members {
	size_t n, capacity;
	struct member *v;
};

static void members_done(struct members *m)
{
	free(m->v);
}

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->pkey_base != y->pkey_base)
		return x->pkey_base < y->pkey_base ? -1 : 1;
	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	return 0;
}

static int add_member(struct members *all, const struct member *m)
{
	if (all->n == all->capacity) {
		size_t capacity = all->capacity ? all->capacity * 2 : 256;
		struct member *v = reallocarray(all->v, capacity, sizeof(*v));

		if (!v)
			return -ENOMEM;
		all->v = v;
		all->capacity = capacity;
	}
	all->v[all->n++] = *m;
	return 0;
}

static unsigned int membership_of(const struct vhca_osm_port *p, uint16_t base)
{
	unsigned int m = 0;

	for (size_t i = 0; i < p->n_needs; i++)
		if (vhca_pkey_base(p->needs[i].pkey) == base)
			m |= vhca_pkey_is_full(p->needs[i].pkey) ? FULL : LIMITED;
	return m;
}

/*
 * What to write for a port's need of the default partition: 0 = nothing, the base part has seen to
 * it.
 */
static unsigned int default_membership(const struct vhca_osm_policy *policy, unsigned int m)
{
	if (!vhca_osm_policy_allows(policy, VHCA_PKEY_DEFAULT))
		return 0;
	if (policy->both_memberships && m)
		return FULL | LIMITED;
	return m & FULL;
}

static int add_port(struct members *all, const struct vhca_osm_port *p,
		    const struct vhca_osm_policy *policy)
{
	for (size_t i = 0; i < p->n_needs; i++) {
		uint16_t base = vhca_pkey_base(p->needs[i].pkey);
		struct member m = {base, membership_of(p, base), p->guid};

		/* The limited form sorts first; its full twin was written together with it. */
		if (vhca_pkey_is_full(p->needs[i].pkey) && (m.membership & LIMITED))
			continue;
		if (base == VHCA_PKEY_DEFAULT)
			m.membership = default_membership(policy, m.membership);
		if (m.membership && add_member(all, &m) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void put_header(FILE *f, const struct vhca_osm_base *base,
		       const struct vhca_osm_policy *policy, uint16_t pkey_base)
{
	const struct vhca_osm_base_prtn *known = base ? vhca_osm_base_find(base, pkey_base) : NULL;

	(void)fprintf(f, "vhca_%04x=0x%04x", pkey_base, pkey_base);
	if (known && known->sl)
		(void)fprintf(f, ",sl=%u", known->sl);
	else if (!known && policy->ipoib && pkey_base != VHCA_PKEY_DEFAULT)
		(void)fputs(",ipoib", f);
	(void)fputc(':', f);
}

static void put_members(FILE *f, const struct vhca_osm_base *base,
			const struct vhca_osm_policy *policy, const struct members *all)
{
	static const char *const words[] = {
		[LIMITED] = "limited", [FULL] = "full", [FULL | LIMITED] = "both"};
	size_t on_line = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct member *m = &all->v[i];
		bool last = i + 1 == all->n || all->v[i + 1].pkey_base != m->pkey_base;

		if (on_line == 0)
			put_header(f, base, policy, m->pkey_base);
		on_line++;
		last = last || on_line == MEMBERS_PER_LINE;
		(void)fprintf(f, "0x%016" PRIx64 "=%s%s", m->guid, words[m->membership],
			      last ? ";\n" : ",");
		if (last)
			on_line = 0;
	}
}

static void put_text(FILE *f, const struct vhca_osm_base *base,
		     const struct vhca_osm_policy *policy, const struct members *all)
{
	(void)fputs(VHCA_OSM_GENERATED " Changes are overwritten: edit the base_file instead.\n",
		    f);
	if (base &&
	    base->n) /* a file that defines nothing means the built-in rule to OpenSM, too */
		(void)fputs(base->text, f);
	else if (policy->default_limited)
		(void)fputs("Default=0x7fff,ipoib:ALL=limited,SELF=full;\n", f);
	else /* what OpenSM does without a partition file */
		(void)fputs("Default=0x7fff,ipoib:ALL=full;\n", f);
	(void)fputs("# Needed by bindings and declarations:\n", f);
	put_members(f, base, policy, all);
}

int vhca_osm_partitions_render(const struct vhca_osm_table *t, const struct vhca_osm_base *base,
			       const struct vhca_osm_policy *policy, char **ret_text,
			       size_t *ret_len)
{
	VHCA_CLEANUP(members_done) struct members all = {0};
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *f;
	int failed;

	for (size_t i = 0; i < vhca_osm_table_ports(t); i++)
		if (add_port(&all, vhca_osm_table_port_at(t, i), policy) < 0)
			return -ENOMEM;
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), compare);
	f = open_memstream(&text, &len);
	if (!f)
		return -errno;
	put_text(f, base, policy, &all);
	failed = ferror(f);
	if (fclose(f) != 0 || failed) /* a memory stream fails only for want of memory */
		return -ENOMEM;
	*ret_text = vhca_steal_ptr(&text);
	*ret_len = len;
	return 0;
}
