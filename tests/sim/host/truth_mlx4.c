/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "tests/sim/host/truth_int.h"

/* "0>5=8010": virtual index, physical, key there; QPs as "qp>5=8010" */
static size_t describe(const struct truth *t, unsigned int v, char *buf, size_t size, size_t at)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int p = 0; p < HW_PORTS; p++) {
		at = truth_add(buf, size, at, "; port %u guid %llx", p + 1,
			       (unsigned long long)vf->admin[p]);
		for (unsigned int k = 0; k < t->hw.n_keys; k++)
			if (vf->map[p][k] != HW_NONE)
				at = truth_add(buf, size, at, " %u>%d=%04x", k, vf->map[p][k],
					       t->hw.pkeys[p][vf->map[p][k]]);
		for (unsigned int q = 0; q < HW_QPS; q++)
			if (vf->qps[q].live && vf->qps[q].port == p && vf->qps[q].phys != HW_NONE)
				at = truth_add(buf, size, at, " qp>%d=%04x", vf->qps[q].phys,
					       t->hw.pkeys[p][vf->qps[q].phys]);
	}
	return at;
}

static bool clean(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int p = 0; p < HW_PORTS; p++) {
		if (vf->admin[p] != HW_NO_GUID)
			return false;
		for (unsigned int k = 0; k < t->hw.n_keys; k++)
			if (vf->map[p][k] != HW_NONE)
				return false;
	}
	return true;
}

static const char *wrong_map(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int p = 0; p < HW_PORTS; p++)
		for (unsigned int k = 0; k < t->hw.n_keys; k++)
			if (vf->map[p][k] != HW_NONE &&
			    !truth_may(t, v, t->hw.pkeys[p][vf->map[p][k]]))
				return "its map shows its guest a key of somebody else";
	return NULL;
}

/* What counts in the end: the key with which a QP sends and receives. */
static const char *wrong_qp(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int i = 0; i < HW_QPS; i++)
		if (vf->qps[i].live && vf->qps[i].phys != HW_NONE &&
		    !truth_may(t, v, t->hw.pkeys[vf->qps[i].port][vf->qps[i].phys]))
			return "a QP of its guest talks with a key of somebody else";
	return NULL;
}

static const char *wrong(const struct truth *t, unsigned int v)
{
	const char *why = wrong_map(t, v);

	if (!why && !(truth_is_deaf(t, v) && t->vfs[v].tainted))
		why = wrong_qp(t, v);
	return why;
}

/* A QP whose index the map no longer has: dead, or the next one to talk with a foreign key. */
static bool has_stale_qp(const struct truth *t, unsigned int v)
{
	const struct hw_vf *vf = &t->hw.vfs[v];

	for (unsigned int i = 0; i < HW_QPS; i++) {
		const struct hw_qp *qp = &vf->qps[i];
		bool mapped = !qp->live || qp->phys == HW_NONE;

		for (unsigned int k = 0; k < t->hw.n_keys && !mapped; k++)
			mapped = vf->map[qp->port][k] == qp->phys;
		if (!mapped)
			return true;
	}
	return false;
}

static bool matches_claim(const struct truth *t, unsigned int v)
{
	const struct truth_row *row = &t->rows[v];
	const struct hw_vf *vf = &t->hw.vfs[v];

	if (vf->admin[0] != row->guid || vf->admin[1] != HW_NO_GUID)
		return false;
	for (unsigned int k = 0; k < t->hw.n_keys; k++) {
		if (vf->map[1][k] != HW_NONE)
			return false;
		if (vf->map[0][k] != HW_NONE &&
		    (k >= row->n_pkeys || t->hw.pkeys[0][vf->map[0][k]] != row->pkeys[k]))
			return false;
	}
	return true;
}

static unsigned int addresses(const struct truth *t, unsigned int v, uint64_t ret[HW_PORTS])
{
	unsigned int n = 0;

	for (unsigned int p = 0; p < HW_PORTS; p++)
		if (t->hw.vfs[v].admin[p] && t->hw.vfs[v].admin[p] != HW_NO_GUID)
			ret[n++] = t->hw.vfs[v].admin[p];
	return n;
}

/* Invariant 4. A guest that has what it was given keeps it: no GUID goes, no key that is right. */
void truth_before_write(struct truth *t, const struct hw_target *target, const char *text)
{
	const struct hw_vf *vf = &t->hw.vfs[target->vf];
	const struct truth_row *row = &t->rows[target->vf];
	int16_t phys = vf->map[target->port][target->virt];

	if (!truth_is_settled(t, target->vf))
		return;
	if (!target->is_map && vf->admin[target->port] != HW_NO_GUID &&
	    strtoull(text, NULL, 16) != vf->admin[target->port])
		truth_violate(t, target->vf, "its GUID is changed while a guest has it");
	if (target->is_map && phys != HW_NONE && target->virt < row->n_pkeys &&
	    t->hw.pkeys[target->port][phys] == row->pkeys[target->virt])
		truth_violate(t, target->vf, "a good key is taken away while a guest has it");
}

const struct truth_card truth_mlx4 = {
	.describe = describe,
	.clean = clean,
	.wrong = wrong,
	.is_loose = has_stale_qp,
	.matches_claim = matches_claim,
	.addresses = addresses,
};
