/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outbox with its real store and HTTP client against a false SM in this process; one loop drives all of it.
 */
#include "sm/outbox.h"

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "tests/unit/false_sm.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VGUID(i)    (UINT64_C(0x0002c90000000000) + (i))
#define ANSWERS_MAX 4096

/* ---- fixture ---- */

struct answer {
	uint64_t vguid, epoch;
	enum vhca_sm_answer answer;
	char reason[256], code[32];
};

struct fixture {
	struct tree tree;
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_http_loop_client *client;
	struct vhca_outbox *ob;
	struct false_sm sm, sm2;
	const struct vhca_sm_ops *ops;
	unsigned int n_answers;
	struct answer answers[ANSWERS_MAX];
	uint64_t put_again; /* vGUID for which the next answer puts epoch 2; 0 = none */
	unsigned int commits;
	uint32_t backoff_ms;
};

static void put_epoch(struct fixture *f, uint64_t vguid, uint64_t epoch);

static void on_answer(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	struct fixture *f = arg;
	struct answer *a = &f->answers[f->n_answers++];
	const char *code = "";

	assert_true(f->n_answers < ANSWERS_MAX);
	if (doc)
		(void)vhca_json_opt_string(doc, "code", &code, NULL);
	*a = (struct answer){.vguid = binding->vguid, .epoch = binding->epoch, .answer = answer};
	(void)snprintf(a->reason, sizeof(a->reason), "%s", reason);
	(void)snprintf(a->code, sizeof(a->code), "%s", code);
	if (f->put_again == binding->vguid) {
		f->put_again = 0;
		put_epoch(f, binding->vguid, 2);
	}
}

static void open_store(struct fixture *f)
{
	static const struct vhca_migration migrations[] = {{vhca_outbox_schema},
							   {vhca_outbox_schema_2}};
	struct vhca_error err;

	assert_int_equal(vhca_store_open(TREE_PATH(&f->tree, "state.db"), migrations, 2, f->loop,
					 &f->store, &err),
			 0);
	assert_int_equal(vhca_http_loop_client_new(f->loop, &f->client), 0);
}

static void close_store(struct fixture *f)
{
	f->ob = vhca_outbox_free(f->ob);
	f->client = vhca_http_loop_client_free(f->client);
	f->store = vhca_store_close(f->store);
}

static void open_outbox(struct fixture *f)
{
	const char *urls[] = {f->sm.url, f->sm2.url};
	const struct vhca_outbox_conf conf = {.ops = f->ops,
					      .urls = urls,
					      .n_urls = *f->sm2.url ? 2 : 1,
					      .timeout_ms = 5000,
					      .backoff_ms = f->backoff_ms};
	struct vhca_error err;

	assert_int_equal(vhca_outbox_new(&conf, f->loop, f->store,
					 vhca_http_loop_client_multi(f->client), on_answer, f,
					 &f->ob, &err),
			 0);
}

static void reopen_outbox(struct fixture *f, uint32_t backoff_ms)
{
	f->ob = vhca_outbox_free(f->ob);
	f->backoff_ms = backoff_ms;
	open_outbox(f);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tree_init(&f->tree);
	assert_int_equal(vhca_loop_new(&f->loop), 0);
	f->sm.loop = f->sm2.loop = f->loop;
	f->ops = &vhca_sm_vhcasm;
	f->backoff_ms = 100;
	open_store(f);
	false_sm_up(&f->sm);
	open_outbox(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_store(f);
	false_sm_down(&f->sm);
	false_sm_down(&f->sm2);
	f->loop = vhca_loop_free(f->loop);
	tree_done(&f->tree);
	free(f);
	return 0;
}

static void spin(struct fixture *f, uint64_t ms)
{
	uint64_t deadline = vhca_now_ms() + ms;

	do
		(void)vhca_loop_once(f->loop, 5);
	while (vhca_now_ms() < deadline);
}

/* Runs the loop until the condition holds; fails the test after 10 s. */
#define wait_until(f, condition)                               \
	do {                                                   \
		uint64_t until_ = vhca_now_ms() + 10000;       \
		while (!(condition) && vhca_now_ms() < until_) \
			(void)vhca_loop_once((f)->loop, 20);   \
		assert_true(condition);                        \
	} while (0)

/* ---- the owner's side ---- */

static struct vhca_sm_binding binding_of(uint64_t vguid, uint64_t epoch, bool is_bound)
{
	return (struct vhca_sm_binding){.vguid = vguid,
					.epoch = epoch,
					.bound = is_bound,
					.port_guid = UINT64_C(0x0002c90300000001),
					.gid_index = 1,
					.lid = 4,
					.n_pkeys = 2,
					.pkeys = {0x8001, 0x7fff}};
}

struct commit {
	struct fixture *f;
	uint64_t ticket;
};

static void on_commit(void *arg, int rc)
{
	struct commit *c = arg;

	assert_int_equal(rc, 0);
	c->f->commits++;
	vhca_outbox_release(c->f->ob, c->ticket, true);
	free(c);
}

static void put_binding(struct fixture *f, struct vhca_sm_binding b)
{
	struct commit *c = malloc(sizeof(*c));
	struct vhca_txn *txn = vhca_txn_new(f->store);

	assert_non_null(c);
	assert_non_null(txn);
	c->f = f;
	c->ticket = vhca_outbox_put(f->ob, txn, &b);
	vhca_txn_commit(txn, on_commit, c);
}

static void put_epoch(struct fixture *f, uint64_t vguid, uint64_t epoch)
{
	put_binding(f, binding_of(vguid, epoch, true));
}

static int count_row(void *ctx, const struct vhca_row *row)
{
	(void)row;
	(*(unsigned int *)ctx)++;
	return 0;
}

static unsigned int rows(struct fixture *f)
{
	unsigned int n = 0;
	struct vhca_error err;

	assert_int_equal(
		vhca_store_query(f->store, "SELECT vguid FROM outbox", count_row, &n, &err, ""), 0);
	return n;
}

static unsigned int count_answers(const struct fixture *f, enum vhca_sm_answer answer)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < f->n_answers; i++)
		n += f->answers[i].answer == answer;
	return n;
}

static void wait_all_done(struct fixture *f)
{
	wait_until(f, vhca_outbox_pending(f->ob) == 0 && rows(f) == 0);
}

/* ---- cases ---- */

static void sends_what_is_durable(void **state)
{
	struct fixture *f = *state;

	put_epoch(f, VGUID(1), 1);
	assert_int_equal(vhca_outbox_pending(f->ob), 1);
	assert_int_equal(f->sm.n_seen, 0);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1);
	assert_string_equal(f->sm.seen[0].method, "PUT");
	assert_int_equal(f->n_answers, 1);
	assert_int_equal(f->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_string_equal(f->answers[0].reason, "");
	assert_true(vhca_outbox_reachable(f->ob));
}

static void holds_back_until_released(void **state)
{
	struct fixture *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct vhca_sm_binding b = binding_of(VGUID(1), 1, true);
	uint64_t ticket = vhca_outbox_put(f->ob, txn, &b);

	vhca_txn_commit(txn, NULL, NULL);
	spin(f, 100);
	assert_int_equal(f->sm.n_seen, 0);
	assert_int_equal(rows(f), 1);
	vhca_outbox_kick(f->ob);
	spin(f, 50);
	assert_int_equal(f->sm.n_seen, 0);
	vhca_outbox_release(f->ob, ticket, true);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1);
}

static void forgets_what_did_not_become_durable(void **state)
{
	struct fixture *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct vhca_sm_binding b = binding_of(VGUID(1), 1, true);
	uint64_t ticket = vhca_outbox_put(f->ob, txn, &b);

	vhca_txn_abort(txn);
	vhca_outbox_release(f->ob, ticket, false);
	assert_int_equal(vhca_outbox_pending(f->ob), 0);
	spin(f, 50);
	assert_int_equal(f->sm.n_seen, 0);
	assert_int_equal(f->n_answers, 0);
}

static void withdraws_with_delete(void **state)
{
	struct fixture *f = *state;

	put_binding(f, binding_of(VGUID(1), 9, false));
	wait_all_done(f);
	assert_string_equal(f->sm.seen[0].method, "DELETE");
	assert_int_equal(f->sm.seen[0].epoch, 9);
}

static void arrives_in_order_when_the_sm_comes_up(void **state)
{
	struct fixture *f = *state;

	false_sm_down(&f->sm);
	for (unsigned int i = 0; i < 20; i++)
		put_epoch(f, VGUID(i), 1);
	wait_until(f, !vhca_outbox_reachable(f->ob));
	wait_until(f, f->commits == 20);
	assert_int_equal(rows(f), 20);
	assert_int_equal(vhca_outbox_pending(f->ob), 20);
	false_sm_up(&f->sm);
	wait_all_done(f);
	assert_true(vhca_outbox_reachable(f->ob));
	assert_int_equal(f->sm.n_seen, 20);
	for (unsigned int i = 0; i < 20; i++) {
		assert_true(f->sm.seen[i].vguid == VGUID(i));
		assert_int_equal(false_sm_effects(&f->sm, VGUID(i)), 1);
	}
	assert_int_equal(count_answers(f, VHCA_SM_ACCEPTED), 20);
}

/* While the SM is down only one request at a time knocks. */
static void probes_with_one_report(void **state)
{
	struct fixture *f = *state;
	unsigned int before;

	reopen_outbox(f, 300);
	false_sm_down(&f->sm);
	for (unsigned int i = 0; i < 20; i++)
		put_epoch(f, VGUID(i), 1);
	wait_until(f, f->commits == 20 && !vhca_outbox_reachable(f->ob));
	spin(f, 100);
	before = f->n_answers;
	wait_until(f, f->n_answers > before);
	spin(f, 100);
	assert_int_equal(f->n_answers, before + 1);
	assert_int_equal(f->answers[before].answer, VHCA_SM_RETRY);
	assert_true(f->answers[before].vguid == VGUID(0));
	assert_true(strlen(f->answers[before].reason) > 0);
}

static void newer_replaces_what_was_not_sent(void **state)
{
	struct fixture *f = *state;

	false_sm_down(&f->sm);
	put_epoch(f, VGUID(1), 1);
	wait_until(f, !vhca_outbox_reachable(f->ob));
	put_epoch(f, VGUID(2), 1);
	put_epoch(f, VGUID(1), 2);
	put_epoch(f, VGUID(1), 3);
	wait_until(f, f->commits == 4);
	wait_until(f, vhca_outbox_pending(f->ob) == 2);
	assert_int_equal(rows(f), 2);
	false_sm_up(&f->sm);
	vhca_outbox_kick(f->ob);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 2);
	assert_true(f->sm.seen[0].vguid == VGUID(2)); /* the newest of 1 came after it */
	assert_int_equal(f->sm.seen[1].epoch, 3);
}

static void newer_waits_for_the_one_in_flight(void **state)
{
	struct fixture *f = *state;

	f->sm.hold = true;
	put_epoch(f, VGUID(1), 1);
	wait_until(f, f->sm.n_held == 1);
	put_binding(f, binding_of(VGUID(1), 1, false));
	put_epoch(f, VGUID(2), 1);
	wait_until(f, f->sm.n_held == 2); /* the other vGUID does not wait */
	spin(f, 50);
	assert_int_equal(f->sm.n_seen, 2);
	assert_int_equal(vhca_outbox_pending(f->ob), 3);
	false_sm_answer_held(&f->sm);
	wait_until(f, f->sm.n_held == 1);
	assert_string_equal(f->sm.seen[2].method, "DELETE");
	wait_until(f, rows(f) == 1); /* the answer to the older one left the newer one's row */
	false_sm_answer_held(&f->sm);
	wait_all_done(f);
	assert_int_equal(count_answers(f, VHCA_SM_ACCEPTED), 3);
}

static void newer_replaces_the_one_in_flight_that_failed(void **state)
{
	struct fixture *f = *state;

	f->sm.hold = true;
	put_epoch(f, VGUID(1), 1);
	wait_until(f, f->sm.n_held == 1);
	put_epoch(f, VGUID(1), 2);
	wait_until(f, f->commits == 2);
	false_sm_down(&f->sm);
	wait_until(f, count_answers(f, VHCA_SM_RETRY) == 1);
	assert_int_equal(vhca_outbox_pending(f->ob), 1);
	f->sm.hold = false;
	false_sm_up(&f->sm);
	wait_all_done(f);
	assert_int_equal(f->sm.seen[f->sm.n_seen - 1].epoch, 2);
	assert_int_equal(false_sm_effects(&f->sm, VGUID(1)), 1);
}

static void superseded_is_dropped(void **state)
{
	struct fixture *f = *state;

	put_epoch(f, VGUID(1), 5);
	wait_all_done(f);
	put_epoch(f, VGUID(1), 4);
	wait_all_done(f);
	assert_int_equal(f->n_answers, 2);
	assert_int_equal(f->answers[1].answer, VHCA_SM_SUPERSEDED);
	assert_non_null(strstr(f->answers[1].reason, "the SM says superseded"));
	assert_string_equal(f->answers[1].code, "superseded");
	assert_true(vhca_outbox_reachable(f->ob));
	spin(f, 250);
	assert_int_equal(f->sm.n_seen, 2);
}

static void refused_is_dropped_with_the_reason(void **state)
{
	struct fixture *f = *state;

	f->sm.refuse_code = "unknown_partition";
	f->sm.refuse_kind = VHCA_ERR_DENIED;
	put_epoch(f, VGUID(1), 1);
	wait_all_done(f);
	assert_int_equal(f->answers[0].answer, VHCA_SM_REFUSED);
	assert_non_null(strstr(f->answers[0].reason, "the SM says unknown_partition"));
	assert_true(vhca_outbox_reachable(f->ob));
}

static void unknown_port_waits_alone(void **state)
{
	struct fixture *f = *state;

	f->sm.refuse_code = "unknown_port";
	f->sm.refuse_kind = VHCA_ERR_CONFLICT;
	f->sm.refuse_only = VGUID(1);
	put_epoch(f, VGUID(1), 1);
	put_epoch(f, VGUID(2), 1);
	wait_until(f, false_sm_effects(&f->sm, VGUID(2)) == 1);
	wait_until(f, count_answers(f, VHCA_SM_RETRY) > 0 && vhca_outbox_pending(f->ob) == 1);
	assert_true(vhca_outbox_reachable(f->ob));
	f->sm.refuse_code = NULL;
	wait_all_done(f);
	assert_int_equal(false_sm_effects(&f->sm, VGUID(1)), 1);
}

static void kick_tries_at_once(void **state)
{
	struct fixture *f = *state;
	uint64_t start = vhca_now_ms();

	reopen_outbox(f, 20000);
	f->sm.refuse_code = "unknown_port";
	f->sm.refuse_kind = VHCA_ERR_CONFLICT;
	put_epoch(f, VGUID(1), 1);
	wait_until(f, count_answers(f, VHCA_SM_RETRY) == 1);
	false_sm_down(&f->sm);
	put_epoch(f, VGUID(2), 1);
	wait_until(f, !vhca_outbox_reachable(f->ob));
	f->sm.refuse_code = NULL;
	false_sm_up(&f->sm);
	spin(f, 50);
	assert_int_equal(f->sm.n_seen, 1);
	vhca_outbox_kick(f->ob);
	wait_all_done(f);
	assert_true(vhca_now_ms() - start < 15000);
}

static void rotates_to_the_master(void **state)
{
	struct fixture *f = *state;
	uint64_t start;

	false_sm_up(&f->sm2);
	reopen_outbox(f, 2000);
	f->sm.refuse_code = "not_master";
	f->sm.refuse_kind = VHCA_ERR_UNAVAILABLE;
	start = vhca_now_ms();
	put_epoch(f, VGUID(1), 1);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1);
	assert_int_equal(f->sm2.n_seen, 1);
	assert_true(vhca_now_ms() - start < 1900); /* without a back-off */
	put_epoch(f, VGUID(2), 1);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1); /* and stays there */

	f->sm.refuse_code = NULL;
	false_sm_down(&f->sm2);
	put_epoch(f, VGUID(3), 1);
	wait_all_done(f);
	assert_int_equal(false_sm_effects(&f->sm, VGUID(3)), 1);
}

static void backs_off_when_no_url_works(void **state)
{
	struct fixture *f = *state;

	false_sm_up(&f->sm2);
	reopen_outbox(f, 300);
	false_sm_down(&f->sm);
	f->sm2.refuse_code = "not_master";
	f->sm2.refuse_kind = VHCA_ERR_UNAVAILABLE;
	put_epoch(f, VGUID(1), 1);
	wait_until(f, f->n_answers == 2); /* once around */
	spin(f, 100);
	assert_int_equal(f->n_answers, 2);
	wait_until(f, f->n_answers == 4);
	spin(f, 300); /* the next wait is 600 ms */
	assert_int_equal(f->n_answers, 4);
}

static void restart_sends_what_is_left(void **state)
{
	struct fixture *f = *state;
	struct vhca_sm_binding b = binding_of(VGUID(7), UINT64_MAX - 1, true);

	false_sm_down(&f->sm);
	put_epoch(f, VGUID(3), 1);
	put_binding(f, binding_of(VGUID(1), 4, false));
	put_binding(f, b);
	wait_until(f, f->commits == 3);
	close_store(f);

	false_sm_up(&f->sm);
	open_store(f);
	open_outbox(f);
	assert_int_equal(vhca_outbox_pending(f->ob), 3);
	put_epoch(f, VGUID(9), 1);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 4);
	assert_true(f->sm.seen[0].vguid == VGUID(3));
	assert_string_equal(f->sm.seen[1].method, "DELETE");
	assert_true(f->sm.seen[1].vguid == VGUID(1));
	assert_int_equal(f->sm.seen[1].epoch, 4);
	assert_true(f->sm.seen[2].epoch == b.epoch);
	assert_true(f->sm.seen[3].vguid == VGUID(9));
}

/* The SM has acted, we die before we know: the same state goes out again and changes nothing. */
static void death_before_the_answer_is_harmless(void **state)
{
	struct fixture *f = *state;

	f->sm.hold = true;
	put_epoch(f, VGUID(1), 1);
	wait_until(f, f->sm.n_held == 1);
	close_store(f);
	assert_true(false_sm_take_effect(&f->sm, &f->sm.seen[0]));
	false_sm_down(&f->sm);
	f->sm.hold = false;

	false_sm_up(&f->sm);
	open_store(f);
	open_outbox(f);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 2);
	assert_int_equal(false_sm_effects(&f->sm, VGUID(1)), 1);
	assert_int_equal(count_answers(f, VHCA_SM_ACCEPTED), 1);
}

static void a_thousand_go_eight_at_a_time(void **state)
{
	struct fixture *f = *state;

	f->sm.hold = true;
	for (unsigned int i = 0; i < 1000; i++)
		put_epoch(f, VGUID(i), 1);
	wait_until(f, f->commits == 1000);
	while (f->sm.n_seen < 1000) {
		unsigned int n = f->sm.n_seen;

		wait_until(f, f->sm.n_held > 0);
		(void)vhca_loop_once(f->loop, 1);
		false_sm_answer_held(&f->sm);
		wait_until(f, f->sm.n_seen > n || f->sm.n_seen == 1000);
	}
	f->sm.hold = false;
	false_sm_answer_held(&f->sm);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1000);
	assert_true(f->sm.most_held <= 8);
	assert_true(f->sm.most_held > 1);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(false_sm_effects(&f->sm, VGUID(i)), 1);
	assert_true(vhca_loop_max_callback_us(f->loop) < 50000);
}

static void answer_may_put_again(void **state)
{
	struct fixture *f = *state;

	f->put_again = VGUID(1);
	put_epoch(f, VGUID(1), 1);
	wait_until(f, f->sm.n_seen == 2);
	wait_all_done(f);
	assert_int_equal(f->sm.seen[1].epoch, 2);
	assert_int_equal(false_sm_effects(&f->sm, VGUID(1)), 2);
}

static void none_is_in_effect_at_once(void **state)
{
	struct fixture *f = *state;

	false_sm_down(&f->sm);
	put_epoch(f, VGUID(1), 1); /* a row left over from another back end */
	wait_until(f, f->commits == 1);
	close_store(f);
	f->n_answers = 0;
	f->ops = &vhca_sm_none;
	open_store(f);
	open_outbox(f);
	wait_all_done(f);
	put_epoch(f, VGUID(2), 1);
	assert_int_equal(rows(f), 0);
	wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 0);
	assert_int_equal(f->n_answers, 2);
	assert_int_equal(count_answers(f, VHCA_SM_ACCEPTED), 2);
	assert_true(vhca_outbox_reachable(f->ob));
}

static void free_with_requests_in_flight(void **state)
{
	struct fixture *f = *state;

	f->sm.hold = true;
	for (unsigned int i = 0; i < 20; i++)
		put_epoch(f, VGUID(i), 1);
	wait_until(f, f->sm.n_held == 8 && f->commits == 20);
	f->ob = vhca_outbox_free(f->ob);
	f->sm.hold = false;
	false_sm_answer_held(&f->sm);
	spin(f, 100);
	assert_int_equal(f->n_answers, 0);
	assert_int_equal(rows(f), 20);
}

static const char *member(struct json_object *list, size_t i, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(json_object_array_get_idx(list, i), key, &value));
	return json_object_get_string(value);
}

static void shows_itself(void **state)
{
	struct fixture *f = *state;
	struct json_object *list;

	f->sm.refuse_code = "unknown_port";
	f->sm.refuse_kind = VHCA_ERR_CONFLICT;
	put_epoch(f, VGUID(1), 6);
	wait_until(f, count_answers(f, VHCA_SM_RETRY) == 1);
	f->sm.hold = true;
	put_epoch(f, VGUID(2), 1);
	wait_until(f, f->sm.n_held == 1);
	list = vhca_outbox_to_json(f->ob);
	assert_int_equal(json_object_array_length(list), 2);
	assert_string_equal(member(list, 0, "vguid"), VHCA_GUID_STR(VGUID(1)));
	assert_string_equal(member(list, 0, "epoch"), "6");
	assert_string_equal(member(list, 0, "bound"), "true");
	assert_string_equal(member(list, 0, "state"), "waiting");
	assert_string_equal(member(list, 0, "attempts"), "1");
	assert_non_null(strstr(member(list, 0, "reason"), "unknown_port"));
	assert_string_not_equal(member(list, 0, "next_try_ms"), "0");
	assert_string_equal(member(list, 1, "state"), "in_flight");
	assert_string_equal(member(list, 1, "reason"), "");
	(void)json_object_put(list);
	f->sm.refuse_code = NULL;
	f->sm.hold = false;
	false_sm_answer_held(&f->sm);
	wait_all_done(f);
	list = vhca_outbox_to_json(f->ob);
	assert_int_equal(json_object_array_length(list), 0);
	(void)json_object_put(list);
}

static void needs_a_url(void **state)
{
	struct fixture *f = *state;
	const struct vhca_outbox_conf conf = {.ops = &vhca_sm_vhcasm};
	struct vhca_outbox *ob = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_outbox_new(&conf, f->loop, f->store,
					 vhca_http_loop_client_multi(f->client), on_answer, f, &ob,
					 &err),
			 -EINVAL);
	assert_null(ob);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(sends_what_is_durable),
		CASE(holds_back_until_released),
		CASE(forgets_what_did_not_become_durable),
		CASE(withdraws_with_delete),
		CASE(arrives_in_order_when_the_sm_comes_up),
		CASE(probes_with_one_report),
		CASE(newer_replaces_what_was_not_sent),
		CASE(newer_waits_for_the_one_in_flight),
		CASE(newer_replaces_the_one_in_flight_that_failed),
		CASE(superseded_is_dropped),
		CASE(refused_is_dropped_with_the_reason),
		CASE(unknown_port_waits_alone),
		CASE(kick_tries_at_once),
		CASE(rotates_to_the_master),
		CASE(backs_off_when_no_url_works),
		CASE(restart_sends_what_is_left),
		CASE(death_before_the_answer_is_harmless),
		CASE(a_thousand_go_eight_at_a_time),
		CASE(answer_may_put_again),
		CASE(none_is_in_effect_at_once),
		CASE(free_with_requests_in_flight),
		CASE(shows_itself),
		CASE(needs_a_url),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
