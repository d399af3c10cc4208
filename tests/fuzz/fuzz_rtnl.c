/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whatever answers an rtnetlink request: it names the VF that was asked for, within bounds, or
 * nothing is taken from it.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#include "pkey/rtnl.h"
#include "tests/fuzz/fuzz.h"

#define UNTOUCHED UINT64_C(0x5aa5)

struct answer {
	const uint8_t *data;
	size_t size;
};

static int answer(void *ctx, const void *request, size_t len, void **ret_reply, size_t *ret_len)
{
	const struct answer *a = ctx;

	FUZZ_ASSERT(request && len >= NLMSG_HDRLEN);
	*ret_reply = malloc(a->size ? a->size : 1);
	FUZZ_ASSERT(*ret_reply);
	memcpy(*ret_reply, a->data, a->size);
	*ret_len = a->size;
	return 0;
}

/* Somewhere in the answer, in the kernel's byte order. */
static bool stands_in(const struct answer *a, uint64_t value)
{
	return memmem(a->data, a->size, &value, sizeof(value)) != NULL;
}

static void check_get(const struct vhca_rtnl *rtnl, const struct answer *a, uint32_t vf)
{
	const struct vhca_rtnl_vf at = {.ifindex = 7, .vf = vf, .parent = {.bus = 3}};
	struct vhca_vport vport = {.node_guid = UNTOUCHED, .port_guid = UNTOUCHED};
	int r = vhca_rtnl_get_vf(rtnl, &at, &vport);

	fuzz_verdict(r == 0);
	if (r < 0) {
		FUZZ_ASSERT(vport.node_guid == UNTOUCHED && vport.port_guid == UNTOUCHED);
		return;
	}
	FUZZ_ASSERT(r == 0 && vport.policy <= VHCA_LINK_DOWN);
	FUZZ_ASSERT(stands_in(a, vport.node_guid) && stands_in(a, vport.port_guid));
}

/* Only an acknowledgement is a success. */
static void check_set(const struct vhca_rtnl *rtnl, const struct answer *a)
{
	const struct vhca_rtnl_vf at = {.ifindex = 7, .vf = 2, .parent = {.bus = 3}};
	struct {
		struct nlmsghdr hdr;
		int error;
	} ack = {.error = -1};
	int r = vhca_rtnl_set_vf(rtnl, &at, VHCA_VPORT_PORT, 1);

	if (r < 0)
		return;
	FUZZ_ASSERT(r == 0 && a->size >= sizeof(ack));
	memcpy(&ack, a->data, sizeof(ack));
	FUZZ_ASSERT(ack.hdr.nlmsg_type == NLMSG_ERROR && ack.error == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answer a = {.data = data, .size = size};
	const struct vhca_rtnl rtnl = {.call = answer, .ctx = &a};

	check_get(&rtnl, &a, 2);
	check_get(&rtnl, &a, 0);
	check_set(&rtnl, &a);
	return 0;
}
