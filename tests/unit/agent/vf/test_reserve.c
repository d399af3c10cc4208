// SPDX-License-Identifier: LGPL-2.1-or-later
/* VFs that are kept for whoever names them, and claims without a partition. */
#include <errno.h>
#include <stdio.h>

#include "pkey/identity.h"
#include "tests/unit/agent/vf/engine_world.h"

#define GUID UINT64_C(0xfa163e0000123456)

static void reserve(struct world *w, unsigned int v)
{
	struct vhca_conf_hca *hca = &w->conf.hcas[0];

	hca->reserve[hca->n_reserve++] = w->vfs[v].bdf;
}

static void begin(struct world *w)
{
	world_start(w);
	settle_free(w);
}

static struct vhca_claim_request want(const struct world *w, unsigned int v)
{
	struct vhca_claim_request req = {
		.origin = VHCA_ORIGIN_CLAIM,
		.domain = w->domains[0].info.uuid,
		.domain_name = "vm0",
		.vf = {.numa = -1, .name = "mac-fa163e123456", .fabric = "default", .guid = GUID},
		.has_bdf = true,
		.bdf = w->vfs[v].bdf,
		.no_partition = true,
	};

	req.domain.b[0] = 0x55;
	return req;
}

/* A port of domain 0, which runs. */
static struct vhca_claim_request want_port(struct world *w, unsigned int v)
{
	struct vhca_claim_request req;

	begin(w);
	reserve(w, v);
	world_domain_start(w, 0, NULL);
	req = want(w, v);
	req.domain = w->domains[0].info.uuid;
	return req;
}

static struct answer claim(struct world *w, const struct vhca_claim_request *req)
{
	struct answer a = {0};

	vhca_engine_claim(w->engine, req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static void test_first_fit_takes_none(void **state)
{
	struct world *w = *state;

	for (unsigned int v = 0; v < WORLD_VFS; v++)
		reserve(w, v);
	begin(w);
	world_domain_start(w, 0, "0x8001");
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS);
	assert_true(world_told(w, "0 of its 0 VFs are free; 4 more are reserved"));
	/* The configuration gives one back. */
	w->conf.hcas[0].n_reserve--;
	vhca_engine_set_conf(w->engine, &w->conf);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(world_vf_of(w, 0, "ib0"), WORLD_VFS - 1);
}

static void test_claim_by_address_shows_no_partition(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	const struct vhca_vf *vf;

	reserve(w, 1);
	begin(w);
	req = want(w, 1);
	assert_true(claim(w, &req).ok);
	vf = engine_vf(w, 1);
	assert_int_equal(vf->state, VHCA_VF_PROGRAMMED);
	assert_true(vf->hw.requested == GUID);
	for (unsigned int i = 0; i < vf->hw.n_virtual; i++)
		assert_int_equal(vf->hw.map[i], VHCA_PKEY_UNMAPPED);
}

static void test_refusals(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	reserve(w, 1);
	reserve(w, 2);
	begin(w);
	req = want(w, 0);
	assert_string_equal(claim(w, &req).code, "vf_not_reserved");
	req.bdf.bus ^= 0x40;
	assert_string_equal(claim(w, &req).code, "no_such_vf");
	req = want(w, 1);
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "other");
	assert_string_equal(claim(w, &req).code, "wrong_fabric");
	assert_null(first_claim(w));
	req = want(w, 1);
	assert_true(claim(w, &req).ok);
	req.vf.guid++;
	req.domain.b[1] ^= 1;
	assert_string_equal(claim(w, &req).code, "vf_not_free");
	req = want(w, 2);
	req.domain.b[1] ^= 1;
	assert_string_equal(claim(w, &req).code, "guid_in_use");
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS - 1);
}

/* Who names a partition may name any VF that is free, as ever, and a reserved one as well. */
static void test_address_with_a_partition(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	reserve(w, 1);
	begin(w);
	for (unsigned int v = 0; v < 2; v++) {
		req = want(w, v);
		req.no_partition = false;
		req.vf.guid += v;
		(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib%u", v);
		(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
		assert_true(claim(w, &req).ok);
		assert_int_equal(engine_vf(w, v)->state, VHCA_VF_PROGRAMMED);
	}
}

static bool is_programmed(const struct world *w, const void *arg)
{
	return engine_vf(w, *(const unsigned int *)arg)->state == VHCA_VF_PROGRAMMED &&
	       !engine_vf(w, *(const unsigned int *)arg)->committing;
}

/* Killed after any number of rounds: the claim is there with all that it is, or not at all. */
static void test_outlives_the_agent(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a;

	reserve(w, 1);
	begin(w);
	for (unsigned int rounds = 0; rounds < 12; rounds++) {
		a = (struct answer){0};
		req = want(w, 1);
		vhca_engine_claim(w->engine, &req, on_answer, &a);
		kill_after(w, rounds);
		world_settle(w);
		if (!first_claim(w))
			assert_true(claim(w, &req).ok);
		assert_true(world_until(w, is_programmed, &one));
		assert_true(first_claim(w)->identity.guid == GUID);
		assert_int_equal(first_claim(w)->identity.n_pkeys, 0);
		assert_int_equal(engine_vf(w, 1)->hw.map[0], VHCA_PKEY_UNMAPPED);
		vhca_engine_drop(w->engine, engine_vf(w, 1)->claim);
		assert_true(world_until(w, all_free, NULL));
		world_check(w);
	}
}

/* ---- ports of a cloud ---- */

static unsigned int programmed; /* times */

static void on_programming(struct world *w, uint64_t guid, uint64_t epoch)
{
	(void)w, (void)epoch;
	assert_true(guid == GUID);
	programmed++;
}

static struct answer ask_port(struct world *w, const struct vhca_claim_request *req)
{
	struct answer a = {0};

	vhca_engine_claim_port(w->engine, req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static void test_port_that_is_claimed_is_not_written_again(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct vhca_uuid id;

	req = want_port(w, 1);
	programmed = 0;
	w->programming = on_programming;
	assert_true(ask_port(w, &req).ok);
	assert_int_equal(programmed, 1);
	id = first_claim(w)->id;
	assert_true(ask_port(w, &req).ok);
	world_settle(w);
	assert_int_equal(programmed, 1);
	world_kill(w);
	world_start(w);
	world_settle(w); /* an agent that starts verifies what its VFs show */
	programmed = 0;
	assert_true(ask_port(w, &req).ok);
	world_settle(w);
	assert_int_equal(programmed, 0);
	assert_true(vhca_uuid_equal(&first_claim(w)->id, &id));
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
}

/* Two callers of one port get one claim, and both wait for it. */
static void test_port_is_asked_for_twice_at_once(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0}, b = {0};

	req = want_port(w, 1);
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	vhca_engine_claim_port(w->engine, &req, on_answer, &b);
	assert_true(world_until(w, answered, &a));
	assert_true(world_until(w, answered, &b));
	assert_true(a.ok && b.ok);
	assert_int_equal(count(w, VHCA_VF_PROGRAMMED), 1);
}

static void test_port_of_others(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	req = want_port(w, 1);
	reserve(w, 2);
	assert_true(ask_port(w, &req).ok);
	req.bdf = w->vfs[2].bdf;
	assert_string_equal(ask_port(w, &req).code, "exists");
	req.domain.b[1] ^= 1;
	assert_string_equal(ask_port(w, &req).code, "guid_in_use");
	req.bdf = w->vfs[1].bdf;
	req.vf.guid++;
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "other");
	assert_string_equal(ask_port(w, &req).code, "vf_not_free");
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_PROGRAMMED), 1);
}

static void test_port_whose_claim_ends_is_to_be_asked_for_again(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	req = want_port(w, 1);
	assert_true(ask_port(w, &req).ok);
	vhca_engine_drop(w->engine, engine_vf(w, 1)->claim);
	assert_string_equal(ask_port(w, &req).code, "vf_busy");
	assert_true(world_until(w, all_free, NULL));
	assert_true(ask_port(w, &req).ok);
}

static bool is_claimed(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_CLAIMED && !vf->committing;
}

/* The cloud has put that VF into the domain's XML; another one would be nobody's. */
static void test_port_takes_no_other_vf(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	req = want_port(w, 1);
	w->broken_effect = VHCA_EFFECT_PROGRAM;
	w->broken_vfs = 1u << 1;
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, is_claimed, &one));
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_false(ask_port(w, &req).ok);
	world_settle(w);
	assert_true(!first_claim(w) || first_claim(w)->vf == engine_vf(w, 1));
	assert_int_equal(count(w, VHCA_VF_PROGRAMMED), 0);
}

static void test_port_with_a_partition_is_found(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req, other;

	other = req = want_port(w, 1);
	other.no_partition = false;
	(void)snprintf(other.vf.partition, sizeof(other.vf.partition), "0x8001");
	assert_true(claim(w, &other).ok);
	assert_true(ask_port(w, &req).ok);
	assert_int_equal(first_claim(w)->identity.n_pkeys, 1);
}

/* The guest is on its way, and another host may have its address by now. */
static void test_port_that_migrates_is_to_be_asked_for_again(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	req = want_port(w, 1);
	assert_true(ask_port(w, &req).ok);
	engine_vf(w, 1)->claim->migrating = true;
	assert_string_equal(ask_port(w, &req).code, "vf_busy");
	engine_vf(w, 1)->claim->migrating = false;
	assert_true(ask_port(w, &req).ok);
}

static bool is_attached(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_ATTACHED && !vf->committing;
}

static bool is_reserved(const struct world *w, const void *arg)
{
	return is_claimed(w, arg) &&
	       engine_vf(w, *(const unsigned int *)arg)->claim->custody == VHCA_CUSTODY_RESERVED;
}

/* Nova asks for its end also when the guest has kept the VF, and claims it again then. */
static void test_port_in_its_guest(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	req = want_port(w, 1);
	programmed = 0;
	w->programming = on_programming;
	assert_true(ask_port(w, &req).ok);
	world_plug(w, 1, 0, "port");
	assert_true(world_until(w, is_attached, &one));
	vhca_engine_release_port(w->engine, engine_vf(w, 1)->claim, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(is_attached(w, &one));
	assert_int_equal(first_claim(w)->end, VHCA_END_WHEN_LEFT);
	assert_true(ask_port(w, &req).ok);
	assert_int_equal(first_claim(w)->end, VHCA_END_NONE);
	world_settle(w);
	assert_int_equal(programmed, 1);
	assert_true(engine_vf(w, 1)->hw.requested == GUID);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_ATTACHED);
	world_domain_stop(w, 0);
	assert_true(world_until(w, is_reserved, &one));
	world_check(w);
}

/* Killed after any number of rounds: what was answered is remembered, and done with the device's
 * end; its guest is not asked for it. */
static void test_release_of_an_attached_port_is_remembered(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);
	struct answer a;

	for (unsigned int rounds = 0; rounds < 6; rounds++) {
		a = (struct answer){0};
		world_domain_start(w, 0, NULL);
		assert_true(ask_port(w, &req).ok);
		world_plug(w, 1, 0, "port");
		assert_true(world_until(w, is_attached, &one));
		vhca_engine_release_port(w->engine, engine_vf(w, 1)->claim, on_answer, &a);
		kill_after(w, rounds);
		world_settle(w);
		assert_true(is_attached(w, &one));
		if (!a.ok) {
			a = (struct answer){0};
			vhca_engine_release_port(w->engine, engine_vf(w, 1)->claim, on_answer, &a);
			assert_true(world_until(w, answered, &a));
		}
		assert_int_equal(first_claim(w)->end, VHCA_END_WHEN_LEFT);
		world_domain_stop(w, 0);
		assert_true(world_until(w, nothing_attached, NULL));
		world_check(w);
	}
}

/* ---- ports whose domain is not here yet ---- */

static void stop(struct world *w)
{
	world_domain_stop(w, 0);
	world_settle(w);
}

/* Nova plugs before the domain begins. */
static void test_port_without_a_domain_is_reserved(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	stop(w);
	programmed = 0;
	w->programming = on_programming;
	assert_true(ask_port(w, &req).ok);
	assert_true(is_reserved(w, &one));
	assert_true(ask_port(w, &req).ok);
	world_settle(w);
	assert_true(is_reserved(w, &one) && world_clean(w, 1));
	assert_int_equal(programmed, 0);
	world_domain_start(w, 0, NULL);
	assert_true(world_until(w, is_programmed, &one));
	assert_int_equal(programmed, 1);
	assert_true(ask_port(w, &req).ok);
	assert_true(engine_vf(w, 1)->hw.requested == GUID);
}

/* The source's guest has the address until the one that is coming in runs here. */
static void test_port_of_a_guest_on_its_way_is_reserved(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	world_incoming(w, 0, true);
	assert_true(ask_port(w, &req).ok);
	world_settle(w);
	assert_true(is_reserved(w, &one) && world_clean(w, 1));
	world_incoming(w, 0, false);
	assert_true(world_until(w, is_programmed, &one));
}

static void test_reserved_port_is_released(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);
	struct answer a = {0};

	stop(w);
	assert_true(ask_port(w, &req).ok);
	vhca_engine_release(w->engine, engine_vf(w, 1)->claim, true, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(all_free(w, NULL));
}

/* Killed after any number of rounds: reserved or not claimed, and no GUID shows too early. */
static void test_reservation_outlives_the_agent(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);
	struct answer a;

	for (unsigned int rounds = 0; rounds < 12; rounds++) {
		stop(w);
		a = (struct answer){0};
		vhca_engine_claim_port(w->engine, &req, on_answer, &a);
		for (unsigned int i = 0; i < rounds; i++)
			world_round(w, 0);
		world_kill(w);
		assert_true(world_clean(w, 1));
		world_start(w);
		assert_true(ask_port(w, &req).ok);
		assert_true(is_reserved(w, &one) && world_clean(w, 1));
		world_domain_start(w, 0, NULL);
		kill_after(w, rounds);
		assert_true(world_until(w, is_programmed, &one));
		vhca_engine_drop(w->engine, engine_vf(w, 1)->claim);
		assert_true(world_until(w, all_free, NULL));
		world_check(w);
	}
}

static int ask_hook(struct world *w, const struct vhca_claim_request *req)
{
	struct vhca_hook_request hook = {.op = "prepare",
					 .subop = "begin",
					 .has_uuid = true,
					 .uuid = req->domain,
					 .n_hostdevs = 1,
					 .hostdevs = {req->bdf}};
	struct vhca_error err = VHCA_ERROR_INIT;

	return vhca_engine_hook(w->engine, &hook, &err);
}

/* The domain is held until its VF is programmed. */
static void test_hook_begins_a_reserved_port(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1), other;

	stop(w);
	assert_true(ask_port(w, &req).ok);
	other = req;
	other.domain.b[1] ^= 1;
	assert_int_not_equal(ask_hook(w, &other), 0);
	assert_int_not_equal(ask_hook(w, &other), -EINPROGRESS);
	assert_true(is_reserved(w, &one));
	assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	assert_true(world_until(w, is_programmed, &one));
	assert_int_equal(ask_hook(w, &req), 0);
	assert_true(engine_vf(w, 1)->hw.requested == GUID);
	/* libvirt shows what it has not started yet. */
	world_domain_start(w, 0, NULL);
	world_plug(w, 1, 0, "port");
	assert_true(world_until(w, is_attached, &one));
	assert_int_equal(ask_hook(w, &req), 0);
}

/* Taken back while the domain waits for it. */
static void test_released_port_begins_no_more(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	stop(w);
	assert_true(ask_port(w, &req).ok);
	assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	assert_true(world_until(w, is_programmed, &one));
	assert_int_equal(ask_hook(w, &req), 0);
	vhca_engine_drop(w->engine, engine_vf(w, 1)->claim);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	assert_int_equal(ask_hook(w, &req), -EIO);
	assert_true(world_until(w, all_free, NULL));
}

/* That its VF is to be scrubbed behind its last run may not be in the journal yet. */
static void test_domain_begins_behind_its_end(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	assert_true(ask_port(w, &req).ok);
	assert_true(world_until(w, is_programmed, &one));
	world_domain_stop(w, 0);
	for (unsigned int i = 0; i < 1000 && !engine_vf(w, 1)->committing; i++)
		world_round(w, 0);
	assert_true(engine_vf(w, 1)->committing);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
	assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	assert_true(world_until(w, is_reserved, &one));
	assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	assert_true(world_until(w, is_programmed, &one));
	assert_int_equal(ask_hook(w, &req), 0);
}

/* It takes no VF that a domain begins with, nor is it refused for one that could not begin. */
static void test_newer_word_for_a_port_that_begins(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1), newer;

	reserve(w, 2);
	stop(w);
	assert_true(ask_port(w, &req).ok);
	newer = req;
	newer.bdf = w->vfs[2].bdf;
	w->vfs[1].gone = true;
	world_show_hardware(w);
	assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	w->vfs[1].gone = false;
	world_show_hardware(w);
	world_settle(w);
	assert_string_equal(ask_port(w, &newer).code, "vf_busy");
	world_settle(w);
	assert_true(ask_port(w, &newer).ok);
	assert_ptr_equal(first_claim(w)->vf, engine_vf(w, 2));
	assert_int_equal(ask_hook(w, &newer), -EINPROGRESS);
	assert_string_equal(ask_port(w, &req).code, "exists");
	world_settle(w);
	assert_string_equal(ask_port(w, &req).code, "exists");
	assert_int_equal(ask_hook(w, &newer), 0);
}

static void say(struct world *w, enum vhca_sm_answer answer)
{
	struct vhca_sm_binding b = vhca_claim_binding(first_claim(w));

	vhca_engine_sm_answer(w->engine, &b, answer, "another port has it", NULL);
	world_settle(w);
}

static void test_port_that_is_elsewhere_is_held_back(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	w->fenced = true;
	req = want_port(w, 1);
	programmed = 0;
	w->programming = on_programming;
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	world_settle(w);
	say(w, VHCA_SM_SUPERSEDED);
	assert_true(is_claimed(w, &one) && world_clean(w, 1) && !a.called);
	assert_int_equal(vhca_claim_awaits(first_claim(w)), VHCA_AWAITS_SM);
	say(w, VHCA_SM_RETRY); /* an SM that is silent now has named another owner */
	assert_true(is_claimed(w, &one) && world_clean(w, 1) && !a.called);
	assert_int_equal(vhca_claim_awaits(first_claim(w)), VHCA_AWAITS_SM);
	assert_int_equal(programmed, 0);
	say(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, answered, &a));
	assert_int_equal(vhca_claim_awaits(first_claim(w)), VHCA_AWAITS_NOTHING);
	assert_true(a.ok && is_programmed(w, &one));
}

/* The agent that was told so is killed, and the next one finds an SM that does not answer. */
static void test_port_that_was_held_back_before_a_restart(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	w->fenced = true;
	req = want_port(w, 1);
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	world_settle(w);
	say(w, VHCA_SM_SUPERSEDED);
	world_kill(w);
	world_start(w);
	for (unsigned int i = 0; i < 5; i++)
		world_settle(w); /* longer than the SM is waited for */
	assert_true(is_claimed(w, &one) && world_clean(w, 1));
	say(w, VHCA_SM_RETRY);
	assert_true(is_claimed(w, &one) && world_clean(w, 1));
	say(w, VHCA_SM_ACCEPTED);
	assert_true(world_until(w, is_programmed, &one));
}

/* The guest may run elsewhere by now, and the cloud plugs whatever begins here again. */
static void test_port_ends_with_the_boot(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	for (unsigned int reserved = 0; reserved < 2; reserved++) {
		if (reserved)
			stop(w);
		else
			world_domain_start(w, 0, NULL);
		assert_true(ask_port(w, &req).ok);
		world_kill(w);
		world_reboot(w);
		world_start(w);
		assert_true(world_until(w, nothing_attached, NULL));
		world_check(w);
	}
}

/* ---- ports whose domain ends and begins ---- */

static void attach(struct world *w, const struct vhca_claim_request *req)
{
	assert_true(ask_port(w, req).ok);
	world_plug(w, 1, 0, "port");
	assert_true(world_until(w, is_attached, &one));
}

static bool shows_guid(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 1)->hw.requested == GUID;
}

/* Killed after any number of rounds of each way, which are but those of a life without a kill. */
static void test_port_outlives_its_guest(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);
	struct vhca_uuid id;

	attach(w, &req);
	id = first_claim(w)->id;
	for (unsigned int rounds = 0; rounds < 12; rounds++) {
		world_domain_stop(w, 0);
		kill_after(w, rounds);
		assert_true(world_until(w, is_reserved, &one));
		world_settle(w);
		assert_true(is_reserved(w, &one) && world_clean(w, 1));
		world_domain_start(w, 0, NULL);
		kill_after(w, rounds);
		assert_true(world_until(w, is_programmed, &one));
		assert_true(vhca_uuid_equal(&first_claim(w)->id, &id));
		attach(w, &req);
		assert_true(world_until(w, shows_guid, NULL)); /* proven anew behind the restart */
		world_check(w);
	}
}

/* Rebooted hard: libvirt begins the domain before the agent has seen its end. */
static void test_hook_waits_for_the_scrub_of_the_last_run(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	attach(w, &req);
	assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	world_domain_stop(w, 0);
	for (unsigned int i = 0; i < 1000 && !is_programmed(w, &one); i++) {
		world_round(w, 1);
		if (!is_programmed(w, &one))
			assert_int_equal(ask_hook(w, &req), -EINPROGRESS);
	}
	assert_int_equal(ask_hook(w, &req), 0);
	assert_true(engine_vf(w, 1)->hw.requested == GUID);
}

/* The source of a live migration: no GUID on a VF that is plugged out, until it is asked for. */
static void test_unplugged_port_shows_nothing(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	attach(w, &req);
	w->vfs[1].group_open = false;
	world_look(w, 0);
	assert_true(world_until(w, is_reserved, &one));
	world_settle(w);
	assert_true(is_reserved(w, &one) && world_clean(w, 1));
	attach(w, &req);
	assert_true(engine_vf(w, 1)->hw.requested == GUID);
}

/* Its domain ends before it was plugged in. */
static void test_programmed_port_is_reserved_with_the_end(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = want_port(w, 1);

	assert_true(ask_port(w, &req).ok);
	assert_true(is_programmed(w, &one));
	world_domain_stop(w, 0);
	assert_true(world_until(w, is_reserved, &one));
	assert_true(world_clean(w, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_fit_takes_none),
		TEST(test_claim_by_address_shows_no_partition),
		TEST(test_refusals),
		TEST(test_address_with_a_partition),
		TEST(test_outlives_the_agent),
		TEST(test_port_that_is_claimed_is_not_written_again),
		TEST(test_port_is_asked_for_twice_at_once),
		TEST(test_port_of_others),
		TEST(test_port_whose_claim_ends_is_to_be_asked_for_again),
		TEST(test_port_takes_no_other_vf),
		TEST(test_port_with_a_partition_is_found),
		TEST(test_port_that_migrates_is_to_be_asked_for_again),
		TEST(test_port_in_its_guest),
		TEST(test_release_of_an_attached_port_is_remembered),
		TEST(test_port_without_a_domain_is_reserved),
		TEST(test_port_of_a_guest_on_its_way_is_reserved),
		TEST(test_reserved_port_is_released),
		TEST(test_reservation_outlives_the_agent),
		TEST(test_hook_begins_a_reserved_port),
		TEST(test_released_port_begins_no_more),
		TEST(test_domain_begins_behind_its_end),
		TEST(test_newer_word_for_a_port_that_begins),
		TEST(test_port_that_is_elsewhere_is_held_back),
		TEST(test_port_that_was_held_back_before_a_restart),
		TEST(test_port_ends_with_the_boot),
		TEST(test_port_outlives_its_guest),
		TEST(test_hook_waits_for_the_scrub_of_the_last_run),
		TEST(test_unplugged_port_shows_nothing),
		TEST(test_programmed_port_is_reserved_with_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
