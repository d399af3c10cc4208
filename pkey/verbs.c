/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/verbs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "common/base/cleanup.h"
#include "common/base/role.h"

struct vhca_verbs {
	struct ibv_context *ctx;
	uint8_t n_ports;
};

VHCA_DEFINE_CLEANUP(struct vhca_verbs, vhca_verbs_close)

static void free_list(struct ibv_device ***list)
{
	if (*list)
		ibv_free_device_list(*list);
}

static int negative_errno(void)
{
	int e = errno;

	return e > 0 ? -e : -EIO; /* not every provider sets it */
}

static int open_context(const char *ibdev, struct ibv_context **ret)
{
	VHCA_CLEANUP(free_list) struct ibv_device **list = NULL;
	struct ibv_context *ctx;
	int n = 0;

	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list)
		return negative_errno();
	for (int i = 0; i < n; i++) {
		if (strcmp(ibv_get_device_name(list[i]), ibdev) != 0)
			continue;
		errno = 0;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			return negative_errno();
		*ret = ctx;
		return 0;
	}
	return -ENODEV;
}

int vhca_verbs_open(const char *ibdev, struct vhca_verbs **ret)
{
	VHCA_CLEANUP(vhca_verbs_closep) struct vhca_verbs *verbs = calloc(1, sizeof(*verbs));
	struct ibv_device_attr attr;
	int r, flags;

	vhca_may_block("open RDMA device");
	if (!verbs)
		return -ENOMEM;
	r = open_context(ibdev, &verbs->ctx);
	if (r < 0)
		return r;
	flags = fcntl(verbs->ctx->async_fd, F_GETFL);
	if (flags < 0 || fcntl(verbs->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	r = ibv_query_device(verbs->ctx, &attr);
	if (r != 0)
		return -abs(r);
	verbs->n_ports = attr.phys_port_cnt;
	*ret = vhca_steal_ptr(&verbs);
	return 0;
}

struct vhca_verbs *vhca_verbs_close(struct vhca_verbs *verbs)
{
	if (!verbs)
		return NULL;
	if (verbs->ctx)
		(void)ibv_close_device(
			verbs->ctx); /* fails for a device that has gone; closed all the same */
	free(verbs);
	return NULL;
}

uint8_t vhca_verbs_n_ports(const struct vhca_verbs *verbs)
{
	return verbs->n_ports;
}

/* Providers return a positive errno, some -1 with errno. */
static int query_error(int r)
{
	return r == -1 ? negative_errno() : -abs(r);
}

int vhca_verbs_query(struct vhca_verbs *verbs, uint8_t port, struct vhca_port_state *ret)
{
	struct ibv_port_attr attr = {0};
	union ibv_gid gid = {0};
	int r;

	vhca_may_block("query port");
	r = ibv_query_port(verbs->ctx, port, &attr);
	if (r != 0)
		return query_error(r);
	r = ibv_query_gid(verbs->ctx, port, 0, &gid);
	if (r != 0)
		return query_error(r);
	memset(ret, 0, sizeof(*ret)); /* padding as well: states are compared as memory */
	ret->port = port;
	ret->state = (uint8_t)attr.state;
	ret->phys_state = attr.phys_state;
	/* "unspecified" is what InfiniBand-only providers say (libibverbs: ___ibv_query_port) */
	ret->is_ib = attr.link_layer != IBV_LINK_LAYER_ETHERNET;
	ret->lid = attr.lid;
	ret->sm_lid = attr.sm_lid;
	ret->port_guid = be64toh(gid.global.interface_id);
	ret->gid_prefix = be64toh(gid.global.subnet_prefix);
	ret->n_pkeys = attr.pkey_tbl_len;
	return 0;
}

int vhca_verbs_fd(const struct vhca_verbs *verbs)
{
	return verbs->ctx->async_fd;
}

/*
 * Async events of interest; the others concern objects that we do not have, or are newer than this
 * table.
 */
static const struct {
	enum ibv_event_type type;
	enum vhca_verbs_event event;
} events[] = {
	{IBV_EVENT_DEVICE_FATAL, VHCA_VERBS_FATAL},
	{IBV_EVENT_PORT_ACTIVE, VHCA_VERBS_PORT},
	{IBV_EVENT_PORT_ERR, VHCA_VERBS_PORT},
	{IBV_EVENT_LID_CHANGE, VHCA_VERBS_PORT},
	{IBV_EVENT_PKEY_CHANGE, VHCA_VERBS_PKEYS},
	{IBV_EVENT_SM_CHANGE, VHCA_VERBS_PORT},
	{IBV_EVENT_CLIENT_REREGISTER, VHCA_VERBS_REREGISTER},
	{IBV_EVENT_GID_CHANGE, VHCA_VERBS_PORT},
};

int vhca_verbs_next_event(struct vhca_verbs *verbs, enum vhca_verbs_event *ret, uint8_t *ret_port)
{
	struct ibv_async_event event;

	errno = 0;
	if (ibv_get_async_event(verbs->ctx, &event) != 0) {
		if (errno != EAGAIN && errno != EINTR)
			return negative_errno();
		*ret = VHCA_VERBS_NONE; /* the descriptor stays readable if a signal came between */
		return 0;
	}
	*ret = VHCA_VERBS_OTHER;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(events); i++)
		if (events[i].type == event.event_type)
			*ret = events[i].event;
	*ret_port = (uint8_t)event.element.port_num;
	ibv_ack_async_event(&event);
	return 0;
}
