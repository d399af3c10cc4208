/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two rtnetlink messages, byte by byte, and what is made of the kernel's answers. */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "pkey/rtnl.h"
#include "tests/sim/kernel/sim_rtnl.h"
#include "tests/unit/unit.h"

#define GUID	UINT64_C(0x02c9ab0000000001)
#define IFINDEX 7

static const struct vhca_bdf pf = {.bus = 3};
static const struct vhca_rtnl_vf vf2 = {.ifindex = IFINDEX, .vf = 2, .parent = {.bus = 3}};

static int setup(void **state)
{
	static struct sim_rtnl sim;

	sim_rtnl_init(&sim, IFINDEX, "0000:03:00.0", 4);
	*state = &sim;
	return 0;
}

/* ---- expected bytes, host order, as the kernel's structures lie in memory ---- */

struct bytes {
	unsigned char b[256];
	size_t n;
};

static void add(struct bytes *m, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		m->b[m->n++] = (unsigned char)(value >> (8 * i));
#else
		m->b[m->n++] = (unsigned char)(value >> (8 * (size - 1 - i)));
#endif
	}
}

/* struct nlmsghdr, struct ifinfomsg */
static void add_head(struct bytes *m, uint32_t len, uint16_t type, uint16_t flags)
{
	add(m, len, 4);
	add(m, type, 2);
	add(m, flags, 2);
	add(m, 0, 4); /* sequence number: one message a socket */
	add(m, 0, 4);
	add(m, 0, 4); /* ifi_family, padding, ifi_type */
	add(m, IFINDEX, 4);
	add(m, 0, 4);
	add(m, 0, 4);
}

static void add_attr(struct bytes *m, uint16_t len, uint16_t type)
{
	add(m, len, 2);
	add(m, type, 2);
}

static void assert_sent(const struct sim_rtnl *sim, const struct bytes *want)
{
	assert_int_equal(sim->last_len, want->n);
	assert_memory_equal(sim->last, want->b, want->n);
}

/*
 * net/core/rtnetlink.c: do_setlink() wants IFLA_VFINFO_LIST (22) of IFLA_VF_INFO (1), and
 * do_setvfinfo() in it one of IFLA_VF_IB_NODE_GUID (10), IFLA_VF_IB_PORT_GUID (11) with struct
 * ifla_vf_guid (16 bytes, GUID at 8, padding zero), or IFLA_VF_LINK_STATE (5) with struct
 * ifla_vf_link_state (8 bytes). 0x8000 = NLA_F_NESTED.
 */
static struct bytes guid_message(uint16_t type, uint64_t guid)
{
	struct bytes m = {.n = 0};

	add_head(&m, 60, 19 /* RTM_SETLINK */, 0x05 /* REQUEST | ACK */);
	add_attr(&m, 28, 0x8000 | 22);
	add_attr(&m, 24, 0x8000 | 1);
	add_attr(&m, 20, type);
	add(&m, 2, 4);
	add(&m, 0, 4);
	add(&m, guid, 8);
	return m;
}

static void each_guid_has_a_message_of_its_own(void **state)
{
	struct sim_rtnl *sim = *state;
	struct bytes want;

	assert_int_equal(vhca_rtnl_set_vf(&sim->ops, &vf2, VHCA_VPORT_NODE, GUID), 0);
	want = guid_message(10, GUID);
	assert_sent(sim, &want);
	assert_int_equal(vhca_rtnl_set_vf(&sim->ops, &vf2, VHCA_VPORT_PORT, GUID + 1), 0);
	want = guid_message(11, GUID + 1);
	assert_sent(sim, &want);
	assert_int_equal(sim->sets, 2);
	assert_true(sim->vfs[2].node == GUID && sim->vfs[2].port == GUID + 1);
}

static void link_state_message(void **state)
{
	struct sim_rtnl *sim = *state;
	struct bytes want = {.n = 0};

	assert_int_equal(vhca_rtnl_set_vf(&sim->ops, &vf2, VHCA_VPORT_POLICY, VHCA_LINK_DOWN), 0);
	add_head(&want, 52, 19, 0x05);
	add_attr(&want, 20, 0x8000 | 22);
	add_attr(&want, 16, 0x8000 | 1);
	add_attr(&want, 12, 5);
	add(&want, 2, 4);
	add(&want, 2, 4);
	assert_sent(sim, &want);
}

static void policies_are_the_kernels_numbers(void **state)
{
	(void)state;
	assert_int_equal(VHCA_LINK_AUTO, IFLA_VF_LINK_STATE_AUTO);
	assert_int_equal(VHCA_LINK_ENABLE, IFLA_VF_LINK_STATE_ENABLE);
	assert_int_equal(VHCA_LINK_DOWN, IFLA_VF_LINK_STATE_DISABLE);
	assert_int_equal(sizeof(struct ifla_vf_guid), 16);
	assert_int_equal(offsetof(struct ifla_vf_guid, guid), 8);
}

/* rtnl_getlink(): IFLA_EXT_MASK (29) = RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS */
static void get_message(void **state)
{
	struct sim_rtnl *sim = *state;
	struct vhca_vport v;
	struct bytes want = {.n = 0};

	sim->vfs[2] = (struct sim_rtnl_vf){
		.policy = 1, .cached_node = GUID, .cached_port = UINT64_C(0xfedcba9876543210)};
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), 0);
	add_head(&want, 40, 18 /* RTM_GETLINK */, 0x01);
	add_attr(&want, 8, 29);
	add(&want, 9, 4);
	assert_sent(sim, &want);
	assert_true(v.node_guid == GUID && v.port_guid == UINT64_C(0xfedcba9876543210));
	assert_int_equal(v.policy, VHCA_LINK_ENABLE);
}

/*
 * What `ip link set ib0 vf 2 node_guid A port_guid B` sends: our kernel loses the port GUID as the
 * real one does.
 */
static void two_guids_in_one_nest_lose_the_second(void **state)
{
	struct sim_rtnl *sim = *state;
	struct bytes m = {.n = 0};
	void *reply = NULL;
	size_t len;

	add_head(&m, 80, 19, 0x05);
	add_attr(&m, 48, 22);
	add_attr(&m, 44, 1);
	for (uint16_t type = 10; type <= 11; type++) {
		add_attr(&m, 20, type);
		add(&m, 2, 4);
		add(&m, 0, 4);
		add(&m, GUID, 8);
	}
	assert_int_equal(sim->ops.call(sim, m.b, m.n, &reply, &len), 0);
	free(reply);
	assert_true(sim->vfs[2].node == GUID && sim->vfs[2].port == 0);
}

static void errors_of_the_kernel_are_passed_on(void **state)
{
	static const int errnums[] = {EPERM, EOPNOTSUPP, EBUSY, EINVAL, ENODEV, EIO};
	struct sim_rtnl *sim = *state;
	struct vhca_vport v;

	for (size_t i = 0; i < sizeof(errnums) / sizeof(errnums[0]); i++) {
		sim->fail_errno = errnums[i];
		sim->fail_at = sim->calls + 1;
		assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -errnums[i]);
		sim->fail_at = sim->calls + 1;
		assert_int_equal(vhca_rtnl_set_vf(&sim->ops, &vf2, VHCA_VPORT_PORT, GUID),
				 -errnums[i]);
	}
	assert_true(sim->vfs[2].port == 0);
}

static void answers_that_prove_nothing(void **state)
{
	struct sim_rtnl *sim = *state;
	struct vhca_rtnl_vf at = vf2;
	struct vhca_vport v;

	at.vf = 4; /* num_vfs is 4 */
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &at, &v), -ENXIO);
	sim->vfs[2].broken = true;
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -ENXIO);
	sim->vfs[2].broken = false;
	sim->no_get_guid = true;
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -ENODATA);
	sim->no_get_guid = false;
	sim->vfs[2].policy = 3;
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -EBADMSG);
	sim->vfs[2].policy = 2;
	sim->parent = "0000:04:00.0"; /* the number is another adapter's device by now */
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -ESTALE);
	sim->parent = "0000:03:00";
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -ESTALE);
	sim->parent = NULL; /* before Linux 5.14 */
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), 0);
	sim->type = 1;
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), -ESTALE);
}

/* A full adapter: one answer of all its VFs, far beyond a page. */
static void the_last_of_126_is_found(void **state)
{
	struct sim_rtnl *sim = *state;
	struct vhca_rtnl_vf last = vf2;
	struct vhca_vport v;

	sim_rtnl_init(sim, IFINDEX, "0000:03:00.0", SIM_RTNL_VFS);
	last.vf = SIM_RTNL_VFS - 1;
	for (uint32_t i = 0; i < SIM_RTNL_VFS; i++)
		sim->vfs[i].cached_node = sim->vfs[i].cached_port = GUID + i;
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &last, &v), 0);
	assert_true(v.port_guid == GUID + 125 && v.node_guid == GUID + 125);
	last.vf++;
	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &last, &v), -ENXIO);
}

/* ---- answers that are cut short or wrong inside ---- */

struct canned {
	unsigned char b[4096];
	size_t n;
};

static int call_canned(void *ctx, const void *request, size_t len, void **ret_reply,
		       size_t *ret_len)
{
	const struct canned *c = ctx;

	(void)request;
	(void)len;
	*ret_reply = malloc(c->n ? c->n : 1);
	assert_non_null(*ret_reply);
	memcpy(*ret_reply, c->b, c->n);
	*ret_len = c->n;
	return 0;
}

static void capture(struct sim_rtnl *sim, struct canned *c)
{
	struct vhca_vport v;
	void *reply = NULL;

	assert_int_equal(vhca_rtnl_get_vf(&sim->ops, &vf2, &v), 0);
	assert_int_equal(sim->ops.call(sim, memcpy((unsigned char[512]){0}, sim->last, 512),
				       sim->last_len, &reply, &c->n),
			 0);
	assert_true(c->n <= sizeof(c->b));
	memcpy(c->b, reply, c->n);
	free(reply);
}

/*
 * A cut answer is an error or, where only what comes behind our VF is missing, the same values.
 * Never another VF's.
 */
static void every_truncation_is_survived(void **state)
{
	struct sim_rtnl *sim = *state;
	struct canned whole, cut;
	const struct vhca_rtnl rtnl = {.call = call_canned, .ctx = &cut};
	struct vhca_vport v;

	for (unsigned int i = 0; i < 4; i++)
		sim->vfs[i] =
			(struct sim_rtnl_vf){.cached_node = GUID + i, .cached_port = GUID + i};
	capture(sim, &whole);
	for (size_t n = 0; n < whole.n; n++) {
		int r;

		cut = whole;
		cut.n = n;
		r = vhca_rtnl_get_vf(&rtnl, &vf2, &v);
		assert_true(r < 0); /* the header says more than there is */
		memcpy(cut.b, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
		r = n < sizeof(uint32_t) ? -EBADMSG : vhca_rtnl_get_vf(&rtnl, &vf2, &v);
		assert_true(r < 0 || (v.port_guid == GUID + 2 && v.node_guid == GUID + 2));
	}
}

static void every_wrong_byte_is_survived(void **state)
{
	struct sim_rtnl *sim = *state;
	struct canned whole, bad;
	const struct vhca_rtnl rtnl = {.call = call_canned, .ctx = &bad};
	struct vhca_vport v;

	capture(sim, &whole);
	for (size_t i = 0; i < whole.n; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			bad = whole;
			bad.b[i] ^= (unsigned char)(1u << bit);
			(void)vhca_rtnl_get_vf(&rtnl, &vf2, &v); /* for the sanitizers */
		}
	}
}

/*
 * The transport itself, as far as a machine without InfiniBand can go: no real device has
 * ndo_set_vf_guid.
 */
static void real_kernel_refuses(void **state)
{
	const struct vhca_rtnl_vf lo = {.ifindex = if_nametoindex("lo"), .parent = pf};
	const struct vhca_rtnl_vf nobody = {.ifindex = INT32_MAX, .parent = pf};
	struct vhca_vport v;
	int r;

	(void)state;
	if (lo.ifindex == 0)
		skip();
	assert_int_equal(vhca_rtnl_get_vf(&vhca_rtnl_kernel, &lo, &v), -ESTALE);
	assert_int_equal(vhca_rtnl_get_vf(&vhca_rtnl_kernel, &nobody, &v), -ENODEV);
	r = vhca_rtnl_set_vf(&vhca_rtnl_kernel, &lo, VHCA_VPORT_NODE, GUID);
	assert_true(r == -EOPNOTSUPP || r == -EPERM);
	r = vhca_rtnl_set_vf(&vhca_rtnl_kernel, &lo, VHCA_VPORT_POLICY, VHCA_LINK_DOWN);
	assert_true(r == -EOPNOTSUPP || r == -EPERM);
}

#define T(fn) cmocka_unit_test_setup(fn, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_guid_has_a_message_of_its_own),
		T(link_state_message),
		T(policies_are_the_kernels_numbers),
		T(get_message),
		T(two_guids_in_one_nest_lose_the_second),
		T(errors_of_the_kernel_are_passed_on),
		T(answers_that_prove_nothing),
		T(the_last_of_126_is_found),
		T(every_truncation_is_survived),
		T(every_wrong_byte_is_survived),
		T(real_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
