// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which VFs a domain would get, and that nothing comes of the question. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/vf/work.h"
#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

#define GUID UINT64_C(0x0002c90300a1b2c3)
#define GIB  (UINT64_C(1024) * 1024)

/* ---- what would be written ---- */

static unsigned int commits;

void __real_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg)
{
	commits++;
	__real_vhca_txn_commit(txn, done, arg);
}

/* All that the engine knows, byte by byte, the hardware, and what was done and written so far. */
struct shot {
	struct vhca_engine engine;
	struct vhca_hca hcas[2];
	struct vhca_vf vfs[WORLD_VFS];
	struct vhca_claim claims[WORLD_VFS];
	struct vhca_domain domains[WORLD_DOMAINS];
	struct world_vf hardware[WORLD_VFS_MAX];
	unsigned int commits, effects;
};

static void take(const struct world *w, struct shot *ret)
{
	const struct vhca_model *m = vhca_engine_model(w->engine);
	unsigned int h = 0, v = 0, c = 0, d = 0;
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;
	const struct vhca_claim *claim;
	const struct vhca_domain *dom;

	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->engine, w->engine, sizeof(ret->engine));
	TAILQ_FOREACH (hca, &m->hcas, link) {
		memcpy(&ret->hcas[h++], hca, sizeof(*hca));
		TAILQ_FOREACH (vf, &hca->vfs, link)
			memcpy(&ret->vfs[v++], vf, sizeof(*vf));
	}
	TAILQ_FOREACH (claim, &m->claims, link)
		memcpy(&ret->claims[c++], claim, sizeof(*claim));
	TAILQ_FOREACH (dom, &m->domains, link)
		memcpy(&ret->domains[d++], dom, sizeof(*dom));
	memcpy(ret->hardware, w->vfs, sizeof(ret->hardware));
	ret->commits = commits;
	ret->effects = w->effects;
}

/* ---- what is asked for ---- */

static struct plan {
	struct vhca_dom_info wanted;
	const struct vhca_vf *places[VHCA_DOM_VFS_MAX];
	struct vhca_error err;
} plan;

/* Of domain i, which asks for nothing yet. */
static void begin_plan(const struct world *w, unsigned int i)
{
	plan.wanted = (struct vhca_dom_info){.uuid = w->domains[i].info.uuid};
	(void)snprintf(plan.wanted.name, sizeof(plan.wanted.name), "vm%u", i);
}

static void want(const char *name, const char *partition, uint64_t guid)
{
	struct vhca_vf_request *vf = &plan.wanted.requests[plan.wanted.n_requests++];

	*vf = (struct vhca_vf_request){.fabric = "default", .guid = guid, .numa = -1};
	(void)vhca_strcpy(vf->name, sizeof(vf->name), name);
	(void)vhca_strcpy(vf->partition, sizeof(vf->partition), partition);
}

/* The code of the refusal, "" = all fit. Either way nothing has come of it. */
static const char *ask(struct world *w)
{
	static struct shot before, after;

	take(w, &before);
	plan.err = (struct vhca_error)VHCA_ERROR_INIT;
	(void)vhca_engine_plan(w->engine, &plan.wanted, plan.places, &plan.err);
	take(w, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	return plan.err.code;
}

static struct answer claim(struct world *w, const struct vhca_vf_request *vf,
			   enum vhca_origin origin)
{
	struct vhca_claim_request req = {.domain = plan.wanted.uuid, .vf = *vf, .origin = origin};
	struct answer a = {0};

	(void)vhca_strcpy(req.domain_name, sizeof(req.domain_name), plan.wanted.name);
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static const struct vhca_claim *claim_of(const struct world *w, const char *name)
{
	return vhca_model_claim_of(vhca_engine_model(w->engine), &plan.wanted.uuid, name);
}

static void begin(struct world *w)
{
	w->conf.poll_ms = 60000; /* nothing is looked at by itself */
	world_start(w);
	settle_free(w);
}

/* ---- cases ---- */

/* Each VF is behind those before it, which are as good as claimed. */
static void test_claims_get_what_was_planned(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	const struct vhca_vf *places[WORLD_VFS];
	struct world *w = *state;

	w->second_from = 2;
	begin(w);
	begin_plan(w, 0);
	for (unsigned int i = 0; i < WORLD_VFS; i++)
		want(names[i], "0x8001", 0);
	assert_string_equal(ask(w), "");
	memcpy(places, plan.places, sizeof(places));
	assert_ptr_not_equal(places[0]->hca, places[1]->hca);
	for (unsigned int i = 0; i < WORLD_VFS; i++) {
		assert_null(places[i]->claim);
		assert_true(claim(w, &plan.wanted.requests[i], VHCA_ORIGIN_CLAIM).ok);
		assert_ptr_equal(claim_of(w, names[i])->vf, places[i]);
	}
}

/* Nor does it later: no state, no journal, no hardware. */
static void test_nothing_comes_of_it(void **state)
{
	struct world *w = *state;
	struct shot before;

	begin(w);
	take(w, &before);
	begin_plan(w, 0);
	want("ib0", "0x8001", GUID);
	want("ib1", "0x8002", VHCA_GUID_BY_SM);
	assert_string_equal(ask(w), "");
	want("ib2", "0x8001", GUID);
	assert_string_equal(ask(w), "guid_in_use");
	world_settle(w);
	assert_int_equal(commits, before.commits);
	assert_int_equal(w->effects, before.effects);
	assert_memory_equal(w->vfs, before.hardware, sizeof(before.hardware));
	assert_null(first_claim(w));
}

static void test_more_than_there_are(void **state)
{
	struct world *w = *state;

	begin(w);
	begin_plan(w, 0);
	for (unsigned int i = 0; i <= WORLD_VFS; i++)
		want((const char[]){(char)('a' + (char)i), '\0'}, "0x8001", 0);
	assert_string_equal(ask(w), "no_free_vf");
	assert_string_equal(plan.err.msg, "e: no free VF for fabric default: 0 of its 4 VFs are "
					  "free: Device or resource busy");
	assert_non_null(strstr(plan.err.hint, "vhcactl vfs"));
}

/* Each of the two fits alone. */
static void test_room_for_the_keys_of_all(void **state)
{
	struct world *w = *state;

	for (unsigned int i = 0; i < WORLD_KEYS - 1; i++)
		if (!w->port_pkeys[i])
			w->port_pkeys[i] = (uint16_t)(0x8010 + i);
	begin(w);
	begin_plan(w, 0);
	want("ib0", "0x8001 0x8030", 0);
	assert_string_equal(ask(w), "");
	want("ib1", "0x8031", 0);
	assert_string_equal(ask(w), "pkey_table_full");
	assert_non_null(strstr(plan.err.msg, "ib1: port 1 of 0000:01:00.0 has room for 8 P_Keys "
					     "and would need 9"));
	plan.wanted.requests[0] = plan.wanted.requests[1];
	plan.wanted.n_requests = 1;
	assert_string_equal(ask(w), "");
}

static void test_a_guid_has_one_owner(void **state)
{
	struct world *w = *state;

	begin(w);
	begin_plan(w, 0);
	want("ib0", "0x8001", GUID);
	want("ib1", "0x8001", GUID);
	assert_string_equal(ask(w), "guid_in_use");
	assert_non_null(strstr(plan.err.msg, "ib1: GUID 0x0002c90300a1b2c3 belongs to vm0/ib0"));
	plan.wanted.n_requests = 1;
	assert_string_equal(ask(w), "");
	assert_true(claim(w, &plan.wanted.requests[0], VHCA_ORIGIN_CLAIM).ok);
	begin_plan(w, 1);
	want("ib0", "0x8001", GUID);
	assert_string_equal(ask(w), "guid_in_use");
	assert_non_null(strstr(plan.err.msg, "ib0: GUID 0x0002c90300a1b2c3 belongs to vm0/ib0"));
}

static void test_what_a_request_is_refused_for(void **state)
{
	struct world *w = *state;

	begin(w);
	w->conf.allow_default_partition = false;
	begin_plan(w, 0);
	want("ib0", "nonsense", 0);
	assert_string_equal(ask(w), "no_such_partition");
	begin_plan(w, 0);
	want("ib0", "0xffff", 0);
	assert_string_equal(ask(w), "default_partition_denied");
	begin_plan(w, 0);
	want("ib0", "0x8001", 0);
	plan.wanted.requests[0].numa = 7;
	assert_string_equal(ask(w), "no_free_vf");
}

/* What is there is not asked for anew; what is not, is refused. */
static void test_drained_host(void **state)
{
	struct world *w = *state;

	begin(w);
	begin_plan(w, 0);
	want("ib0", "0x8001", 0);
	assert_true(claim(w, &plan.wanted.requests[0], VHCA_ORIGIN_CLAIM).ok);
	vhca_engine_set_drained(w->engine, true);
	assert_string_equal(ask(w), "");
	assert_ptr_equal(plan.places[0], claim_of(w, "ib0")->vf);
	assert_ptr_equal(plan.places[0]->claim, claim_of(w, "ib0"));
	want("ib1", "0x8001", 0);
	assert_string_equal(ask(w), "drained");
	assert_non_null(strstr(plan.err.hint, "vhcactl undrain"));
}

/* It needs neither a VF nor room. */
static void test_a_claim_that_stands_fits(void **state)
{
	static const char *const names[] = {"ib0", "b", "c", "d"};
	struct world *w = *state;

	begin(w);
	begin_plan(w, 0);
	for (unsigned int i = 0; i < WORLD_VFS; i++) {
		want(names[i], "0x8001", 0);
		assert_true(claim(w, &plan.wanted.requests[i], VHCA_ORIGIN_CLAIM).ok);
	}
	assert_string_equal(ask(w), "");
	begin_plan(w, 1);
	want("ib0", "0x8001", 0);
	assert_string_equal(ask(w), "no_free_vf");
}

static bool is_ending(const struct world *w, const void *arg)
{
	(void)arg;
	return w->hung && claim_of(w, "ib0") && vhca_claim_is_ending(claim_of(w, "ib0"));
}

/* A VM that is started again while its VF is being scrubbed; nobody else gets that VF. */
static void test_a_claim_that_ends(void **state)
{
	static const char *const others[] = {"b", "c", "d"};
	struct world *w = *state;
	struct answer a = {0};
	const struct vhca_vf *vf;

	begin(w);
	begin_plan(w, 0);
	want("ib0", "0x8001", GUID);
	assert_true(claim(w, &plan.wanted.requests[0], VHCA_ORIGIN_CLAIM).ok);
	vf = claim_of(w, "ib0")->vf;
	w->fault = WORLD_HANG;
	w->fault_effect = VHCA_EFFECT_SCRUB;
	w->fault_at = w->effects + 1;
	vhca_engine_release(w->engine, (struct vhca_claim *)claim_of(w, "ib0"), true, on_answer,
			    &a);
	assert_true(world_until(w, is_ending, NULL));
	assert_string_equal(ask(w), "");
	assert_ptr_equal(plan.places[0], vf);
	(void)vhca_strcpy(plan.wanted.requests[0].fabric, VHCA_NAME_MAX, "other");
	assert_string_equal(ask(w), "vf_busy");
	(void)vhca_strcpy(plan.wanted.requests[0].fabric, VHCA_NAME_MAX, "default");
	for (unsigned int i = 0; i < 3; i++) {
		want(others[i], "0x8001", 0);
		assert_string_equal(ask(w), "");
		assert_ptr_not_equal(plan.places[i + 1], vf);
	}
	want("e", "0x8001", 0);
	assert_string_equal(ask(w), "no_free_vf");
	plan.wanted.n_requests = 1;
	plan.wanted.requests[0].guid = w->port_guid;
	assert_string_equal(ask(w), "guid_in_use");
	plan.wanted.requests[0].guid = GUID;
	for (unsigned int i = 0; i < WORLD_KEYS; i++)
		if (!w->port_pkeys[i])
			world_set_key(w, i, (uint16_t)(0x8010 + i));
	world_settle(w);
	assert_string_equal(ask(w), "");
	(void)vhca_strcpy(plan.wanted.requests[0].partition,
			  sizeof(plan.wanted.requests[0].partition), "0x8030");
	assert_string_equal(ask(w), "pkey_table_full");
	vhca_error_set(&w->engine->disk, VHCA_ERR_EXHAUSTED, "state_disk", ENOSPC, "full");
	assert_string_equal(ask(w), "state_disk");
	w->engine->disk = (struct vhca_error)VHCA_ERROR_INIT;
	vhca_engine_set_drained(w->engine, true);
	assert_string_equal(ask(w), "drained");
	world_release(w);
	assert_true(world_until(w, answered, &a));
}

static void run(struct world *w, unsigned int i)
{
	(void)world_domain_start(w, i, NULL);
	world_settle(w);
	begin_plan(w, i);
}

/* Of one that does not run here yet they are not known. */
static void test_root_ports_of_a_running_domain(void **state)
{
	struct world *w = *state;

	begin(w);
	run(w, 0);
	w->domains[0].info.root_ports = 2;
	world_look(w, 0);
	world_settle(w);
	want("ib0", "0x8001", 0);
	want("ib1", "0x8001", 0);
	assert_string_equal(ask(w), "");
	want("ib2", "0x8001", 0);
	assert_string_equal(ask(w), "no_root_port");
	assert_non_null(strstr(plan.err.msg, "ib2: domain vm0 has 2 free pcie-root-ports of 2, "
					     "needs 3"));
	plan.wanted.uuid = w->domains[1].info.uuid;
	assert_string_equal(ask(w), "");
}

/* What is still being scrubbed of the same name needs one anew, and those behind it see that. */
static void test_root_ports_behind_a_claim_that_ends(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	begin(w);
	run(w, 0);
	want("ib0", "0x8001", GUID);
	assert_true(claim(w, &plan.wanted.requests[0], VHCA_ORIGIN_CLAIM).ok);
	w->fault = WORLD_HANG;
	w->fault_effect = VHCA_EFFECT_SCRUB;
	w->fault_at = w->effects + 1;
	vhca_engine_release(w->engine, (struct vhca_claim *)claim_of(w, "ib0"), true, on_answer,
			    &a);
	assert_true(world_until(w, is_ending, NULL));
	w->domains[0].info.root_ports = 1;
	world_look(w, 0);
	world_settle(w);
	assert_string_equal(ask(w), "");
	want("ib1", "0x8001", 0);
	assert_string_equal(ask(w), "no_root_port");
	assert_non_null(strstr(plan.err.msg, "ib1: domain vm0 has 1 free pcie-root-ports of 1, "
					     "needs 2"));
	plan.wanted.n_requests = 1;
	w->domains[0].info.root_ports = 0;
	world_look(w, 0);
	world_settle(w);
	assert_string_equal(ask(w), "no_root_port");
	world_release(w);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(ask(w), "no_root_port");
}

/* libvirt is not asked whether the limit is another one by now: that would be an effect. */
static void test_memory_of_a_running_domain(void **state)
{
	struct world *w = *state;

	begin(w);
	run(w, 0);
	w->domains[0].info.memory =
		(struct vhca_guest_memory){.kib = 16 * GIB, .hard_limit_kib = 8 * GIB};
	world_look(w, 0);
	world_settle(w);
	w->domains[0].info.memory.hard_limit_kib = 0; /* virsh memtune: nobody hears of it */
	want("ib0", "0x8001", 0);
	assert_string_equal(ask(w), "hard_limit");
	world_settle(w);
	assert_string_equal(ask(w), "hard_limit");
	world_look(w, 0);
	world_settle(w);
	assert_string_equal(ask(w), "");
}

/* Its memory is pinned by the VF that it has. */
static void test_running_domain_with_a_vf(void **state)
{
	struct world *w = *state;

	begin(w);
	(void)world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	w->domains[0].info.memory =
		(struct vhca_guest_memory){.kib = 16 * GIB, .hard_limit_kib = 8 * GIB};
	world_look(w, 0);
	world_settle(w);
	begin_plan(w, 0);
	want("ib0", "0x8002", 0);
	want("ib1", "0x8001", 0);
	assert_string_equal(ask(w), "");
	assert_ptr_equal(plan.places[0], claim_of(w, "ib0")->vf);
}

static void test_an_unreadable_domain(void **state)
{
	struct world *w = *state;

	begin(w);
	run(w, 0);
	w->domains[0].unreadable = true;
	world_look(w, 0);
	world_settle(w);
	want("ib0", "0x8001", 0);
	assert_string_equal(ask(w), "domain_unreadable");
}

/* It is not known whether the domain runs here. */
static void test_libvirt_is_away(void **state)
{
	struct world *w = *state;

	begin(w);
	run(w, 0);
	want("ib0", "0x8001", 0);
	vhca_engine_virt_lost(w->engine);
	world_settle(w);
	assert_string_equal(ask(w), "");
	begin_plan(w, 1);
	want("ib0", "0x8001", 0);
	assert_string_equal(ask(w), "no_libvirt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_claims_get_what_was_planned),
		TEST(test_nothing_comes_of_it),
		TEST(test_more_than_there_are),
		TEST(test_room_for_the_keys_of_all),
		TEST(test_a_guid_has_one_owner),
		TEST(test_what_a_request_is_refused_for),
		TEST(test_drained_host),
		TEST(test_a_claim_that_stands_fits),
		TEST(test_a_claim_that_ends),
		TEST(test_root_ports_of_a_running_domain),
		TEST(test_root_ports_behind_a_claim_that_ends),
		TEST(test_memory_of_a_running_domain),
		TEST(test_running_domain_with_a_vf),
		TEST(test_an_unreadable_domain),
		TEST(test_libvirt_is_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
