/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/sm/outbox_box.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "common/http/json.h"
#include "common/ticket/ticket.h"
#include "sm/outbox_row.h"
#include "tests/unit/unit.h"

const uint16_t box_keys[BOX_KEYS] = {0x8001, 0x8002, 0x8001, 0x0002};

/* ---- answers ---- */

static struct box_answer *record(struct box *b, uint64_t guid, enum vhca_sm_answer answer,
				 const char *reason)
{
	struct box_answer *a = &b->answers[b->n_answers++];

	assert_true(b->n_answers < BOX_ANSWERS_MAX);
	*a = (struct box_answer){.guid = guid, .answer = answer};
	(void)snprintf(a->reason, sizeof(a->reason), "%s", reason);
	return a;
}

static void on_answer(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	struct box *b = arg;
	struct box_answer *a = record(b, binding->vguid, answer, reason);
	const char *code = "";

	if (doc)
		(void)vhca_json_opt_string(doc, "code", &code, NULL);
	a->epoch = binding->epoch;
	(void)snprintf(a->code, sizeof(a->code), "%s", code);
	if (b->put_again == binding->vguid) {
		b->put_again = 0;
		box_put_epoch(b, binding->vguid, 2);
	}
}

static void on_lid_stays(void *arg, const struct vhca_sm_binding *binding, const char *reason)
{
	struct box *b = arg;

	assert_true(binding->follow_lid);
	assert_true(*reason);
	b->n_lid_stays++;
}

static void on_would_answer(void *arg, const struct vhca_sm_binding *binding,
			    enum vhca_sm_answer answer, const char *reason, struct json_object *doc)
{
	struct box *b = arg;

	(void)reason;
	(void)doc;
	b->n_would_answer++;
	b->would_answer = (struct box_answer){
		.guid = binding->vguid, .epoch = binding->epoch, .answer = answer};
}

static void on_members(void *arg, uint64_t port_guid, enum vhca_sm_answer answer,
		       const char *reason)
{
	record(arg, port_guid, answer, reason)->members = true;
}

static void on_snapshot(void *arg)
{
	((struct box *)arg)->n_snapshots++;
}

static void on_named_other(void *arg, const struct vhca_sm_binding *binding)
{
	(void)binding;
	((struct box *)arg)->n_named_other++;
}

/* ---- life ---- */

void box_open_store(struct box *b)
{
	static const struct vhca_migration schema = {VHCA_OUTBOX_SCHEMA};
	struct vhca_error err;

	assert_int_equal(vhca_store_open(TREE_PATH(&b->tree, "state.db"), &schema, 1, b->loop,
					 &b->store, &err),
			 0);
	assert_int_equal(vhca_http_loop_client_new(b->loop, &b->client), 0);
}

void box_close_store(struct box *b)
{
	b->ob = vhca_outbox_free(b->ob);
	b->client = vhca_http_loop_client_free(b->client);
	b->store = vhca_store_close(b->store);
}

void box_open_outbox(struct box *b)
{
	const char *urls[] = {b->sm.url, b->sm2.url};
	const struct vhca_outbox_conf conf = {.ops = b->ops,
					      .urls = urls,
					      .n_urls = *b->sm2.url ? 2 : 1,
					      .timeout_ms = 5000,
					      .backoff_ms = b->backoff_ms,
					      .members = on_members,
					      .named_other = on_named_other,
					      .would_answer = on_would_answer,
					      .lid_stays = on_lid_stays,
					      .snapshot = on_snapshot,
					      .snapshot_ms = b->snapshot_ms};
	struct vhca_error err;

	assert_int_equal(vhca_outbox_new(&conf, b->loop, b->store,
					 vhca_http_loop_client_multi(b->client), on_answer, b,
					 &b->ob, &err),
			 0);
}

void box_reopen_outbox(struct box *b, uint32_t backoff_ms)
{
	b->ob = vhca_outbox_free(b->ob);
	b->backoff_ms = backoff_ms;
	box_open_outbox(b);
}

int box_setup(void **state)
{
	struct box *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	tree_init(&b->tree);
	assert_int_equal(vhca_loop_new(&b->loop), 0);
	b->sm.loop = b->sm2.loop = b->loop;
	b->ops = &vhca_sm_vhcasm;
	b->backoff_ms = 100;
	box_open_store(b);
	false_sm_up(&b->sm);
	box_open_outbox(b);
	*state = b;
	return 0;
}

int box_teardown(void **state)
{
	struct box *b = *state;

	box_close_store(b);
	false_sm_done(&b->sm);
	false_sm_done(&b->sm2);
	b->loop = vhca_loop_free(b->loop);
	tree_done(&b->tree);
	free(b);
	return 0;
}

void box_spin(struct box *b, uint64_t ms)
{
	uint64_t deadline = vhca_now_ms() + ms;

	do
		(void)vhca_loop_once(b->loop, 5);
	while (vhca_now_ms() < deadline);
}

void box_wait_all_done(struct box *b)
{
	box_wait_until(b, vhca_outbox_pending(b->ob) == 0 && box_rows(b) == 0);
}

/* ---- the owner's side ---- */

struct vhca_sm_binding box_binding_of(uint64_t vguid, uint64_t epoch, bool is_bound)
{
	return (struct vhca_sm_binding){.vguid = vguid,
					.epoch = epoch,
					.bound = is_bound,
					.port_guid = BOX_PORT,
					.gid_index = 1,
					.lid = 4,
					.n_pkeys = 2,
					.pkeys = {0x8001, 0x7fff}};
}

struct vhca_sm_binding box_move_of(uint64_t vguid, uint64_t epoch)
{
	struct vhca_sm_binding binding = box_binding_of(vguid, epoch, true);

	binding.moved = true;
	assert_int_equal(vhca_uuid_parse("6b3e1c3a-0000-4000-8000-00000000000a", &binding.move_id),
			 0);
	binding.from_port_guid = BOX_OLD_PORT;
	binding.from_gid_index = 65535;
	binding.from_lid = 9;
	return binding;
}

struct commit {
	struct box *b;
	uint64_t ticket;
};

static void on_commit(void *arg, int rc)
{
	struct commit *c = arg;

	assert_int_equal(rc, 0);
	c->b->commits++;
	vhca_outbox_release(c->b->ob, c->ticket, true);
	free(c);
}

static void commit(struct box *b, struct vhca_txn *txn, uint64_t ticket)
{
	struct commit *c = malloc(sizeof(*c));

	assert_non_null(c);
	*c = (struct commit){b, ticket};
	vhca_txn_commit(txn, on_commit, c);
}

void box_put_binding(struct box *b, struct vhca_sm_binding binding)
{
	struct vhca_txn *txn = vhca_txn_new(b->store);

	assert_non_null(txn);
	commit(b, txn, vhca_outbox_put(b->ob, txn, &binding));
}

struct json_object *box_proof_of(uint64_t vguid, uint64_t epoch, unsigned int n)
{
	struct vhca_ticket ticket = {.vguid = vguid,
				     .port_guid = BOX_PORT,
				     .name = "cert:hv2",
				     .n_certificate = 1,
				     .n_signature = 1};
	struct json_object *proof = json_object_new_array();
	char text[VHCA_TICKET_MAX];

	for (unsigned int i = n; i-- > 0;) {
		ticket.epoch = epoch - i;
		json_object_array_add(proof,
				      json_object_new_string(vhca_ticket_format(&ticket, text)));
	}
	return proof;
}

void box_put_proven(struct box *b, struct vhca_sm_binding binding, unsigned int n)
{
	struct json_object *proof = box_proof_of(binding.vguid, binding.epoch, n);
	struct vhca_txn *txn = vhca_txn_new(b->store);

	assert_int_equal(vhca_sm_proof_check(proof, binding.vguid, binding.epoch, NULL), 0);
	vhca_outbox_put_proof(b->ob, txn, binding.vguid, proof);
	commit(b, txn, vhca_outbox_put(b->ob, txn, &binding));
	json_object_put(proof);
}

void box_put_epoch(struct box *b, uint64_t vguid, uint64_t epoch)
{
	box_put_binding(b, box_binding_of(vguid, epoch, true));
}

void box_put_members(struct box *b, uint64_t port_guid, const uint16_t *pkeys, size_t n)
{
	struct vhca_txn *txn = vhca_txn_new(b->store);
	uint64_t ticket = vhca_outbox_put_members(b->ob, txn, port_guid, pkeys, n);

	assert_int_not_equal(ticket, 0);
	commit(b, txn, ticket);
}

void box_refuse(struct box *b, const char *code, enum vhca_err kind)
{
	b->sm.refuse_code = code;
	b->sm.refuse_kind = kind;
}

void box_know_no_moves(struct box *b)
{
	b->sm.moves_code = "no_such_path";
	b->sm.moves_kind = VHCA_ERR_NOT_FOUND;
}

const struct false_sm_seen *box_last_seen(const struct box *b)
{
	assert_true(b->sm.n_seen > 0);
	return &b->sm.seen[b->sm.n_seen - 1];
}

static int count_row(void *ctx, const struct vhca_row *row)
{
	(void)row;
	(*(unsigned int *)ctx)++;
	return 0;
}

unsigned int box_rows(struct box *b)
{
	unsigned int n = 0;
	struct vhca_error err;

	assert_int_equal(vhca_store_query(b->store,
					  "SELECT seq FROM outbox UNION ALL SELECT seq FROM"
					  " outbox_members",
					  count_row, &n, &err, ""),
			 0);
	return n;
}

unsigned int box_count_answers(const struct box *b, enum vhca_sm_answer answer)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < b->n_answers; i++)
		n += b->answers[i].answer == answer;
	return n;
}
