/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The production engine and the production mlx5 back end on a simulated kernel: what differs from
 * mlx4.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/api/views.h"
#include "agent/vf/engine.h"
#include "common/http/json.h"
#include "tests/sim/host/world_mlx5.h"
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/unit.h"

#define GUID	 UINT64_C(0x02c9ab0000000e01) /* that somebody gave by hand */
#define MAC_GUID UINT64_C(0xfa163e0000123456)

static int setup(void **state)
{
	static struct world w;
	static struct world_mlx5 m;

	world_init(&w);
	world_mlx5_init(&w, &m);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	world_mlx5_done(*state);
	world_done(*state);
	return 0;
}

static struct vhca_hca *hca_of(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas);
}

static struct vhca_vf *engine_vf(const struct world *w, unsigned int v)
{
	return vhca_model_vf(vhca_engine_model(w->engine), w->vfs[v].bdf);
}

static struct vhca_claim *claim_of(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
}

static void sm_says(const struct world *w, enum vhca_sm_answer answer)
{
	const struct vhca_claim *c = claim_of(w);
	struct vhca_sm_binding b;

	if (!c)
		return;
	b = vhca_claim_binding(c);
	vhca_engine_sm_answer(w->engine, &b, answer, "", NULL);
}

/* What "free" promises: nobody's GUIDs, link down, in firmware. */
static void assert_free_is_clean(const struct world *w)
{
	for (unsigned int v = 0; v < WORLD_VFS; v++) {
		const struct vhca_vf *vf = engine_vf(w, v);

		if (vf && vf->state == VHCA_VF_FREE && !vf->committing)
			assert_true(world_clean(w, v));
	}
}

static unsigned int count(const struct world *w, enum vhca_vf_state s)
{
	unsigned int n = 0;

	for (unsigned int v = 0; v < WORLD_VFS; v++)
		n += engine_vf(w, v)->state == s && !engine_vf(w, v)->committing;
	return n;
}

static bool all_free(const struct world *w, const void *arg)
{
	(void)arg;
	assert_free_is_clean(w);
	return count(w, VHCA_VF_FREE) == WORLD_VFS && !claim_of(w);
}

static bool waits_for_sm(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_CLAIMED) == 1;
}

static bool attached(const struct world *w, const void *arg)
{
	(void)arg;
	assert_free_is_clean(w);
	return count(w, VHCA_VF_ATTACHED) == 1;
}

static bool granted(const struct world *w, const void *arg)
{
	return attached(w, arg) && claim_of(w)->vf->granted && !claim_of(w)->vf->reason[0];
}

/* The agent runs, and so does a guest whose VF is granted. */
static void start_granted(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, waits_for_sm, NULL));
	sm_says(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, granted, NULL));
}

static bool not_granted_because(const struct world *w, const void *arg)
{
	return attached(w, NULL) && !claim_of(w)->vf->granted &&
	       strstr(claim_of(w)->vf->reason, arg);
}

static const struct sim_rtnl_vf *firmware(const struct world *w, unsigned int v)
{
	return &w->mlx5->kernel.vfs[v];
}

/* ---- life ---- */

static void test_former_tenants_are_scrubbed(void **state)
{
	struct world *w = *state;

	for (unsigned int v = 0; v < WORLD_VFS; v++)
		assert_false(world_clean(w, v));
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	for (unsigned int v = 0; v < WORLD_VFS; v++) {
		assert_true(firmware(w, v)->port == 0 && firmware(w, v)->node == 0);
		assert_int_equal(firmware(w, v)->policy, VHCA_LINK_DOWN);
		assert_string_equal(w->vfs[v].driver, "vfio-pci");
	}
}

/*
 * A key that the host's port does not have: on mlx5 that says nothing. But the SM must have said
 * yes.
 */
static void test_a_tenant_comes_and_goes(void **state)
{
	struct world *w = *state;
	uint64_t guid;
	int v;

	world_start(w);
	world_domain_start(w, 0, "0x8055");
	assert_true(world_until(w, waits_for_sm, NULL));
	sm_says(w, VHCA_SM_RETRY);
	world_settle(w);
	world_settle(w); /* longer than twice sm.timeout, after which mlx4 would go on */
	assert_int_equal(count(w, VHCA_VF_CLAIMED), 1);
	assert_non_null(strstr(claim_of(w)->vf->reason, "waits for the SM"));
	guid = claim_of(w)->identity.guid;
	for (unsigned int i = 0; i < WORLD_VFS; i++)
		assert_true(firmware(w, i)->port != guid);

	sm_says(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, granted, NULL));
	v = world_vf_of(w, 0, "ib0");
	assert_true(v >= 0);
	assert_true(firmware(w, (unsigned int)v)->port == guid);
	assert_true(firmware(w, (unsigned int)v)->node == guid);
	assert_int_equal(firmware(w, (unsigned int)v)->policy, VHCA_LINK_AUTO);

	world_domain_stop(w, 0);
	assert_true(world_until(w, all_free, NULL));
}

static void test_sm_refuses(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, waits_for_sm, NULL));
	sm_says(w, VHCA_SM_REFUSED);
	assert_true(world_until(w, all_free, NULL));
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
}

/* The SM's table of the host's port moves: nothing that concerns a mlx5 VF. */
static void test_port_table_does_not_concern_vfs(void **state)
{
	struct world *w = *state;
	unsigned int sets;

	start_granted(w);
	sets = w->mlx5->kernel.sets;
	world_set_key(w, 1, 0x8009);
	world_settle(w);
	assert_true(world_until(w, granted, NULL));
	assert_int_equal(w->mlx5->kernel.sets, sets);
}

static bool restored(const struct world *w, const void *arg)
{
	const struct sim_rtnl_vf *fw = firmware(w, *(const unsigned int *)arg);

	return fw->port == claim_of(w)->identity.guid && fw->policy == VHCA_LINK_AUTO;
}

/* Somebody's `ip link set ib0 vf 0 state disable`. */
static void test_drift_is_healed(void **state)
{
	struct world *w = *state;
	unsigned int v;

	start_granted(w);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	w->mlx5->kernel.vfs[v].policy = VHCA_LINK_DOWN;
	assert_true(world_until(w, restored, &v));
	assert_true(world_told(w, "is not what was programmed: link down"));
	w->mlx5->kernel.vfs[v] = (struct sim_rtnl_vf){.policy = VHCA_LINK_DOWN}; /* reloaded */
	assert_true(world_until(w, restored, &v));
}

/* A killed agent: what was programmed is proven again, by what it reads. */
static void test_restart(void **state)
{
	struct world *w = *state;
	unsigned int sets;

	start_granted(w);
	sets = w->mlx5->kernel.sets;
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, attached, NULL));
	sm_says(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, granted, NULL));
	assert_int_equal(w->mlx5->kernel.sets, sets);
}

/* ---- adopt: what ran before the agent did ---- */

/* Somebody set VF 0 by hand. */
static void set_by_hand(struct world *w, uint64_t node, uint64_t port, enum vhca_link_policy policy)
{
	w->mlx5->kernel.vfs[0] = (struct sim_rtnl_vf){.node = node,
						      .port = port,
						      .cached_node = node,
						      .cached_port = port,
						      .policy = policy};
	w->vfs[0].guid = port;
}

/* The metadata of the guest on VF 0 asks for GUID. */
static void by_hand(struct world *w, uint64_t node, enum vhca_link_policy policy)
{
	struct vhca_vf_request *req;

	set_by_hand(w, node, GUID, policy);
	world_domain_start(w, 0, "0x8001");
	req = &w->domains[0].info.requests[0];
	req->guid = GUID;
	world_plug(w, 0, 0, "ib0");
	world_start(w);
}

static bool others_free(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_FREE) == WORLD_VFS - 1;
}

static void on_adopted(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct vhca_error *ret = arg;

	(void)claim;
	*ret = err ? *err : (struct vhca_error){.code = "adopted"};
}

static bool answered(const struct world *w, const void *arg)
{
	(void)w;
	return ((const struct vhca_error *)arg)->code[0];
}

static struct vhca_error adopt(struct world *w)
{
	struct vhca_error ret = VHCA_ERROR_INIT;

	vhca_engine_adopt(w->engine, &w->domains[0].info.uuid, on_adopted, &ret);
	assert_true(world_until(w, answered, &ret));
	return ret;
}

static void test_adoption_writes_nothing(void **state)
{
	struct world *w = *state;
	unsigned int sets;

	by_hand(w, GUID, VHCA_LINK_ENABLE);
	assert_true(world_until(w, others_free, NULL));
	sets = w->mlx5->kernel.sets;
	assert_string_equal(adopt(w).code, "adopted");
	assert_true(world_until(w, attached, NULL));
	world_set_key(w, 1, 0x8009); /* looks at every VF of the port */
	world_settle(w);
	assert_int_equal(w->mlx5->kernel.sets, sets);
	assert_int_equal(firmware(w, 0)->policy, VHCA_LINK_ENABLE);
}

/* Adopting it all the same would take the guest's link down to set it right. */
static void test_half_of_an_identity_is_not_adopted(void **state)
{
	struct world *w = *state;
	struct vhca_error err;

	by_hand(w, GUID + 1, VHCA_LINK_DOWN);
	assert_true(world_until(w, others_free, NULL));
	err = adopt(w);
	assert_string_equal(err.code, "differs");
	assert_non_null(strstr(err.msg, "node GUID 0x02c9ab0000000e02 instead of "));
	assert_non_null(strstr(err.msg, ", link down"));
	assert_null(claim_of(w));
	w->domains[0].info.n_requests = 0;
	world_look(w, 0);
	world_settle(w);
	err = adopt(w);
	assert_string_equal(err.code, "differs");
	assert_non_null(strstr(err.msg, "only at the subnet manager"));
}

/* eswitchd plugged it: the GUID is of the port's MAC, and its partition the cloud knows. */
static void test_a_clouds_port_gets_its_partition_later(void **state)
{
	struct world *w = *state;
	struct vhca_conf_hca *hca = &w->conf.hcas[0];
	struct vhca_error ret = VHCA_ERROR_INIT;
	unsigned int sets;

	hca->reserve[hca->n_reserve++] = w->vfs[0].bdf;
	set_by_hand(w, MAC_GUID, MAC_GUID, VHCA_LINK_ENABLE);
	world_domain_start(w, 0, NULL);
	world_plug(w, 0, 0, "hostdev0");
	w->word_ms = 60000; /* beyond what a busy machine takes */
	world_start(w);
	assert_true(world_until(w, others_free, NULL));
	sets = w->mlx5->kernel.sets;
	assert_string_equal(adopt(w).code, "adopted");
	assert_string_equal(claim_of(w)->name, "mac-fa163e123456");
	assert_int_equal(claim_of(w)->identity.n_pkeys, 0);
	vhca_engine_set_partitions(w->engine, claim_of(w), "0x8011", on_adopted, &ret);
	world_settle(w);
	assert_string_equal(ret.code, "");
	sm_says(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, answered, &ret));
	assert_string_equal(ret.code, "adopted");
	assert_int_equal(claim_of(w)->identity.n_pkeys, 1);
	assert_int_equal(claim_of(w)->identity.pkeys[0], 0x8011);
	assert_true(attached(w, NULL));
	world_settle(w);
	assert_int_equal(w->mlx5->kernel.sets, sets);
}

/* ---- what is told ---- */

static void attach_one(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, waits_for_sm, NULL));
	sm_says(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, attached, NULL));
}

static bool has_called(const struct world *w, const void *arg)
{
	return w->mlx5->kernel.calls >= *(const unsigned int *)arg;
}

static void looked_at_again(struct world *w)
{
	unsigned int calls = w->mlx5->kernel.calls + 2;

	assert_true(world_until(w, has_called, &calls));
	world_round(w, 0);
}

static void test_sm_without_virtualization_is_named(void **state)
{
	struct world *w = *state;

	w->no_vports = true;
	attach_one(w);
	assert_true(world_until(w, not_granted_because, "no virtualization support"));
	assert_non_null(strstr(claim_of(w)->vf->reason, "LID 65535"));
	looked_at_again(w);
	assert_false(claim_of(w)->vf->granted);
}

static void tell_port(struct world *w, uint8_t port_state, uint16_t lid)
{
	const struct vhca_port_state port = {.port = 1,
					     .state = port_state,
					     .is_ib = true,
					     .lid = lid,
					     .port_guid = w->port_guid};

	vhca_engine_port(w->engine, hca_of(w)->facts.bdf, VHCA_PORT_CHANGED, &port);
}

static void test_port_down_is_told_apart_from_lid_65535(void **state)
{
	struct world *w = *state;

	attach_one(w);
	assert_true(world_until(w, granted, NULL));
	tell_port(w, VHCA_PORT_DOWN, 2);
	assert_true(world_until(w, not_granted_because, "DOWN, not ACTIVE"));
	tell_port(w, VHCA_PORT_DOWN, VHCA_LID_PERMISSIVE);
	assert_true(world_until(w, not_granted_because, "no virtualization support"));
	tell_port(w, VHCA_PORT_ACTIVE, 2);
	assert_true(world_until(w, granted, NULL));
	sm_says(w, VHCA_SM_RETRY); /* an SM that is away for a moment takes nothing back */
	looked_at_again(w);
	assert_true(claim_of(w)->vf->granted);
}

static void test_capabilities_are_honest(void **state)
{
	struct world *w = *state;
	struct json_object *hca, *vf, *can, *value;

	attach_one(w);
	hca = api_view_hca(hca_of(w), 0);
	assert_true(json_object_object_get_ex(hca, "capabilities", &can));
	assert_string_equal(json_object_to_json_string_ext(can, JSON_C_TO_STRING_PLAIN),
			    "{\"host_pkey_map\":false,\"sees_grant\":false,\"link_policy\":true}");
	json_object_put(hca);
	vf = api_view_vf(claim_of(w)->vf, false);
	assert_true(json_object_object_get_ex(vf, "link_policy", &value));
	assert_string_equal(json_object_get_string(value), "auto");
	assert_true(json_object_object_get_ex(vf, "node_guid", &value));
	assert_string_equal(json_object_get_string(value),
			    VHCA_GUID_STR(claim_of(w)->identity.guid));
	assert_true(json_object_object_get_ex(vf, "pkeys", &value));
	assert_int_equal(json_object_array_length(value), 0);
	assert_true(json_object_object_get_ex(vf, "missing", &value));
	assert_int_equal(json_object_array_length(value), 0);
	json_object_put(vf);
}

/* An adapter whose RDMA driver is not loaded, say. */
static void test_what_is_not_known_is_null(void **state)
{
	struct world *w = *state;
	struct json_object *doc;
	struct vhca_hca *hca;

	attach_one(w);
	hca = hca_of(w);
	hca->facts.driver[0] = hca->facts.ibdev[0] = '\0';
	doc = api_view_hca(hca, 0);
	assert_null(json_object_object_get(doc, "driver"));
	assert_null(json_object_object_get(doc, "ibdev"));
	json_object_put(doc);
}

/* ---- one netlink call fails ---- */

static bool quarantined_or_free(const struct world *w, const void *arg)
{
	(void)arg;
	assert_free_is_clean(w);
	return count(w, VHCA_VF_FREE) + count(w, VHCA_VF_QUARANTINED) == WORLD_VFS;
}

static void fail_in(struct world *w, enum vhca_effect effect, unsigned int nth)
{
	static const int errnums[] = {EBUSY, EOPNOTSUPP, EPERM, ENODEV, EINVAL};

	w->mlx5->fail_effect = effect;
	w->mlx5->fail_nth = nth;
	w->mlx5->fail_errno = errnums[nth % 5];
}

static bool struck(const struct world *w, const void *arg)
{
	(void)arg;
	return w->mlx5->kernel.hit;
}

static void start_over(void **state)
{
	assert_int_equal(teardown(state), 0);
	assert_int_equal(setup(state), 0);
}

/* Taking over the first VF: two reads and three writes. Its neighbours are not concerned. */
static void test_prepare_failing_once(void **state)
{
	for (unsigned int nth = 1; nth <= 5; nth++) {
		struct world *w = *state;

		fail_in(w, VHCA_EFFECT_PREPARE, nth);
		world_start(w);
		assert_true(world_until(w, quarantined_or_free, NULL));
		assert_true(w->mlx5->kernel.hit);
		/*
		 * A GUID that cannot be zero becomes all ones; a look, the link and the proof have
		 * no second way.
		 */
		assert_int_equal(count(w, VHCA_VF_QUARANTINED), nth != 3 && nth != 4);
		start_over(state);
	}
}

/* A VF with a claim, then with a withdrawn one: nobody gets it while it shows half an identity. */
static void test_program_failing_once(void **state)
{
	for (unsigned int nth = 1; nth <= 6; nth++) {
		struct world *w = *state;

		world_start(w);
		assert_true(world_until(w, all_free, NULL));
		world_domain_start(w, 0, "0x8001");
		assert_true(world_until(w, waits_for_sm, NULL));
		fail_in(w, VHCA_EFFECT_PROGRAM, nth);
		sm_says(w, VHCA_SM_ACCEPTED);
		assert_true(world_until(w, struck, NULL));
		world_domain_stop(w, 0);
		assert_true(world_until(w, quarantined_or_free, NULL));
		start_over(state);
	}
}

static void test_scrub_failing_once(void **state)
{
	for (unsigned int nth = 1; nth <= 5; nth++) {
		struct world *w = *state;

		attach_one(w);
		fail_in(w, VHCA_EFFECT_SCRUB, nth);
		world_domain_stop(w, 0);
		assert_true(world_until(w, quarantined_or_free, NULL));
		assert_true(w->mlx5->kernel.hit);
		assert_int_equal(count(w, VHCA_VF_QUARANTINED), nth != 3 && nth != 4);
		start_over(state);
	}
}

/* ---- as many keys as a VF may have ---- */

static void test_every_key_is_reported(void **state)
{
	struct world *w = *state;
	char partition[1024] = "";
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, partition, sizeof(partition));
	for (unsigned int i = 1; i <= VHCA_VF_PKEYS_MAX; i++)
		vhca_strbuf_add(&sb, "%s0x%04x", i > 1 ? " " : "", 0x8000U + i);
	told.answers = true;
	engine_outbox_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, partition);
	assert_true(world_until(w, attached, NULL));
	assert_true(told.last.bound);
	assert_int_equal(told.last.n_pkeys, VHCA_VF_PKEYS_MAX);
	for (unsigned int i = 0; i < VHCA_VF_PKEYS_MAX; i++)
		assert_int_equal(told.last.pkeys[i], 0x8001U + i);
	assert_int_equal(told.last.port_guid, w->port_guid);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_former_tenants_are_scrubbed),
		T(test_a_tenant_comes_and_goes),
		T(test_sm_refuses),
		T(test_port_table_does_not_concern_vfs),
		T(test_drift_is_healed),
		T(test_restart),
		T(test_adoption_writes_nothing),
		T(test_half_of_an_identity_is_not_adopted),
		T(test_a_clouds_port_gets_its_partition_later),
		T(test_sm_without_virtualization_is_named),
		T(test_port_down_is_told_apart_from_lid_65535),
		T(test_capabilities_are_honest),
		T(test_what_is_not_known_is_null),
		T(test_prepare_failing_once),
		T(test_program_failing_once),
		T(test_scrub_failing_once),
		T(test_every_key_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
