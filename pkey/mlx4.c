/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Identity on mlx4. Giving an identity and taking it away are one transaction: for every port of
 * the VF a plan says what the map and the GUID shall be, and one engine brings it about in an order
 * that never shows more than either the old or the new owner may have:
 *
 *   0. forbid  to send SMPs as an SM does, which no guest may.
 *   1. unmap   every virtual index that must change, on all ports. An index whose key has moved goes through none as well: the
 *              guest's IPoIB only notices a change of value or of index, never of the physical index behind.
 *   2. withdraw GUIDs that must go. Keys come before: without a key the old GUID reaches nobody.
 *   3. GUID    of the new owner. Before its keys: the new keys are never seen under the old address.
 *   4. map     the new keys, virtual index 0 first (the one IPoIB's parent interface uses).
 *   5. prove   by reading everything back, the physical table behind the mapped indices included: the SM may have moved a key
 *              between our look at the table and our write, and the index may now mean another tenant's partition.
 *
 * Steps that take away (0, 1, 2) are all tried, even after one has failed; steps that give (3, 4)
 * only start when all of them succeeded. A pass without a difference writes nothing.
 */
#include <errno.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "pkey/identity.h"
#include "pkey/mlx4_int.h"
#include "pkey/mlx4_keys.h"
#include "pkey/mlx4_tree.h"

/*
 * Between none and the new physical index of a key that moved: a running guest has to read its
 * table in between, or it takes the two events for no change. Its handler is a work item, so this
 * is far more than it needs when it gets to run at all.
 */
#define SETTLE_MS 200

#define READ_PKEYS "read pkeys"

struct plan {
	uint8_t port;
	bool written; /* something was tried: the port needs a proof */
	unsigned int n_virtual;
	int16_t map[VHCA_PKEY_TABLE_MAX], target_map[VHCA_PKEY_TABLE_MAX];
	uint64_t guid, target_guid;
	bool smi; /* its next driver may send SMPs of all kinds */
};

struct work {
	struct vhca_mlx4_fn fn;
	const struct vhca_identity_at *at;
	uint8_t n_plans;
	struct plan plans[VHCA_MLX4_PORTS];
	uint8_t own;		    /* index of the plan of at->port */
	struct vhca_mlx4_keys keys; /* of at->port */
};

static void work_done(struct work *w)
{
	vhca_mlx4_close(&w->fn);
}

#define AUTO_WORK VHCA_CLEANUP(work_done)

/* ---- errors ---- */

static int fail(const struct work *w, uint8_t port, int r, struct vhca_error *err, const char *what)
{
	return vhca_mlx4_fail(w->at, port, r, err, what);
}

static int differs(const struct work *w, uint8_t port, struct vhca_error *err, const char *what)
{
	(void)vhca_error_set(err, VHCA_ERR_DEVICE, "readback_differs", EIO, "%s VF %u port %u: %s",
			     VHCA_BDF_STR(w->at->pf), w->at->vf_index, port, what);
	vhca_error_hint(err,
			"it is tried again; if it stays so, somebody else writes the iov tree or "
			"mlx4_ib has just been reloaded");
	return -EIO;
}

/* ---- what is ---- */

static int load_plan(struct work *w, struct plan *plan, struct vhca_error *err)
{
	int r = 0;

	for (unsigned int i = 0; i < plan->n_virtual && r == 0; i++)
		r = vhca_mlx4_read_index(&w->fn, plan->port, i, &plan->map[i]);
	if (r < 0)
		return fail(w, plan->port, r, err, "read pkey_idx");
	r = vhca_mlx4_read_admin_guid(&w->fn, plan->port, &plan->guid);
	if (r < 0)
		return fail(w, plan->port, r, err, "read admin_guids");
	r = vhca_mlx4_read_smi(&w->fn, plan->port, &plan->smi);
	return r < 0 ? fail(w, plan->port, r, err, "read enable_smi_admin") : 0;
}

static int load_plans(const struct vhca_identity_at *at, struct work *w, struct vhca_error *err)
{
	unsigned int mask;
	bool found = false;
	int r = vhca_mlx4_ib_ports(&w->fn, &mask);

	if (r < 0)
		return fail(w, at->port, r, err, "list ports");
	for (uint8_t port = 1; port <= VHCA_MLX4_PORTS; port++) {
		struct plan *plan = &w->plans[w->n_plans];

		if ((mask & 1u << (port - 1)) == 0)
			continue;
		plan->port = port;
		/* It takes everything away: no key, GUID withdrawn. */
		for (unsigned int i = 0; i < VHCA_PKEY_TABLE_MAX; i++)
			plan->target_map[i] = VHCA_PKEY_UNMAPPED;
		plan->target_guid = VHCA_GUID_ALL1;
		r = vhca_mlx4_map_size(&w->fn, port, &plan->n_virtual);
		if (r < 0)
			return fail(w, port, r, err, "list pkey_idx");
		r = load_plan(w, plan, err);
		if (r < 0)
			return r;
		if (port == at->port) {
			w->own = w->n_plans;
			found = true;
		}
		w->n_plans++;
	}
	if (!found)
		return vhca_error_set(err, VHCA_ERR_INVALID, "port_not_ib", EINVAL,
				      "%s: port %u is Ethernet", VHCA_BDF_STR(at->pf), at->port);
	return 0;
}

static int open_work(const struct vhca_identity_at *at, bool writable, struct work *w,
		     struct vhca_error *err)
{
	int r;

	w->at = at;
	w->keys.fn = &w->fn;
	w->keys.port = at->port;
	r = vhca_mlx4_open_at(at, writable, &w->fn, err);
	return r < 0 ? r : load_plans(at, w, err);
}

static struct plan *own_plan(struct work *w)
{
	return &w->plans[w->own];
}

/* The keys behind what is mapped now. */
static int load_values(struct work *w, struct vhca_error *err)
{
	const struct plan *plan = own_plan(w);
	int r = 0;

	for (unsigned int i = 0; i < plan->n_virtual && r == 0; i++) {
		if (plan->map[i] != VHCA_PKEY_UNMAPPED)
			r = vhca_mlx4_keys_look(&w->keys, (unsigned int)plan->map[i]);
	}
	return r < 0 ? fail(w, plan->port, r, err, READ_PKEYS) : 0;
}

/* What the plans have read or written last. */
static void fill_map(const struct work *w, struct vhca_identity_state *state)
{
	const struct plan *plan = &w->plans[w->own];

	state->n_virtual = (uint16_t)plan->n_virtual;
	for (unsigned int i = 0; i < VHCA_PKEY_TABLE_MAX; i++) {
		state->map[i] = i < plan->n_virtual ? plan->map[i] : VHCA_PKEY_UNMAPPED;
		state->value[i] = vhca_mlx4_keys_at(&w->keys, state->map[i]);
	}
	for (unsigned int p = 0; p < w->n_plans; p++) {
		state->smi_ports += w->plans[p].smi;
		if (p == w->own)
			continue;
		state->other_guids += w->plans[p].guid != VHCA_GUID_ALL1;
		for (unsigned int i = 0; i < w->plans[p].n_virtual; i++)
			state->other_maps += w->plans[p].map[i] != VHCA_PKEY_UNMAPPED;
	}
}

static int fill_state(struct work *w, struct vhca_identity_state *ret, struct vhca_error *err)
{
	const struct plan *plan = &w->plans[w->own];
	struct vhca_identity_state state = {.requested = plan->guid, .gid_index = w->fn.gid_index};
	int r = vhca_mlx4_read_granted(&w->fn, plan->port, &state.granted);

	if (r < 0)
		return fail(w, plan->port, r, err, "read gids");
	fill_map(w, &state);
	*ret = state;
	return 0;
}

/* ---- single writes ---- */

/*
 * store_port_pkey changes the map first and then tells the VF; when only the telling fails (the VF
 * is being reset, it reads everything anew anyway), the errno comes although the value is in place.
 * So after a failure the read-back decides.
 */
static int write_index(struct work *w, struct plan *plan, unsigned int virt, int16_t physical,
		       struct vhca_error *err)
{
	int16_t now;
	int r = vhca_mlx4_write_index(&w->fn, plan->port, virt, physical);

	plan->written = true;
	if (r < 0) {
		if (vhca_mlx4_read_index(&w->fn, plan->port, virt, &now) < 0 || now != physical)
			return fail(w, plan->port, r, err,
				    physical == VHCA_PKEY_UNMAPPED ? "unmap a P_Key index"
								   : "map a P_Key index");
		vhca_log_warning(
			"%s VF %u port %u: writing pkey_idx/%u failed (errno %d) but took effect",
			VHCA_BDF_STR(w->at->pf), w->at->vf_index, plan->port, virt, -r);
	}
	plan->map[virt] = physical;
	return 0;
}

static int write_guid(struct work *w, struct plan *plan, uint64_t guid, struct vhca_error *err)
{
	uint64_t now;
	int r = vhca_mlx4_write_admin_guid(&w->fn, plan->port, guid);

	plan->written = true;
	if (r < 0 && (vhca_mlx4_read_admin_guid(&w->fn, plan->port, &now) < 0 || now != guid))
		return fail(w, plan->port, r, err, "write admin_guids");
	plan->guid = guid;
	return 0;
}

static int forbid_smi(struct work *w, struct plan *plan, struct vhca_error *err)
{
	int r = vhca_mlx4_forbid_smi(&w->fn, plan->port);

	plan->written = true;
	if (r < 0)
		return fail(w, plan->port, r, err, "write enable_smi_admin");
	plan->smi = false;
	return 0;
}

/* ---- the engine ---- */

static void keep_first(int *first, int r)
{
	if (*first == 0)
		*first = r;
}

static void unmap(struct work *w, struct plan *plan, int *first, struct vhca_error *err)
{
	for (unsigned int i = 0; i < plan->n_virtual; i++) {
		if (plan->map[i] == VHCA_PKEY_UNMAPPED || plan->map[i] == plan->target_map[i])
			continue;
		keep_first(first,
			   write_index(w, plan, i, VHCA_PKEY_UNMAPPED, *first == 0 ? err : NULL));
	}
}

/*
 * Only the owner that has the identity already can have a guest which must notice; a new one starts
 * from nothing.
 */
static bool has_live_moves(const struct plan *plan)
{
	if (plan->guid != plan->target_guid)
		return false;
	for (unsigned int i = 0; i < plan->n_virtual; i++) {
		if (plan->map[i] != VHCA_PKEY_UNMAPPED &&
		    plan->target_map[i] != VHCA_PKEY_UNMAPPED &&
		    plan->map[i] != plan->target_map[i])
			return true;
	}
	return false;
}

static int take_away(struct work *w, struct vhca_error *err)
{
	int first = 0;

	for (unsigned int i = 0; i < w->n_plans; i++) {
		if (w->plans[i].smi)
			keep_first(&first, forbid_smi(w, &w->plans[i], first == 0 ? err : NULL));
	}
	for (unsigned int i = 0; i < w->n_plans; i++)
		unmap(w, &w->plans[i], &first, err);
	for (unsigned int i = 0; i < w->n_plans; i++) {
		struct plan *plan = &w->plans[i];

		if (plan->target_guid != VHCA_GUID_ALL1 || plan->guid == VHCA_GUID_ALL1)
			continue;
		keep_first(&first, write_guid(w, plan, VHCA_GUID_ALL1, first == 0 ? err : NULL));
	}
	return first;
}

static int give(struct work *w, struct plan *plan, struct vhca_error *err)
{
	int r;

	if (plan->guid != plan->target_guid) {
		r = write_guid(w, plan, plan->target_guid, err);
		if (r < 0)
			return r;
	}
	for (unsigned int i = 0; i < plan->n_virtual; i++) {
		if (plan->map[i] == plan->target_map[i])
			continue;
		r = write_index(w, plan, i, plan->target_map[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int prove(struct work *w, struct plan *plan, struct vhca_error *err)
{
	int r;

	if (!plan->written)
		return 0; /* what was read at the start is the proof */
	r = load_plan(w, plan, err);
	if (r < 0)
		return r;
	if (plan->guid != plan->target_guid)
		return differs(w, plan->port, err, "admin_guids does not show what was written");
	if (plan->smi)
		return differs(w, plan->port, err,
			       "enable_smi_admin does not show what was written");
	for (unsigned int i = 0; i < plan->n_virtual; i++) {
		if (plan->map[i] != plan->target_map[i])
			return differs(w, plan->port, err,
				       "pkey_idx does not show what was written");
	}
	return 0;
}

static int apply(struct work *w, struct vhca_error *err)
{
	static const struct timespec pause = {.tv_nsec = SETTLE_MS * 1000000L};
	bool moves = has_live_moves(own_plan(w));
	int r = take_away(w, err);

	if (r < 0)
		return r;
	if (moves)
		(void)nanosleep(&pause, NULL); /* cut short by a signal: the order is kept anyway */
	r = give(w, own_plan(w), err);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < w->n_plans; i++) {
		r = prove(w, &w->plans[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- program ---- */

static int check_want(const struct work *w, const struct vhca_identity *want,
		      struct vhca_error *err)
{
	if (!vhca_guid_is_valid(want->guid))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", EINVAL,
				      "%s VF %u: %s is no unicast GUID", VHCA_BDF_STR(w->at->pf),
				      w->at->vf_index, VHCA_GUID_STR(want->guid));
	if (want->n_pkeys > VHCA_VF_PKEYS_MAX || want->n_pkeys > w->plans[w->own].n_virtual)
		return vhca_error_set(err, VHCA_ERR_INVALID, "too_many_pkeys", E2BIG,
				      "%s VF %u: %u P_Keys wanted", VHCA_BDF_STR(w->at->pf),
				      w->at->vf_index, want->n_pkeys);
	for (unsigned int i = 0; i < want->n_pkeys; i++) {
		if (vhca_pkey_base(want->pkeys[i]) == 0)
			return vhca_error_set(err, VHCA_ERR_INVALID, "bad_pkey", EINVAL,
					      "%s VF %u: P_Key %s is not valid",
					      VHCA_BDF_STR(w->at->pf), w->at->vf_index,
					      VHCA_PKEY_STR(want->pkeys[i]));
	}
	return 0;
}

/*
 * A key may stand twice in the table while the SM moves it: an index that shows the wanted value
 * stays where it is.
 */
static int plan_identity(struct work *w, const struct vhca_identity *want,
			 unsigned int *ret_missing, struct vhca_error *err)
{
	struct plan *plan = own_plan(w);
	int r = 0;

	*ret_missing = 0;
	plan->target_guid = want->guid;
	for (unsigned int i = 0; i < want->n_pkeys && r == 0; i++) {
		plan->target_map[i] = plan->map[i];
		if (vhca_mlx4_keys_at(&w->keys, plan->map[i]) != want->pkeys[i])
			r = vhca_mlx4_keys_find(&w->keys, want->pkeys[i], &plan->target_map[i]);
		*ret_missing += plan->target_map[i] == VHCA_PKEY_UNMAPPED;
	}
	return r < 0 ? fail(w, plan->port, r, err, READ_PKEYS) : 0;
}

/*
 * Looks again at the physical entries that the map now points to. What is no longer the wanted key
 * is unmapped at once.
 */
static int prove_values(struct work *w, const struct vhca_identity *want, uint16_t *foreign,
			struct vhca_error *err)
{
	struct plan *plan = own_plan(w);
	bool moved = false;

	if (!plan->written)
		return 0;
	for (unsigned int i = 0; i < want->n_pkeys; i++) {
		int16_t physical = plan->map[i];
		int r;

		if (physical == VHCA_PKEY_UNMAPPED)
			continue;
		r = vhca_mlx4_keys_look_again(&w->keys, (unsigned int)physical);
		if (r == 0 && vhca_mlx4_keys_at(&w->keys, physical) == want->pkeys[i])
			continue;
		moved = true;
		(*foreign)++;
		r = write_index(w, plan, i, VHCA_PKEY_UNMAPPED, err);
		if (r < 0)
			return r;
	}
	if (moved)
		return differs(w, plan->port, err,
			       "the SM changed the P_Key table meanwhile; unmapped");
	return 0;
}

static int program(const struct vhca_identity_at *at, const struct vhca_identity *want,
		   unsigned int *ret_missing, struct vhca_identity_state *ret,
		   struct vhca_error *err)
{
	AUTO_WORK struct work w = {0};
	struct vhca_identity_state before = {0};
	unsigned int missing;
	int r = open_work(at, true, &w, err);

	if (r == 0)
		r = check_want(&w, want, err);
	if (r == 0)
		r = load_values(&w, err);
	if (r < 0)
		return r;
	fill_map(&w, &before);
	before.foreign = vhca_identity_foreign(&before, want);
	r = plan_identity(&w, want, &missing, err);
	if (r == 0)
		r = apply(&w, err);
	if (r == 0)
		r = prove_values(&w, want, &before.foreign, err);
	if (r == 0)
		r = fill_state(&w, ret, err);
	if (r == 0)
		*ret_missing = missing;
	ret->foreign = before.foreign;
	return r;
}

/* ---- the others ---- */

static int unmap_foreign(const struct vhca_identity_at *at, const struct vhca_identity *want,
			 struct vhca_identity_state *ret, struct vhca_error *err)
{
	AUTO_WORK struct work w = {0};
	struct vhca_identity_state before = {0};
	struct plan *plan;
	int r = open_work(at, true, &w, err);
	int first = 0;

	if (r == 0)
		r = load_values(&w, err);
	if (r < 0)
		return r;
	fill_map(&w, &before);
	before.foreign = vhca_identity_foreign(&before, want);
	plan = own_plan(&w);
	for (unsigned int i = 0; i < want->n_pkeys && i < plan->n_virtual; i++)
		if (vhca_mlx4_keys_at(&w.keys, plan->map[i]) == want->pkeys[i])
			plan->target_map[i] = plan->map[i];
	for (unsigned int i = 0; i < w.n_plans; i++)
		unmap(&w, &w.plans[i], &first, err);
	r = first ? first : fill_state(&w, ret, err);
	ret->foreign = before.foreign;
	return r;
}

static int scrub(const struct vhca_identity_at *at, struct vhca_error *err)
{
	AUTO_WORK struct work w = {0};
	int r = open_work(at, true, &w, err);

	if (r == 0)
		r = apply(&w, err); /* plans start as "nothing" */
	return r;
}

static int read_state(const struct vhca_identity_at *at, struct vhca_identity_state *ret,
		      struct vhca_error *err)
{
	AUTO_WORK struct work w = {0};
	int r = open_work(at, false, &w, err);

	if (r == 0)
		r = load_values(&w, err);
	if (r == 0)
		r = fill_state(&w, ret, err);
	return r;
}

const struct vhca_identity_ops vhca_identity_mlx4 = {
	.name = "mlx4",
	.host_pkey_map = true,
	.in_place = true,
	.sees_grant = true,
	.read = read_state,
	.program = program,
	.unmap = unmap_foreign,
	.scrub = scrub,
	.kick = vhca_mlx4_kick,
	.choose = vhca_mlx4_choose,
};
