/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pkey/verbs.c with a libibverbs of our own, whose devices have no hardware. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "pkey/verbs.h"
#include "tests/unit/unit.h"

/* The header puts wrappers in front of what the library exports. */
#undef ibv_get_device_list
#undef ibv_query_port

static struct {
	struct ibv_device devices[2];
	struct ibv_device *list[3];
	struct ibv_context ctx; /* abi_compat NULL: calls go through the exported functions */
	struct ibv_port_attr port;
	uint64_t prefix, guid;
	struct ibv_async_event event;
	int events; /* that wait */
	int pipe[2];
	int list_errno, open_errno, device_error, port_error, gid_error,
		event_errno;	    /* 0 = works */
	int lists, contexts, acked; /* given out and not given back; acknowledged */
} lib;

struct ibv_device **ibv_get_device_list(int *n)
{
	if (lib.list_errno != 0) {
		errno = lib.list_errno;
		return NULL;
	}
	*n = 2;
	lib.lists++;
	return lib.list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	assert_ptr_equal(list, lib.list);
	lib.lists--;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (lib.open_errno != 0) {
		errno = lib.open_errno > 0 ? lib.open_errno : 0;
		return NULL;
	}
	lib.ctx.device = device;
	lib.contexts++;
	return &lib.ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	assert_ptr_equal(ctx, &lib.ctx);
	lib.contexts--;
	return 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = 2;
	return lib.device_error;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)ctx;
	assert_int_equal(port, 2);
	errno = ENODEV; /* of those who return -1 */
	memcpy(attr, &lib.port, offsetof(struct ibv_port_attr, port_cap_flags2));
	return lib.port_error;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	assert_int_equal(port, 2);
	assert_int_equal(index, 0);
	gid->global.subnet_prefix = htobe64(lib.prefix);
	gid->global.interface_id = htobe64(lib.guid);
	return lib.gid_error;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	if (lib.events == 0) {
		errno = lib.event_errno;
		return -1;
	}
	lib.events--;
	*event = lib.event;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	lib.acked++;
}

static int setup(void **state)
{
	struct vhca_verbs *verbs = NULL;

	memset(&lib, 0, sizeof(lib));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(lib.devices[i].name, sizeof(lib.devices[i].name), "mlx4_%d", i);
		lib.list[i] = &lib.devices[i];
	}
	assert_int_equal(pipe(lib.pipe), 0);
	lib.ctx.async_fd = lib.pipe[0];
	lib.event_errno = EAGAIN;
	lib.port = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
					  .phys_state = 5,
					  .lid = 7,
					  .sm_lid = 1,
					  .pkey_tbl_len = 128,
					  .link_layer = IBV_LINK_LAYER_INFINIBAND};
	lib.prefix = 0xfe80000000000000;
	lib.guid = 0x0002c90300000a02;
	assert_int_equal(vhca_verbs_open("mlx4_1", &verbs), 0);
	*state = verbs;
	return 0;
}

static int teardown(void **state)
{
	assert_null(vhca_verbs_close(*state));
	assert_int_equal(lib.lists, 0);
	assert_int_equal(lib.contexts, 0);
	(void)close(lib.pipe[0]);
	(void)close(lib.pipe[1]);
	return 0;
}

static void opens_the_device_of_that_name(void **state)
{
	assert_ptr_equal(lib.ctx.device, &lib.devices[1]);
	assert_int_equal(vhca_verbs_n_ports(*state), 2);
	assert_int_equal(vhca_verbs_fd(*state), lib.pipe[0]);
	assert_true(fcntl(lib.pipe[0], F_GETFL) & O_NONBLOCK);
}

/* What fails leaves nothing open: teardown() counts. */
static void cannot_be_opened(void **state)
{
	struct vhca_verbs *verbs = NULL;

	(void)state;
	assert_int_equal(vhca_verbs_open("mlx4_2", &verbs), -ENODEV);
	lib.device_error = EIO;
	assert_int_equal(vhca_verbs_open("mlx4_0", &verbs), -EIO);
	lib.ctx.async_fd = -1;
	assert_int_equal(vhca_verbs_open("mlx4_0", &verbs), -EBADF);
	lib.open_errno = EACCES;
	assert_int_equal(vhca_verbs_open("mlx4_0", &verbs), -EACCES);
	lib.open_errno = -1; /* a provider that does not say why */
	assert_int_equal(vhca_verbs_open("mlx4_0", &verbs), -EIO);
	lib.list_errno = ENOSYS;
	assert_int_equal(vhca_verbs_open("mlx4_0", &verbs), -ENOSYS);
	assert_null(verbs);
}

static void says_how_a_port_is(void **state)
{
	struct vhca_port_state s;

	memset(&s, 0xff, sizeof(s));
	assert_int_equal(vhca_verbs_query(*state, 2, &s), 0);
	assert_int_equal(s.port, 2);
	assert_int_equal(s.state, VHCA_PORT_ACTIVE);
	assert_int_equal(s.phys_state, 5);
	assert_true(s.is_ib);
	assert_int_equal(s.lid, 7);
	assert_int_equal(s.sm_lid, 1);
	assert_int_equal(s.port_guid, lib.guid);
	assert_int_equal(s.gid_prefix, lib.prefix);
	assert_int_equal(s.n_pkeys, 128);
	assert_int_equal(s.pkeys[0], 0);
}

static void ethernet_is_told_apart(void **state)
{
	struct vhca_port_state s;

	lib.port.link_layer = IBV_LINK_LAYER_ETHERNET;
	assert_int_equal(vhca_verbs_query(*state, 2, &s), 0);
	assert_false(s.is_ib);
	lib.port.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
	assert_int_equal(vhca_verbs_query(*state, 2, &s), 0);
	assert_true(s.is_ib);
}

static void each_way_to_fail_is_a_negative_errno(void **state)
{
	struct vhca_port_state s;

	lib.port_error = EIO;
	assert_int_equal(vhca_verbs_query(*state, 2, &s), -EIO);
	lib.port_error = -1;
	assert_int_equal(vhca_verbs_query(*state, 2, &s), -ENODEV);
	lib.port_error = 0;
	lib.gid_error = -EINVAL;
	assert_int_equal(vhca_verbs_query(*state, 2, &s), -EINVAL);
}

static enum vhca_verbs_event event_of(struct vhca_verbs *verbs, enum ibv_event_type type)
{
	enum vhca_verbs_event event = VHCA_VERBS_NONE;
	uint8_t port = 0;

	lib.event.event_type = type;
	lib.event.element.port_num = 2;
	lib.events = 1;
	assert_int_equal(vhca_verbs_next_event(verbs, &event, &port), 0);
	assert_int_equal(port, 2);
	return event;
}

static void events_are_translated(void **state)
{
	enum vhca_verbs_event event = VHCA_VERBS_PORT;
	uint8_t port;

	assert_int_equal(event_of(*state, IBV_EVENT_PORT_ACTIVE), VHCA_VERBS_PORT);
	assert_int_equal(event_of(*state, IBV_EVENT_PORT_ERR), VHCA_VERBS_PORT);
	assert_int_equal(event_of(*state, IBV_EVENT_LID_CHANGE), VHCA_VERBS_PORT);
	assert_int_equal(event_of(*state, IBV_EVENT_SM_CHANGE), VHCA_VERBS_PORT);
	assert_int_equal(event_of(*state, IBV_EVENT_GID_CHANGE), VHCA_VERBS_PORT);
	assert_int_equal(event_of(*state, IBV_EVENT_PKEY_CHANGE), VHCA_VERBS_PKEYS);
	assert_int_equal(event_of(*state, IBV_EVENT_CLIENT_REREGISTER), VHCA_VERBS_REREGISTER);
	assert_int_equal(event_of(*state, IBV_EVENT_DEVICE_FATAL), VHCA_VERBS_FATAL);
	assert_int_equal(event_of(*state, IBV_EVENT_CQ_ERR), VHCA_VERBS_OTHER);
	assert_int_equal(lib.acked, 9);
	assert_int_equal(vhca_verbs_next_event(*state, &event, &port), 0);
	assert_int_equal(event, VHCA_VERBS_NONE);
	lib.event_errno = EIO;
	assert_int_equal(vhca_verbs_next_event(*state, &event, &port), -EIO);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(opens_the_device_of_that_name),
		CASE(cannot_be_opened),
		CASE(says_how_a_port_is),
		CASE(ethernet_is_told_apart),
		CASE(each_way_to_fail_is_a_negative_errno),
		CASE(events_are_translated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
