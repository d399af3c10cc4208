// SPDX-License-Identifier: LGPL-2.1-or-later
/* A cloud's port on mlx5, where only the SM has its partitions. */
#include <errno.h>
#include <string.h>

#include "agent/api/views.h"
#include "sm/outbox.h"
#include "tests/sim/host/world_mlx5.h"
#include "tests/unit/agent/vf/ports/cloud_port.h"

static int setup_mlx5(void **state)
{
	static struct world_mlx5 m;
	int r = setup(state);

	world_mlx5_init(*state, &m);
	return r;
}

static int teardown_mlx5(void **state)
{
	world_mlx5_done(*state);
	return teardown(state);
}

static void say(struct world *w, enum vhca_sm_answer answer, const char *why)
{
	struct vhca_sm_binding b = vhca_claim_binding(port(w));

	vhca_engine_sm_answer(w->engine, &b, answer, why, NULL);
}

static bool awaits_sm(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return vf->state == VHCA_VF_CLAIMED && !vf->committing &&
	       strstr(vf->reason, "waits for the SM");
}

#define PATIENT_MS 60000 /* beyond what a busy machine takes */

/* The port's domain runs, and has it. Whoever sets partitions waits so long for the SM. */
static void begin(struct world *w, uint32_t word_ms)
{
	struct vhca_claim_request req;
	struct answer a = {0};

	w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[1].bdf;
	w->conf.sm_timeout_ms = 60000;
	w->word_ms = word_ms;
	world_start(w);
	settle_free(w);
	world_domain_start(w, 0, NULL);
	req = want(w);
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, awaits_sm, NULL));
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	attach(w);
}

static size_t count_missing(const struct world *w)
{
	struct json_object *o = api_view_vf(engine_vf(w, 1), true), *list;
	size_t n;

	assert_true(json_object_object_get_ex(o, "missing", &list));
	n = json_object_array_length(list);
	json_object_put(o);
	return n;
}

static bool was_read(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 1)->hw_known;
}

static bool lacks_nothing(const struct world *w, const void *arg)
{
	(void)arg;
	return count_missing(w) == 0;
}

static void ask(struct world *w, const char *partitions, struct answer *ret)
{
	*ret = (struct answer){0};
	vhca_engine_set_partitions(w->engine, port(w), partitions, on_answer, ret);
	world_settle(w);
}

static enum vhca_link_policy link_of(const struct world *w)
{
	return w->mlx5->kernel.vfs[1].policy;
}

static bool link_is_up(const struct world *w, const void *arg)
{
	(void)arg;
	return link_of(w) == VHCA_LINK_AUTO;
}

/* What the SM gives to every port is not the cloud's to give. */
static void test_link_is_down_without_a_partition(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, PATIENT_MS);
	assert_true(w->vfs[1].guid == GUID);
	assert_int_equal(link_of(w), VHCA_LINK_DOWN);
	world_look(w, 0);
	world_settle(w);
	assert_false(world_told(w, "is not what was programmed"));
	ask(w, "0x8011", &a);
	assert_int_equal(link_of(w), VHCA_LINK_DOWN);
	say(w, VHCA_SM_REFUSED, "no partition 0x0011");
	world_settle(w);
	assert_int_equal(link_of(w), VHCA_LINK_DOWN);
	ask(w, "0x8012", &a);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_int_equal(link_of(w), VHCA_LINK_AUTO);
	ask(w, "0x8013", &a); /* its guest goes on until the SM has said so */
	world_settle(w);
	assert_int_equal(link_of(w), VHCA_LINK_AUTO);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	ask(w, "", &a);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	assert_int_equal(link_of(w), VHCA_LINK_AUTO);
}

/* What has been refused waits for a yes also when another agent has begun. */
static void test_link_outlives_the_agent(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, PATIENT_MS);
	ask(w, "0x8011", &a);
	say(w, VHCA_SM_REFUSED, "no partition 0x0011");
	world_settle(w);
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, was_read, NULL));
	world_settle(w);
	assert_int_equal(link_of(w), VHCA_LINK_DOWN);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, link_is_up, NULL));
}

static void test_partitions_are_answered_by_the_sm(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, PATIENT_MS);
	ask(w, "0x8011", &a);
	assert_false(a.called);
	assert_int_equal(count_missing(w), 1);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_int_equal(count_missing(w), 0);
	ask(w, "0x8011", &a); /* the same again */
	assert_true(a.called && a.ok);
	say(w, VHCA_SM_RETRY, "no route to host"); /* what was accepted is not doubted */
	ask(w, "0x8011", &a);
	assert_true(a.called && a.ok);
	assert_int_equal(count_missing(w), 0);
}

/* When all is written down. */
static void restart(struct world *w)
{
	world_settle(w);
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, rests_attached, NULL));
	world_look(w, 0);
	assert_true(world_until(w, was_read, NULL));
}

static void test_partitions_are_refused_by_the_sm(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, PATIENT_MS);
	ask(w, "0x8011 0x8012", &a);
	say(w, VHCA_SM_REFUSED, "no partition 0x0012");
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "sm_refused");
	assert_non_null(strstr(a.msg, "no partition 0x0012"));
	assert_int_equal(count_missing(w), 2);
	ask(w, "0x8011 0x8012", &a); /* the same again: the SM is asked anew */
	assert_false(a.called);
	assert_int_equal(count_missing(w), 2);
	say(w, VHCA_SM_REFUSED, "no partition 0x0012");
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "sm_refused");
	ask(w, "0x8011 0x8012", &a);
	assert_false(a.called);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
}

/* A no is remembered, and so is a yes: an SM that is away takes nothing back. */
static void test_killed_after_the_sm_has_said_so(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, PATIENT_MS);
	ask(w, "0x8011", &a);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	restart(w);
	assert_int_equal(count_missing(w), 0);
	ask(w, "0x8012", &a);
	say(w, VHCA_SM_REFUSED, "no partition 0x0012");
	assert_true(world_until(w, answered, &a));
	restart(w);
	assert_int_equal(count_missing(w), 1);
	assert_int_equal(link_of(w), VHCA_LINK_AUTO);
	say(w, VHCA_SM_RETRY, "no route to host");
	restart(w);
	assert_int_equal(count_missing(w), 1);
	ask(w, "0x8012", &a);
	assert_false(a.called);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	restart(w);
	assert_int_equal(count_missing(w), 0);
}

/* Whoever waits has an answer in time, and the SM is told all the same. */
static void test_silent_sm(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, 50);
	ask(w, "0x8011", &a);
	say(w, VHCA_SM_RETRY, "connection refused");
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "sm_silent");
	assert_int_equal(port(w)->identity.n_pkeys, 1);
	assert_int_equal(count_missing(w), 1);
	ask(w, "0x8012", &a); /* of this one it says nothing at all */
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "sm_silent");
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, lacks_nothing, NULL));
	ask(w, "0x8012", &a);
	assert_true(a.called && a.ok);
}

static struct vhca_outbox *deaf; /* its reports do not leave the host */

static int send_no_binding(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	(void)b;
	(void)ret;
	return -EAGAIN;
}

static int send_no_members(const struct vhca_sm_members *m, struct vhca_sm_request *ret)
{
	(void)m;
	(void)ret;
	return -EAGAIN;
}

static void open_deaf(struct world *w)
{
	static const char *const urls[] = {"http://127.0.0.1:1"};
	static struct vhca_sm_ops ops;
	const struct vhca_outbox_conf conf = {.ops = &ops, .urls = urls, .n_urls = 1};
	struct vhca_error err = VHCA_ERROR_INIT;

	ops = vhca_sm_vhcasm;
	ops.binding_request = send_no_binding;
	ops.members_request = send_no_members;
	assert_int_equal(vhca_outbox_new(&conf, w->loop, w->store, NULL, vhca_engine_sm_answer,
					 w->engine, &deaf, &err),
			 0);
	vhca_engine_set_outbox(w->engine, deaf);
}

static void close_deaf(struct world *w)
{
	(void)w;
	deaf = vhca_outbox_free(deaf);
}

/* Its report is in the outbox still when the agent is killed. */
static void test_killed_before_the_sm_has_said_so(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, 50);
	open_deaf(w);
	w->started = open_deaf;
	w->stopping = close_deaf;
	ask(w, "0x8011", &a);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "sm_silent");
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, rests_attached, NULL));
	world_look(w, 0);
	assert_true(world_until(w, was_read, NULL));
	assert_int_equal(count_missing(w), 1);
	say(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, lacks_nothing, NULL));
}

/* Its guest goes while somebody waits. */
static void test_guest_ends_meanwhile(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, PATIENT_MS);
	ask(w, "0x8011", &a);
	world_domain_stop(w, 0);
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "vf_busy");
	assert_true(world_until(w, is_reserved, NULL));
	ask(w, "0x8011 0x8012", &a);
	assert_true(a.called && a.ok);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup_mlx5, teardown_mlx5)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_link_is_down_without_a_partition),  T(test_link_outlives_the_agent),
		T(test_partitions_are_answered_by_the_sm), T(test_partitions_are_refused_by_the_sm),
		T(test_killed_after_the_sm_has_said_so),   T(test_silent_sm),
		T(test_killed_before_the_sm_has_said_so),  T(test_guest_ends_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
