/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/rtnl.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "common/base/cleanup.h"
#include "common/base/role.h"

static void free_msg(struct nl_msg **msg)
{
	nlmsg_free(*msg);
}

static void free_sock(struct nl_sock **sock)
{
	nl_socket_free(*sock);
}

/* ---- the way to the kernel ---- */

/*
 * libnl has error numbers of its own; what matters here is that it failed, and the two that have a
 * way out.
 */
static int errno_of(int nl)
{
	switch (-nl) {
	case NLE_PERM:
		return -EPERM;
	case NLE_NOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static int open_route(struct nl_sock **ret)
{
	struct nl_sock *sock = nl_socket_alloc();
	int r;

	if (!sock)
		return -ENOMEM;
	r = nl_connect(sock, NETLINK_ROUTE);
	if (r < 0) {
		nl_socket_free(sock);
		return errno_of(r);
	}
	/* A message with 126 VFs is larger than any guess. */
	nl_socket_enable_msg_peek(sock);
	*ret = sock;
	return 0;
}

/* rtnetlink works inside of sendmsg(2): the answer is there when it returns. */
static int call_kernel(void *ctx, const void *request, size_t len, void **ret_reply,
		       size_t *ret_len)
{
	VHCA_CLEANUP(free_sock) struct nl_sock *sock = NULL;
	struct sockaddr_nl from = {0};
	unsigned char *reply = NULL;
	int r;

	(void)ctx;
	vhca_may_block("rtnetlink");
	r = open_route(&sock);
	if (r < 0)
		return r;
	r = nl_sendto(sock, (void *)request, len); /* libnl does not write to it */
	if (r < 0)
		return errno_of(r);
	r = nl_recv(sock, &from, &reply, NULL);
	if (r < 0)
		return errno_of(r);
	if (r == 0 || from.nl_pid != 0) { /* only the kernel has port 0 */
		free(reply);
		return -EIO;
	}
	*ret_reply = reply;
	*ret_len = (size_t)r;
	return 0;
}

const struct vhca_rtnl vhca_rtnl_kernel = {.call = call_kernel};

/* ---- requests ---- */

static struct nl_msg *new_request(uint16_t type, uint16_t flags, uint32_t ifindex)
{
	const struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);

	if (msg && nlmsg_append(msg, (void *)&info, sizeof(info), NLMSG_ALIGNTO) < 0) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return msg;
}

/* What the kernel copies out has its padding set: nothing of our stack goes there. */
static int put_guid(struct nl_msg *msg, int type, uint32_t vf, uint64_t guid)
{
	struct ifla_vf_guid value;

	memset(&value, 0, sizeof(value));
	value.vf = vf;
	value.guid = guid;
	return nla_put(msg, type, sizeof(value), &value);
}

static int put_attr(struct nl_msg *msg, uint32_t vf, enum vhca_vport_attr attr, uint64_t value)
{
	const struct ifla_vf_link_state link = {.vf = vf, .link_state = (uint32_t)value};

	switch (attr) {
	case VHCA_VPORT_NODE:
		return put_guid(msg, IFLA_VF_IB_NODE_GUID, vf, value);
	case VHCA_VPORT_PORT:
		return put_guid(msg, IFLA_VF_IB_PORT_GUID, vf, value);
	case VHCA_VPORT_POLICY:
		return nla_put(msg, IFLA_VF_LINK_STATE, sizeof(link), &link);
	}
	return -NLE_INVAL;
}

/* IFLA_VFINFO_LIST { IFLA_VF_INFO { one attribute } } */
static int put_vf_info(struct nl_msg *msg, uint32_t vf, enum vhca_vport_attr attr, uint64_t value)
{
	struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST);
	struct nlattr *info = list != NULL ? nla_nest_start(msg, IFLA_VF_INFO) : NULL;

	if (!info || put_attr(msg, vf, attr, value) < 0)
		return -ENOMEM;
	(void)nla_nest_end(msg, info);
	(void)nla_nest_end(msg, list);
	return 0;
}

/* ---- answers ---- */

/* The one message of the answer; 0 and *ret_msg, or the errno that it carries. */
static int open_reply(void *reply, size_t len, struct nlmsghdr **ret_msg)
{
	struct nlmsghdr *hdr = reply;
	const struct nlmsgerr *error;

	if (len > INT32_MAX || !nlmsg_ok(hdr, (int)len))
		return -EBADMSG;
	*ret_msg = hdr;
	if (hdr->nlmsg_type != NLMSG_ERROR)
		return 0;
	if (!nlmsg_valid_hdr(hdr, sizeof(*error)))
		return -EBADMSG;
	error = nlmsg_data(hdr);
	return error->error > 0 ? -EBADMSG : error->error;
}

static int talk(const struct vhca_rtnl *rtnl, struct nl_msg *msg, void **ret_reply,
		struct nlmsghdr **ret_msg)
{
	struct nlmsghdr *request = nlmsg_hdr(msg);
	size_t len = 0;
	int r = rtnl->call(rtnl->ctx, request, request->nlmsg_len, ret_reply, &len);

	return r < 0 ? r : open_reply(*ret_reply, len, ret_msg);
}

static bool is_guid(const struct nlattr *attr)
{
	return attr != NULL && nla_len(attr) >= (int)sizeof(struct ifla_vf_guid);
}

static uint64_t guid_of(const struct nlattr *attr)
{
	struct ifla_vf_guid value;

	memcpy(&value, nla_data(attr), sizeof(value)); /* attributes are aligned to 4 only */
	return value.guid;
}

/* One VF of the list: 1 if it is the one, 0 if not. */
static int take_vf(struct nlattr *info, uint32_t vf, struct vhca_vport *ret)
{
	struct nlattr *tb[IFLA_VF_MAX + 1];
	struct ifla_vf_link_state link;

	if (nla_parse_nested(tb, IFLA_VF_MAX, info, NULL) < 0 || !tb[IFLA_VF_LINK_STATE] ||
	    nla_len(tb[IFLA_VF_LINK_STATE]) < (int)sizeof(link))
		return -EBADMSG;
	memcpy(&link, nla_data(tb[IFLA_VF_LINK_STATE]), sizeof(link));
	if (link.vf != vf)
		return 0;
	if (!is_guid(tb[IFLA_VF_IB_NODE_GUID]) || !is_guid(tb[IFLA_VF_IB_PORT_GUID]))
		return -ENODATA; /* before Linux 5.5, or a driver without ndo_get_vf_guid */
	if (link.link_state > IFLA_VF_LINK_STATE_DISABLE)
		return -EBADMSG;
	*ret = (struct vhca_vport){.node_guid = guid_of(tb[IFLA_VF_IB_NODE_GUID]),
				   .port_guid = guid_of(tb[IFLA_VF_IB_PORT_GUID]),
				   .policy = (enum vhca_link_policy)link.link_state};
	return 1;
}

/* A VF that the driver could not query is left out of the list (rtnl_fill_vfinfo). */
static int find_vf(struct nlattr *list, uint32_t vf, struct vhca_vport *ret)
{
	struct nlattr *info;
	int r, rem;

	nla_for_each_nested(info, list, rem)
	{
		if (nla_type(info) != IFLA_VF_INFO)
			return -EBADMSG;
		r = take_vf(info, vf, ret);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -ENXIO;
}

static bool is_child_of(const struct nlattr *name, struct vhca_bdf parent)
{
	const char *want = VHCA_BDF_STR(parent);
	int len = (int)strlen(want) + 1;

	/* The attribute is as old as Linux 5.14. */
	return !name || (nla_len(name) == len && memcmp(nla_data(name), want, len) == 0);
}

static int parse_link(struct nlmsghdr *hdr, const struct vhca_rtnl_vf *at, struct vhca_vport *ret)
{
	struct nlattr *tb[IFLA_MAX + 1];
	const struct ifinfomsg *info;

	if (hdr->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse(hdr, sizeof(*info), tb, IFLA_MAX, NULL) < 0)
		return -EBADMSG;
	info = nlmsg_data(hdr);
	if (info->ifi_index != (int)at->ifindex || info->ifi_type != ARPHRD_INFINIBAND ||
	    !is_child_of(tb[IFLA_PARENT_DEV_NAME], at->parent))
		return -ESTALE;
	if (!tb[IFLA_VFINFO_LIST])
		return -ENODATA;
	return find_vf(tb[IFLA_VFINFO_LIST], at->vf, ret);
}

/* ---- calls ---- */

int vhca_rtnl_get_vf(const struct vhca_rtnl *rtnl, const struct vhca_rtnl_vf *at,
		     struct vhca_vport *ret)
{
	VHCA_CLEANUP(free_msg) struct nl_msg *msg = new_request(RTM_GETLINK, 0, at->ifindex);
	VHCA_AUTO_FREE void *reply = NULL;
	struct nlmsghdr *hdr = NULL;
	int r;

	if (!msg || nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS) < 0)
		return -ENOMEM;
	r = talk(rtnl, msg, &reply, &hdr);
	return r < 0 ? r : parse_link(hdr, at, ret);
}

int vhca_rtnl_set_vf(const struct vhca_rtnl *rtnl, const struct vhca_rtnl_vf *at,
		     enum vhca_vport_attr attr, uint64_t value)
{
	VHCA_CLEANUP(free_msg)
	struct nl_msg *msg = new_request(RTM_SETLINK, NLM_F_ACK, at->ifindex);
	VHCA_AUTO_FREE void *reply = NULL;
	struct nlmsghdr *hdr = NULL;
	int r;

	if (!msg || put_vf_info(msg, at->vf, attr, value) < 0)
		return -ENOMEM;
	r = talk(rtnl, msg, &reply, &hdr);
	if (r < 0)
		return r;
	return hdr->nlmsg_type == NLMSG_ERROR ? 0 : -EBADMSG;
}
