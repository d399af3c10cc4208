/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/truth_int.h"

static size_t describe(const struct truth *t, unsigned int v, char *buf, size_t size, size_t at)
{
	const struct hw_vport *vp = &t->hw.vports[v];

	at = truth_add(buf, size, at, "; node %llx port %llx link %u, remembered %llx %llx",
		       (unsigned long long)vp->node, (unsigned long long)vp->port, vp->link,
		       (unsigned long long)vp->cached_node, (unsigned long long)vp->cached_port);
	if (!vp->known)
		return at;
	at = truth_add(buf, size, at, "; active as %llx with", (unsigned long long)vp->known);
	for (const uint16_t *k = vp->keys; *k; k++)
		at = truth_add(buf, size, at, " %04x", *k);
	return at;
}

/*
 * What the driver remembers comes back when the VF is made again, so it is no less than what
 * firmware has.
 */
static bool clean(const struct truth *t, unsigned int v)
{
	const struct hw_vport *vp = &t->hw.vports[v];

	return vp->link == HW_LINK_DOWN && hw_is_nobody(vp->node) && hw_is_nobody(vp->port) &&
	       hw_is_nobody(vp->cached_node) && hw_is_nobody(vp->cached_port);
}

static const char *wrong(const struct truth *t, unsigned int v)
{
	const struct hw_vport *vp = &t->hw.vports[v];
	bool may_be_on = vp->link != HW_LINK_DOWN && !hw_is_nobody(vp->port);

	for (const uint16_t *k = vp->keys; vp->known && *k; k++)
		if (!truth_may(t, v, *k))
			return "its guest talks with a key of somebody else";
	if (may_be_on && !truth_in_state(t, v, "unmanaged") &&
	    (!t->rows[v].claimed || vp->port != t->rows[v].guid))
		return "its guest has an address that is not its own";
	return NULL;
}

/* QPs have the vport's own table, which the SM writes: none of them keeps anything. */
static bool is_loose(const struct truth *t, unsigned int v)
{
	(void)t;
	(void)v;
	return false;
}

/*
 * Somebody who turns `auto` into `enable` shows nobody anything else: an adopted guest may have it
 * so.
 */
static bool matches_claim(const struct truth *t, unsigned int v)
{
	const struct hw_vport *vp = &t->hw.vports[v];

	return vp->node == t->rows[v].guid && vp->port == t->rows[v].guid &&
	       vp->link != HW_LINK_DOWN;
}

static unsigned int addresses(const struct truth *t, unsigned int v, uint64_t ret[HW_PORTS])
{
	const struct hw_vport *vp = &t->hw.vports[v];
	unsigned int n = 0;

	if (!hw_is_nobody(vp->node))
		ret[n++] = vp->node;
	if (!hw_is_nobody(vp->port))
		ret[n++] = vp->port;
	return n;
}

/* Invariant 4: neither the address nor the link of a guest that has what it was given. */
void truth_vport_set(struct truth *t, unsigned int v, const struct hw_vport *before)
{
	const struct hw_vport *vp = &t->hw.vports[v];

	if (!truth_is_settled(t, v))
		return;
	if ((vp->port != before->port && !hw_is_nobody(before->port)) ||
	    (vp->node != before->node && !hw_is_nobody(before->node)))
		truth_violate(t, v, "its GUID is changed while a guest has it");
	if (vp->link == HW_LINK_DOWN && before->link != HW_LINK_DOWN)
		truth_violate(t, v, "its link is taken down while a guest has it");
}

const struct truth_card truth_mlx5 = {
	.describe = describe,
	.clean = clean,
	.wrong = wrong,
	.is_loose = is_loose,
	.matches_claim = matches_claim,
	.addresses = addresses,
};
