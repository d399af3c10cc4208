/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Identity on mlx5: node GUID, port GUID and link policy of a vport. The link is the lock: it goes
 * down before a GUID changes and up when both were read back, so that no moment shows a former
 * tenant's address, or half of the new one, to the fabric. P_Keys exist only at the SM. What a door
 * reads, and why zero is written where zero is read: docs/design/0003-mlx5.md.
 */
#include <errno.h>

#include "common/base/cleanup.h"
#include "pkey/identity.h"
#include "pkey/vport.h"

struct work {
	const struct vhca_identity_at *at;
	const struct vhca_vport_door *door;
	struct vhca_vport now; /* as read last, or written since */
};

static struct work work_at(const struct vhca_identity_at *at)
{
	return (struct work){
		.at = at,
		.door = vhca_vport_sysfs_exists(at) ? &vhca_vport_sysfs : &vhca_vport_netlink,
	};
}

/* ---- errors ---- */

/* Where the errno's own words would mislead, text stands for them. */
static const struct {
	int errnum;
	enum vhca_err kind;
	const char *code, *text, *hint;
} causes[] = {
	{ENONET, VHCA_ERR_UNAVAILABLE, "no_ipoib_device", ": the PF has no IPoIB network device",
	 "load ib_ipoib; the PF's network device must be in vhcad's network namespace"},
	{ENXIO, VHCA_ERR_NOT_FOUND, "no_vport", ": the PF's driver does not show this VF",
	 "look at the kernel's log for mlx5_core"},
	{ENODATA, VHCA_ERR_DEVICE, "no_vf_guids", ": the kernel does not read GUIDs of VFs back",
	 "that needs Linux 5.5, or MLNX_OFED"},
	{EOPNOTSUPP, VHCA_ERR_DEVICE, "no_vf_guids", NULL,
	 "the PF's network device must belong to ib_ipoib on mlx5_ib"},
	{EPERM, VHCA_ERR_DENIED, "vports_not_ours", NULL,
	 "vhcad needs CAP_NET_ADMIN; the PF must be the manager of its vports (on BlueField that "
	 "is "
	 "the DPU)"},
};

static int fail(const struct work *w, int r, struct vhca_error *err, const char *what)
{
	enum vhca_err kind = VHCA_ERR_DEVICE;
	const char *code = "identity_failed", *text = NULL, *hint = NULL;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(causes); i++) {
		if (causes[i].errnum != -r)
			continue;
		kind = causes[i].kind;
		code = causes[i].code;
		text = causes[i].text;
		hint = causes[i].hint;
	}
	(void)vhca_error_set(err, kind, code, text != NULL ? 0 : -r, "%s VF %u: %s by %s%s",
			     VHCA_BDF_STR(w->at->pf), w->at->vf_index, what, w->door->name,
			     text != NULL ? text : "");
	if (hint)
		vhca_error_hint(err, "%s", hint);
	return r;
}

static int differs(const struct work *w, struct vhca_error *err, const char *what)
{
	(void)vhca_error_set(err, VHCA_ERR_DEVICE, "readback_differs", EIO,
			     "%s VF %u: %s is not what was written by %s", VHCA_BDF_STR(w->at->pf),
			     w->at->vf_index, what, w->door->name);
	vhca_error_hint(err,
			"it is tried again; if it stays so, somebody else sets VFs of this PF");
	return -EIO;
}

/* ---- values ---- */

static bool is_no_guid(uint64_t guid)
{
	return guid == VHCA_GUID_NONE || guid == VHCA_GUID_ALL1;
}

static bool is_withdrawn(const struct vhca_vport *v)
{
	return is_no_guid(v->node_guid) && is_no_guid(v->port_guid) && v->policy == VHCA_LINK_DOWN;
}

static uint64_t value_of(const struct vhca_vport *v, enum vhca_vport_attr attr)
{
	switch (attr) {
	case VHCA_VPORT_NODE:
		return v->node_guid;
	case VHCA_VPORT_PORT:
		return v->port_guid;
	case VHCA_VPORT_POLICY:
		break;
	}
	return v->policy;
}

static void set_value(struct vhca_vport *v, enum vhca_vport_attr attr, uint64_t value)
{
	switch (attr) {
	case VHCA_VPORT_NODE:
		v->node_guid = value;
		break;
	case VHCA_VPORT_PORT:
		v->port_guid = value;
		break;
	case VHCA_VPORT_POLICY:
		v->policy = (enum vhca_link_policy)value;
		break;
	}
}

/* ---- single steps ---- */

static int load(struct work *w, struct vhca_error *err)
{
	int r = w->door->read(w->at, &w->now);

	return r < 0 ? fail(w, r, err, "read its GUIDs and link policy") : 0;
}

/*
 * An errno may come although the value is in place: the read-back decides, unless it showed that
 * value before as well.
 */
static int put(struct work *w, enum vhca_vport_attr attr, uint64_t value, struct vhca_error *err)
{
	static const char *const what[] = {
		[VHCA_VPORT_NODE] = "set the node GUID",
		[VHCA_VPORT_PORT] = "set the port GUID",
		[VHCA_VPORT_POLICY] = "set the link policy",
	};
	bool proves_nothing = value_of(&w->now, attr) == value;
	struct vhca_vport shown;
	int r = w->door->write(w->at, attr, value);

	if (r < 0 &&
	    (proves_nothing || w->door->read(w->at, &shown) < 0 || value_of(&shown, attr) != value))
		return fail(w, r, err, what[attr]);
	set_value(&w->now, attr, value);
	return 0;
}

static int put_if_differs(struct work *w, enum vhca_vport_attr attr, uint64_t value,
			  struct vhca_error *err)
{
	return value_of(&w->now, attr) == value ? 0 : put(w, attr, value, err);
}

static int prove_guids(struct work *w, uint64_t guid, struct vhca_error *err)
{
	int r = load(w, err);

	if (r == 0 && w->now.node_guid != guid)
		return differs(w, err, "the node GUID");
	if (r == 0 && w->now.port_guid != guid)
		return differs(w, err, "the port GUID");
	return r;
}

/* ---- program ---- */

static int check_want(const struct work *w, const struct vhca_identity *want,
		      struct vhca_error *err)
{
	if (w->at->port != 1)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_port", EINVAL,
				      "%s: has no port %u: mlx5 has a PF for each port",
				      VHCA_BDF_STR(w->at->pf), w->at->port);
	if (!vhca_guid_is_valid(want->guid))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", EINVAL,
				      "%s VF %u: %s is no unicast GUID", VHCA_BDF_STR(w->at->pf),
				      w->at->vf_index, VHCA_GUID_STR(want->guid));
	return 0;
}

/* The address, with the link down. */
static int give_guids(struct work *w, uint64_t guid, struct vhca_error *err)
{
	int r;

	if (w->now.node_guid == guid && w->now.port_guid == guid)
		return 0;
	r = put_if_differs(w, VHCA_VPORT_POLICY, VHCA_LINK_DOWN, err);
	if (r == 0)
		r = put_if_differs(w, VHCA_VPORT_NODE, guid, err);
	if (r == 0)
		r = put_if_differs(w, VHCA_VPORT_PORT, guid, err);
	return r < 0 ? r : prove_guids(w, guid, err);
}

/* A link that is up with this address was given by us, or adopted as somebody had set it. */
static int give_link(struct work *w, uint64_t guid, struct vhca_error *err)
{
	int r;

	if (w->now.policy != VHCA_LINK_DOWN)
		return 0;
	r = put(w, VHCA_VPORT_POLICY, VHCA_LINK_AUTO, err);
	if (r == 0)
		r = prove_guids(w, guid, err);
	if (r == 0 && w->now.policy != VHCA_LINK_AUTO)
		r = differs(w, err, "the link policy");
	/*
	 * What could not be proven does not stay on the fabric; if this fails, too, the first error
	 * says what is wrong.
	 */
	if (r < 0)
		(void)put(w, VHCA_VPORT_POLICY, VHCA_LINK_DOWN, NULL);
	return r;
}

static void fill_state(const struct work *w, struct vhca_identity_state *ret)
{
	const struct vhca_vport *v = &w->now;

	*ret = (struct vhca_identity_state){
		.sm_pkeys = true,
		.node_guid = v->node_guid,
		.policy = v->policy,
		.requested = is_no_guid(v->port_guid) ? VHCA_GUID_NONE : v->port_guid,
		.granted = v->policy == VHCA_LINK_DOWN || is_no_guid(v->port_guid) ? VHCA_GUID_NONE
										   : v->port_guid,
	};
	if (is_withdrawn(v))
		ret->requested = VHCA_GUID_ALL1;
	for (unsigned int i = 0; i < VHCA_PKEY_TABLE_MAX; i++)
		ret->map[i] = VHCA_PKEY_UNMAPPED;
}

static int program(const struct vhca_identity_at *at, const struct vhca_identity *want,
		   unsigned int *ret_missing, struct vhca_identity_state *ret,
		   struct vhca_error *err)
{
	struct work w = work_at(at);
	int r = check_want(&w, want, err);

	if (r == 0)
		r = load(&w, err);
	if (r == 0)
		r = give_guids(&w, want->guid, err);
	/* Without a partition it would be a member of what the SM gives to every port. One that has
	 * a guest already is not cut off by that: it was adopted, or the SM has taken them away. */
	if (r == 0 && want->n_pkeys > 0)
		r = give_link(&w, want->guid, err);
	if (r < 0)
		return r;
	fill_state(&w, ret);
	*ret_missing = 0;
	return 0;
}

/* ---- scrub ---- */

/*
 * Firmware may take zero for no GUID at all and refuse it: all ones is nobody's, too. The driver's
 * memory of either does not prove that firmware has it: a command that timed out may have been done
 * all the same.
 */
static int withdraw(struct work *w, enum vhca_vport_attr attr, struct vhca_error *err)
{
	uint64_t now = value_of(&w->now, attr);
	int r = -EINVAL;

	if (is_no_guid(now) && !w->door->cached)
		return 0;
	if (now != VHCA_GUID_ALL1)
		r = put(w, attr, VHCA_GUID_NONE, NULL);
	return r < 0 ? put(w, attr, VHCA_GUID_ALL1, err) : 0;
}

static void keep_first(int *first, int r)
{
	if (*first == 0)
		*first = r;
}

static int scrub(const struct vhca_identity_at *at, struct vhca_error *err)
{
	struct work w = work_at(at);
	int first = load(&w, err);

	if (first < 0)
		return first;
	first = put_if_differs(&w, VHCA_VPORT_POLICY, VHCA_LINK_DOWN, err);
	keep_first(&first, withdraw(&w, VHCA_VPORT_PORT, first == 0 ? err : NULL));
	keep_first(&first, withdraw(&w, VHCA_VPORT_NODE, first == 0 ? err : NULL));
	if (first == 0)
		first = load(&w, err);
	if (first == 0 && !is_withdrawn(&w.now))
		first = differs(&w, err, "its withdrawn identity");
	return first;
}

static int read_state(const struct vhca_identity_at *at, struct vhca_identity_state *ret,
		      struct vhca_error *err)
{
	struct work w = work_at(at);
	int r = load(&w, err);

	if (r == 0)
		fill_state(&w, ret);
	return r;
}

const struct vhca_identity_ops vhca_identity_mlx5 = {
	.name = "mlx5",
	.link_policy = true,
	.read = read_state,
	.program = program,
	.scrub = scrub,
};
