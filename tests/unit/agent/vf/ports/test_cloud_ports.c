// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a second reader found at cloud's ports: who waits is told, and what is answered is kept. */
#include <stdio.h>
#include <string.h>

#include "agent/vf/work.h"
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/ports/cloud_port.h"

static void ignore_answer(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)arg;
	(void)claim;
	(void)err;
}

/* VF 1 is a port of domain 0, which runs. */
static void begin(struct world *w)
{
	struct vhca_claim_request req;

	w->port_pkeys[3] = 0x8003;
	w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[1].bdf;
	world_start(w);
	settle_free(w);
	world_domain_start(w, 0, NULL);
	req = want(w);
	assert_true(put(w, &req).ok);
}

/* Until the move of VF 1 that its guest's end brings is on its way to the disk. */
static void end_guest(struct world *w)
{
	world_domain_stop(w, 0);
	for (unsigned int i = 0; i < 50 && !engine_vf(w, 1)->committing; i++)
		world_round(w, 0);
	assert_true(engine_vf(w, 1)->committing > 0);
}

/* ---- who waits is told ---- */

static void test_partitions_of_an_ejected_vf(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	begin(w);
	attach(w);
	w->vfs[1].group_open = false;
	world_look(w, 0);
	assert_true(world_until(w, is_reserved, NULL));
	vhca_engine_set_partitions(w->engine, port(w), "0x8001", on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(is_reserved(w, NULL));
}

static void test_guest_ends_before_its_partitions_show(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	begin(w);
	attach(w);
	vhca_engine_set_partitions(w->engine, port(w), "0x8001", on_answer, &a);
	world_domain_stop(w, 0);
	assert_true(world_until(w, is_reserved, NULL));
	assert_true(world_until(w, answered, &a));
}

static void test_asked_for_in_the_move_behind_its_guest(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};

	begin(w);
	req = want(w);
	attach(w);
	assert_true(release(w).ok);
	end_guest(w);
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	settle_long(w);
	assert_true(a.ok || strcmp(a.code, "vf_busy") == 0);
}

static void test_released_in_the_move_behind_its_guest(void **state)
{
	struct world *w = *state;

	begin(w);
	attach(w);
	end_guest(w);
	assert_true(release(w).ok);
	settle_long(w);
	assert_null(port(w));
}

/* ---- what is answered is kept ---- */

/* The first list is being programmed while the second is on its way to the disk. */
static void test_answer_is_of_its_own_list(void **state)
{
	struct world *w = *state;
	struct answer a = {0}, b = {0};

	begin(w);
	attach(w);
	w->fault = WORLD_HANG;
	w->fault_effect = VHCA_EFFECT_PROGRAM;
	w->fault_at = w->effects + 1;
	vhca_engine_set_partitions(w->engine, port(w), "0x8001", on_answer, &a);
	for (unsigned int i = 0; i < 300 && !w->hung; i++)
		world_round(w, 10);
	assert_non_null(w->hung);
	vhca_engine_set_partitions(w->engine, port(w), "0x8001 0x8003", on_answer, &b);
	world_release(w);
	assert_true(world_until(w, answered, &b));
	assert_true(b.ok);
	assert_int_equal(w->vfs[1].map[1], 3);
	assert_true(world_until(w, answered, &a));
	world_settle(w);
}

static void test_release_outlives_a_detach_that_was_given_up(void **state)
{
	struct world *w = *state;
	struct answer a;

	for (unsigned int late = 0; late < 2; late++) {
		if (late)
			world_domain_start(w, 0, NULL);
		else
			begin(w);
		if (late) {
			struct vhca_claim_request req = want(w);

			assert_true(put(w, &req).ok);
		}
		attach(w);
		w->deaf_guest = true;
		if (!late)
			assert_true(release(w).ok);
		a = (struct answer){0};
		vhca_engine_release(w->engine, port(w), false, on_answer, &a);
		assert_true(world_until(w, is_detaching, NULL));
		if (late)
			assert_true(release(w).ok);
		port(w)->vf->deadline_ms = vhca_now_ms();
		world_look(w, 0);
		assert_true(world_until(w, answered, &a));
		assert_true(world_until(w, rests_attached, NULL));
		w->deaf_guest = false;
		world_domain_stop(w, 0);
		settle_long(w);
		assert_null(port(w));
	}
}

static void test_refusal_of_the_list_before_counts_no_more(void **state)
{
	struct world *w = *state;
	struct answer first = {0}, a = {0}, b = {0};
	struct vhca_claim_request req;
	struct vhca_sm_binding old;

	w->fenced = true;
	w->conf.sm_timeout_ms = 5000;
	w->port_pkeys[3] = 0x8003;
	w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[1].bdf;
	world_start(w);
	settle_free(w);
	world_domain_start(w, 0, NULL);
	req = want(w);
	vhca_engine_claim_port(w->engine, &req, on_answer, &first);
	world_settle(w);
	vhca_engine_set_partitions(w->engine, port(w), "0x8055", on_answer, &a);
	world_settle(w);
	old = vhca_claim_binding(port(w));
	vhca_engine_set_partitions(w->engine, port(w), "0x8001", on_answer, &b);
	vhca_engine_sm_answer(w->engine, &old, VHCA_SM_REFUSED, "no partition 0x0055", NULL);
	world_settle(w);
	assert_non_null(port(w));
	assert_int_equal(port(w)->identity.n_pkeys, 1);
	old = vhca_claim_binding(port(w));
	vhca_engine_sm_answer(w->engine, &old, VHCA_SM_ACCEPTED, "", NULL);
	assert_true(world_until(w, answered, &b));
	assert_true(b.ok);
}

/* ---- what passes by itself is to be asked for again ---- */

static void test_vf_that_is_being_scrubbed_for_the_next_one(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request other;

	begin(w);
	attach(w);
	assert_true(release(w).ok);
	world_domain_stop(w, 0);
	other = want(w);
	other.domain.b[1] ^= 1;
	assert_string_equal(put(w, &other).code, "vf_busy");
	other.vf.guid++;
	vhca_port_name(other.vf.guid, other.vf.name);
	assert_string_equal(put(w, &other).code, "vf_busy");
	settle_long(w);
	assert_true(put(w, &other).ok);
}

static void test_agent_that_has_seen_no_vf_yet(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[1].bdf;
	world_start(w);
	req = want(w);
	assert_string_equal(put(w, &req).code, "vf_busy");
}

/* ---- nothing is told that is not so ---- */

static void test_reading_of_the_list_before_is_no_alarm(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	begin(w);
	attach(w);
	w->fault = WORLD_HANG;
	w->fault_effect = VHCA_EFFECT_READ;
	w->fault_at = w->effects + 1;
	for (unsigned int i = 0; i < 300 && !w->hung; i++)
		world_round(w, 10);
	assert_non_null(w->hung);
	vhca_engine_set_partitions(w->engine, port(w), "0x8001", on_answer, &a);
	world_release(w);
	assert_true(world_until(w, answered, &a));
	world_settle(w);
	assert_false(world_told(w, "is not what was programmed"));
	assert_int_equal(vhca_engine_model(w->engine)->counters.drifts, 0);
}

/* ---- what changes is told ---- */

static unsigned int count_told(const struct world *w, const char *text)
{
	struct json_object *doc = vhca_events_to_json(w->events, 0, NULL);
	const char *at = json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN);
	unsigned int n = 0;

	while ((at = strstr(at, text))) {
		at += strlen(text);
		n++;
	}
	json_object_put(doc);
	return n;
}

static void test_remembered_release_is_told_once(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;

	begin(w);
	attach(w);
	assert_true(release(w).ok);
	assert_true(release(w).ok);
	assert_int_equal(count_told(w, "is released when it has left its guest"), 1);
	assert_true(world_told(w, "\"name\":\"mac-fa163e123456\""));
	req = want(w);
	assert_true(put(w, &req).ok);
	assert_true(put(w, &req).ok);
	assert_int_equal(count_told(w, "is kept: its release is forgotten"), 1);
}

/* ---- what was reserved for a guest that did not come ---- */

static bool is_free(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_FREE && !vf->committing;
}

/* Until the agent does not say any more that it is busy, as ebrctl asks. */
static struct answer ask_until_idle(struct world *w, const struct vhca_claim_request *req)
{
	struct answer a = put(w, req);

	for (unsigned int i = 0; i < 20 && !a.ok && strcmp(a.code, "vf_busy") == 0; i++) {
		world_settle(w);
		a = put(w, req);
	}
	return a;
}

/* VF 1 is reserved for a port of domain 0, which is not here; VF 2 could be. */
static struct vhca_claim_request begin_elsewhere(struct world *w)
{
	struct vhca_conf_hca *hca = &w->conf.hcas[0];
	struct vhca_claim_request req;

	hca->reserve[hca->n_reserve++] = w->vfs[1].bdf;
	hca->reserve[hca->n_reserve++] = w->vfs[2].bdf;
	world_start(w);
	settle_free(w);
	world_domain_start(w, 0, NULL);
	world_domain_stop(w, 0);
	req = want(w);
	assert_true(put(w, &req).ok);
	assert_true(is_reserved(w, NULL));
	return req;
}

/* Nova does not tell the destination of a copy that failed, and takes another VF the next time. */
static void test_port_is_reserved_with_another_vf(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);
	const unsigned int first = 1;

	req.bdf = w->vfs[2].bdf;
	assert_true(ask_until_idle(w, &req).ok);
	assert_ptr_equal(port(w)->vf, engine_vf(w, 2));
	assert_true(world_until(w, is_free, &first));
}

static void test_reserved_vf_is_another_ports(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	req.vf.guid++;
	vhca_port_name(req.vf.guid, req.vf.name);
	req.domain.b[0] ^= 1;
	assert_true(ask_until_idle(w, &req).ok);
	assert_null(port(w));
	assert_true(engine_vf(w, 1)->claim->identity.guid == GUID + 1);
}

static void test_reservation_stays_where_nothing_is_to_be_had(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	req.bdf = w->vfs[0].bdf; /* in no list */
	assert_string_equal(ask_until_idle(w, &req).code, "exists");
	req.bdf = w->vfs[2].bdf;
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "other");
	assert_false(ask_until_idle(w, &req).ok);
	settle_long(w);
	assert_true(is_reserved(w, NULL));
}

/* The copy is on its way, or the guest is here without its VF. */
static void test_reservation_of_a_guest_that_is_here_stays(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	w->domains[0].incoming = true;
	world_domain_start(w, 0, NULL);
	world_settle(w);
	req.bdf = w->vfs[2].bdf;
	assert_string_equal(ask_until_idle(w, &req).code, "exists");
	assert_ptr_equal(port(w)->vf, engine_vf(w, 1));
}

/* ---- a newer word that is refused ---- */

static void expect_kept(struct world *w, const struct vhca_claim_request *req, const char *code)
{
	assert_string_equal(ask_until_idle(w, req).code, code);
	settle_long(w);
	assert_true(is_reserved(w, NULL));
}

static void test_drained_host_keeps_its_reservations(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	vhca_engine_set_drained(w->engine, true);
	req.bdf = w->vfs[2].bdf;
	expect_kept(w, &req, "drained");
}

static void test_reservation_stays_for_a_vf_that_has_gone(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	w->vfs[2].gone = true;
	world_show_hardware(w);
	world_settle(w);
	req.bdf = w->vfs[2].bdf;
	expect_kept(w, &req, "exists");
}

static void test_reservation_stays_for_a_vf_of_a_stranger(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	world_domain_start(w, 1, NULL);
	world_plug(w, 2, 1, "x");
	settle_long(w);
	assert_int_equal(engine_vf(w, 2)->state, VHCA_VF_UNMANAGED);
	req.bdf = w->vfs[2].bdf;
	expect_kept(w, &req, "exists");
}

/* Whether the guest is here is not known: ebrctl asks again, and is served. */
static void test_newer_word_waits_for_the_list_of_domains(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w);

	w->virt_down = true;
	vhca_engine_virt_lost(w->engine);
	req.bdf = w->vfs[2].bdf;
	expect_kept(w, &req, "vf_busy");
	w->virt_down = false;
	world_sync_domains(w);
	assert_true(ask_until_idle(w, &req).ok);
	assert_ptr_equal(port(w)->vf, engine_vf(w, 2));
}

/* Its guest has just begun to give the VF up. */
static void test_newer_word_waits_for_a_vf_that_is_being_left(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w), other = req;

	world_domain_start(w, 1, NULL);
	other.domain = w->domains[1].info.uuid;
	other.vf.guid++;
	vhca_port_name(other.vf.guid, other.vf.name);
	other.bdf = w->vfs[2].bdf;
	assert_true(put(w, &other).ok);
	world_plug(w, 2, 1, "port");
	settle_long(w);
	assert_int_equal(engine_vf(w, 2)->state, VHCA_VF_ATTACHED);
	req.bdf = other.bdf;
	assert_string_equal(put(w, &req).code, "exists");
	vhca_engine_release_port(w->engine, engine_vf(w, 2)->claim, ignore_answer, NULL);
	assert_string_equal(put(w, &req).code, "vf_busy");
	settle_long(w);
	assert_true(is_reserved(w, NULL)); /* that one may keep it yet */
	world_domain_stop(w, 1);
	assert_true(ask_until_idle(w, &req).ok);
	assert_ptr_equal(port(w)->vf, engine_vf(w, 2));
}

/* ---- a power cut, or a kill, on the way ---- */

static void check_reservations(const struct world *w)
{
	const struct vhca_claim *c, *other;

	TAILQ_FOREACH (c, &vhca_engine_model(w->engine)->claims, link) {
		assert_ptr_equal(c->vf->claim, c);
		TAILQ_FOREACH (other, &vhca_engine_model(w->engine)->claims, link)
			assert_true(other == c || other->identity.guid != c->identity.guid);
	}
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		assert_true(world_clean(w, v));
}

static void ask_and_kill(struct world *w, const struct vhca_claim_request *req, unsigned int rounds)
{
	vhca_engine_claim_port(w->engine, req, ignore_answer, NULL);
	for (unsigned int i = 0; i < rounds; i++) {
		world_round(w, 0);
		check_reservations(w);
	}
	world_kill(w);
	world_start(w);
	check_reservations(w);
	world_settle(w);
}

/* The VF is another port's by then, so the last word of each round ends two reservations. */
static void test_newer_word_outlives_kills(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = begin_elsewhere(w), other = req;

	other.vf.guid++;
	vhca_port_name(other.vf.guid, other.vf.name);
	other.domain.b[0] ^= 1;
	for (unsigned int rounds = 0; rounds < 12; rounds++) {
		const struct vhca_bdf had = req.bdf;

		other.bdf = w->vfs[vhca_bdf_cmp(had, w->vfs[1].bdf) == 0 ? 2 : 1].bdf;
		assert_true(ask_until_idle(w, &other).ok);
		req.bdf = other.bdf;
		ask_and_kill(w, &req, rounds);
		ask_and_kill(w, &req, rounds);
		assert_true(ask_until_idle(w, &req).ok);
		assert_true(vhca_bdf_cmp(port(w)->vf->bdf, req.bdf) == 0);
		world_settle(w);
		assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS - 1);
		check_reservations(w);
		world_check(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_partitions_of_an_ejected_vf),
		TEST(test_guest_ends_before_its_partitions_show),
		TEST(test_asked_for_in_the_move_behind_its_guest),
		TEST(test_released_in_the_move_behind_its_guest),
		TEST(test_answer_is_of_its_own_list),
		TEST(test_release_outlives_a_detach_that_was_given_up),
		TEST(test_refusal_of_the_list_before_counts_no_more),
		TEST(test_vf_that_is_being_scrubbed_for_the_next_one),
		TEST(test_agent_that_has_seen_no_vf_yet),
		TEST(test_reading_of_the_list_before_is_no_alarm),
		TEST(test_remembered_release_is_told_once),
		TEST(test_port_is_reserved_with_another_vf),
		TEST(test_reserved_vf_is_another_ports),
		TEST(test_reservation_stays_where_nothing_is_to_be_had),
		TEST(test_reservation_of_a_guest_that_is_here_stays),
		TEST(test_drained_host_keeps_its_reservations),
		TEST(test_reservation_stays_for_a_vf_that_has_gone),
		TEST(test_reservation_stays_for_a_vf_of_a_stranger),
		TEST(test_newer_word_waits_for_the_list_of_domains),
		TEST(test_newer_word_waits_for_a_vf_that_is_being_left),
		TEST(test_newer_word_outlives_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
