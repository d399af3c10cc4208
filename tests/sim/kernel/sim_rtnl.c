/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/kernel/sim_rtnl.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX 65536

/* ---- attributes, by hand: the code under test uses libnl ---- */

/* nla_parse(): the last of a type counts; false when what is there is no attribute stream. */
static bool parse(const unsigned char *p, size_t len, const struct nlattr **tb, unsigned int max)
{
	memset(tb, 0, (max + 1) * sizeof(*tb));
	while (len >= NLA_HDRLEN) {
		const struct nlattr *a = (const void *)p;
		size_t step = NLA_ALIGN(a->nla_len);

		if (a->nla_len < NLA_HDRLEN || a->nla_len > len)
			return false;
		if ((a->nla_type & NLA_TYPE_MASK) <= max)
			tb[a->nla_type & NLA_TYPE_MASK] = a;
		p += step < len ? step : len;
		len -= step < len ? step : len;
	}
	return len == 0;
}

static const void *payload(const struct nlattr *a)
{
	return (const unsigned char *)a + NLA_HDRLEN;
}

static size_t size_of(const struct nlattr *a)
{
	return (size_t)a->nla_len - NLA_HDRLEN;
}

struct out {
	unsigned char *buf;
	size_t len;
};

static size_t put(struct out *o, unsigned int type, const void *data, size_t len)
{
	struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = (uint16_t)type};
	size_t at = o->len;

	assert(o->len + NLA_HDRLEN + NLA_ALIGN(len) <= ANSWER_MAX);
	memcpy(o->buf + o->len, &a, sizeof(a));
	if (len > 0)
		memcpy(o->buf + o->len + NLA_HDRLEN, data, len);
	o->len += NLA_HDRLEN + NLA_ALIGN(len);
	return at;
}

static void nest_end(const struct out *o, size_t at)
{
	uint16_t len = (uint16_t)(o->len - at);

	memcpy(o->buf + at, &len, sizeof(len));
}

/* ---- RTM_SETLINK: do_setlink, do_setvfinfo ---- */

/* mlx5_ib_set_vf_guid: the cache follows only when firmware has accepted */
static int set_guid(struct sim_rtnl *sim, const struct nlattr *a, bool node)
{
	struct ifla_vf_guid v;
	struct sim_rtnl_vf *vf;

	memcpy(&v, payload(a), sizeof(v));
	if (v.vf >= INT_MAX)
		return -EINVAL;
	if (sim->type != 32)
		return -EOPNOTSUPP;
	assert(v.vf < sim->n_vfs); /* there it would be a write beyond the table */
	if (sim->refuses_zero && v.guid == 0)
		return -EINVAL;
	vf = &sim->vfs[v.vf];
	*(node ? &vf->node : &vf->port) = v.guid;
	*(node ? &vf->cached_node : &vf->cached_port) = v.guid;
	return 0;
}

static int set_link(struct sim_rtnl *sim, const struct nlattr *a)
{
	struct ifla_vf_link_state v;

	memcpy(&v, payload(a), sizeof(v));
	if (v.vf >= INT_MAX || v.link_state > IFLA_VF_LINK_STATE_DISABLE)
		return -EINVAL;
	assert(v.vf < sim->n_vfs);
	sim->vfs[v.vf].policy = v.link_state;
	return 0;
}

/* ifla_vf_policy: .len is the least that the kernel takes (nla_parse_nested_deprecated) */
static bool too_short(const struct nlattr *const *tb)
{
	return (tb[IFLA_VF_LINK_STATE] &&
		size_of(tb[IFLA_VF_LINK_STATE]) < sizeof(struct ifla_vf_link_state)) ||
	       (tb[IFLA_VF_IB_NODE_GUID] &&
		size_of(tb[IFLA_VF_IB_NODE_GUID]) < sizeof(struct ifla_vf_guid)) ||
	       (tb[IFLA_VF_IB_PORT_GUID] &&
		size_of(tb[IFLA_VF_IB_PORT_GUID]) < sizeof(struct ifla_vf_guid));
}

static int set_vf_info(struct sim_rtnl *sim, const struct nlattr *info)
{
	const struct nlattr *tb[IFLA_VF_MAX + 1];
	int r = -EINVAL;

	if (!parse(payload(info), size_of(info), tb, IFLA_VF_MAX) || too_short(tb))
		return -ERANGE;
	if (tb[IFLA_VF_LINK_STATE]) {
		r = set_link(sim, tb[IFLA_VF_LINK_STATE]);
		if (r < 0)
			return r;
	}
	/* The kernel returns after the first: a port GUID beside a node GUID is not looked at. */
	if (tb[IFLA_VF_IB_NODE_GUID])
		return set_guid(sim, tb[IFLA_VF_IB_NODE_GUID], true);
	if (tb[IFLA_VF_IB_PORT_GUID])
		return set_guid(sim, tb[IFLA_VF_IB_PORT_GUID], false);
	return r;
}

static int setlink(struct sim_rtnl *sim, const struct nlattr *const *tb)
{
	const unsigned char *p = payload(tb[IFLA_VFINFO_LIST]);
	const unsigned char *end = p + size_of(tb[IFLA_VFINFO_LIST]);
	int r = 0;

	while (r == 0 && p < end) {
		const struct nlattr *info = (const void *)p;

		if ((info->nla_type & NLA_TYPE_MASK) != IFLA_VF_INFO)
			return -EINVAL;
		r = set_vf_info(sim, info);
		p += NLA_ALIGN(info->nla_len);
	}
	return r;
}

/* ---- RTM_GETLINK: rtnl_fill_ifinfo, rtnl_fill_vf, rtnl_fill_vfinfo ---- */

static void fill_vf(const struct sim_rtnl *sim, struct out *o, uint32_t i)
{
	const struct sim_rtnl_vf *vf = &sim->vfs[i];
	struct ifla_vf_guid node = {.vf = i, .guid = vf->cached_node};
	struct ifla_vf_guid port = {.vf = i, .guid = vf->cached_port};
	const struct ifla_vf_link_state link = {.vf = i, .link_state = vf->policy};
	const struct ifla_vf_mac mac = {.vf = i};
	const struct ifla_vf_trust trust = {.vf = i, .setting = (uint32_t)-1};
	size_t nest;

	if (vf->broken)
		return;
	nest = put(o, IFLA_VF_INFO, NULL, 0);
	(void)put(o, IFLA_VF_MAC, &mac, sizeof(mac));
	(void)put(o, IFLA_VF_LINK_STATE, &link, sizeof(link));
	(void)put(o, IFLA_VF_TRUST, &trust, sizeof(trust));
	if (!sim->no_get_guid) {
		(void)put(o, IFLA_VF_IB_NODE_GUID, &node, sizeof(node));
		(void)put(o, IFLA_VF_IB_PORT_GUID, &port, sizeof(port));
	}
	nest_end(o, nest);
}

static void getlink(const struct sim_rtnl *sim, struct out *o)
{
	const struct ifinfomsg info = {.ifi_index = (int)sim->ifindex, .ifi_type = sim->type};
	size_t list;

	memcpy(o->buf + o->len, &info, sizeof(info));
	o->len += sizeof(info);
	(void)put(o, IFLA_IFNAME, "ib0", sizeof("ib0"));
	(void)put(o, IFLA_NUM_VF, &sim->n_vfs, sizeof(sim->n_vfs));
	list = put(o, IFLA_VFINFO_LIST, NULL, 0);
	for (uint32_t i = 0; i < sim->n_vfs; i++)
		fill_vf(sim, o, i);
	nest_end(o, list);
	if (sim->parent)
		(void)put(o, IFLA_PARENT_DEV_NAME, sim->parent, strlen(sim->parent) + 1);
}

/* ---- the door ---- */

static void answer_error(struct out *o, int r)
{
	const struct nlmsgerr e = {.error = r};

	memcpy(o->buf + o->len, &e, sizeof(e));
	o->len += sizeof(e);
}

static int handle(struct sim_rtnl *sim, const struct nlmsghdr *hdr, struct out *o)
{
	const struct nlattr *tb[IFLA_MAX + 1];
	const unsigned char *body = (const unsigned char *)hdr + NLMSG_HDRLEN;
	struct ifinfomsg info;
	uint32_t mask = 0;

	assert(hdr->nlmsg_flags & NLM_F_REQUEST);
	memcpy(&info, body, sizeof(info));
	if (!parse(body + NLMSG_ALIGN(sizeof(info)), hdr->nlmsg_len - NLMSG_LENGTH(sizeof(info)),
		   tb, IFLA_MAX))
		return -EINVAL;
	if (info.ifi_index != (int)sim->ifindex)
		return -ENODEV;
	if (hdr->nlmsg_type == RTM_SETLINK)
		return setlink(sim, tb);
	assert(hdr->nlmsg_type == RTM_GETLINK && tb[IFLA_EXT_MASK]);
	memcpy(&mask, payload(tb[IFLA_EXT_MASK]), sizeof(mask));
	assert(mask & RTEXT_FILTER_VF); /* else no VF is listed */
	getlink(sim, o);
	return 0;
}

static bool strikes(struct sim_rtnl *sim)
{
	bool now = ++sim->calls == sim->fail_at;

	sim->hit |= now;
	return now;
}

static int call(void *ctx, const void *request, size_t len, void **ret_reply, size_t *ret_len)
{
	struct sim_rtnl *sim = ctx;
	const struct nlmsghdr *hdr = request;
	bool set = hdr->nlmsg_type == RTM_SETLINK, strike = strikes(sim);
	struct out o = {.buf = calloc(1, ANSWER_MAX), .len = NLMSG_HDRLEN};
	struct nlmsghdr *answer = (void *)o.buf;
	int r = 0;

	assert(o.buf && len == hdr->nlmsg_len && len <= sizeof(sim->last));
	memcpy(sim->last, request, len);
	sim->last_len = len;
	sim->sets += set;
	if (!strike || sim->fail_applied)
		r = handle(sim, hdr, &o);
	if (strike && !sim->fail_lost)
		r = -sim->fail_errno;
	answer->nlmsg_type = RTM_NEWLINK;
	if (set || r < 0 || o.len == NLMSG_HDRLEN) {
		o.len = NLMSG_HDRLEN;
		answer->nlmsg_type = NLMSG_ERROR;
		answer_error(&o, r);
	}
	answer->nlmsg_len = (uint32_t)o.len;
	*ret_reply = o.buf;
	*ret_len = o.len;
	return 0;
}

void sim_rtnl_init(struct sim_rtnl *sim, uint32_t ifindex, const char *parent, uint32_t n_vfs)
{
	assert(n_vfs <= SIM_RTNL_VFS);
	memset(sim, 0, sizeof(*sim));
	sim->ops = (struct vhca_rtnl){.call = call, .ctx = sim};
	sim->ifindex = ifindex;
	sim->type = 32;
	sim->parent = parent;
	sim->n_vfs = n_vfs;
	for (uint32_t i = 0; i < n_vfs; i++)
		sim->vfs[i].policy = IFLA_VF_LINK_STATE_DISABLE;
}

void sim_rtnl_recreate(struct sim_rtnl *sim)
{
	for (uint32_t i = 0; i < sim->n_vfs; i++) {
		struct sim_rtnl_vf *vf = &sim->vfs[i];

		vf->node = vf->cached_node;
		vf->port = vf->cached_port;
	}
}

void sim_rtnl_reload(struct sim_rtnl *sim)
{
	for (uint32_t i = 0; i < sim->n_vfs; i++)
		sim->vfs[i] = (struct sim_rtnl_vf){.policy = IFLA_VF_LINK_STATE_DISABLE};
}
