/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_SM_OUTBOX_BOX_H
#define VHCA_TESTS_UNIT_SM_OUTBOX_BOX_H
/*
 * An outbox with its real store and HTTP client, its owner, and a false SM (or two) in this
 * process; one loop drives all of it. Failures fail the running test.
 */
#include "common/base/file.h"
#include "sm/outbox.h"
#include "tests/unit/sm/false_sm.h"
#include "tests/unit/tree.h"

#define BOX_ANSWERS_MAX 4096
#define BOX_KEYS	4
#define BOX_PORT	UINT64_C(0x0002c90300000001)
#define BOX_OLD_PORT	UINT64_C(0x0002c90300000002) /* where moves come from */
#define BOX_OTHER_PORT	UINT64_C(0x0002c90300000003)
#define BOX_VGUID(i)	(UINT64_C(0x0002c90000000000) + (i))
/* What sm/vhcasm.c makes of BOX_PORT, and of the commit of box_move_of(BOX_VGUID(1), 7). */
#define BOX_MEMBERS_PATH "/v1/members/0x0002c90300000001"
#define BOX_COMMIT_BODY                                                                      \
	"{\"id\":\"6b3e1c3a-0000-4000-8000-00000000000a\",\"epoch\":7,"                      \
	"\"vguid\":\"0x0002c90000000001\",\"phase\":\"commit\","                             \
	"\"from\":{\"port_guid\":\"0x0002c90300000002\",\"gid_index\":65535,\"lid\":9},"     \
	"\"to\":{\"port_guid\":\"0x0002c90300000001\",\"gid_index\":1,\"lid\":4},\"pkeys\":" \
	"[\"0x8001\",\"0x7fff\"]}"

/* One call of the owner's; guid is a port's for members. */
struct box_answer {
	bool members;
	uint64_t guid, epoch;
	enum vhca_sm_answer answer;
	char reason[256], code[32];
};

struct box {
	struct tree tree;
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_http_loop_client *client;
	struct vhca_outbox *ob;
	struct false_sm sm, sm2;
	const struct vhca_sm_ops *ops;
	unsigned int n_answers, n_snapshots, n_named_other, n_would_answer, n_lid_stays;
	struct box_answer would_answer; /* the last one */
	struct box_answer answers[BOX_ANSWERS_MAX];
	uint64_t put_again; /* vGUID for which the next answer puts epoch 2; 0 = none */
	unsigned int commits;
	uint32_t backoff_ms, snapshot_ms;
};

/* A port's keys, one of them twice. */
extern const uint16_t box_keys[BOX_KEYS];

#define BOX_CASE(fn) cmocka_unit_test_setup_teardown(fn, box_setup, box_teardown)
/* With sm up, and the outbox open. */
int box_setup(void **state);
int box_teardown(void **state);

void box_open_store(struct box *b);
void box_close_store(struct box *b); /* the outbox too: the process dies */
void box_open_outbox(struct box *b);
void box_reopen_outbox(struct box *b, uint32_t backoff_ms);

void box_spin(struct box *b, uint64_t ms);
#define box_wait_until(b, condition) unit_until(condition, (void)vhca_loop_once((b)->loop, 20))
void box_wait_all_done(struct box *b); /* nothing pending, no row left */

struct vhca_sm_binding box_binding_of(uint64_t vguid, uint64_t epoch, bool is_bound);
struct vhca_sm_binding box_move_of(uint64_t vguid, uint64_t epoch);
/* Each in a transaction of its own, released when that is durable. */
void box_put_binding(struct box *b, struct vhca_sm_binding binding);
void box_put_epoch(struct box *b, uint64_t vguid, uint64_t epoch);
/*
 * A proof of n tickets, the last at this epoch, each of the others one lower than the next. Nobody
 * has signed them. Caller puts it.
 */
struct json_object *box_proof_of(uint64_t vguid, uint64_t epoch, unsigned int n);
/* The binding with such a proof, in one transaction. */
void box_put_proven(struct box *b, struct vhca_sm_binding binding, unsigned int n);
void box_put_members(struct box *b, uint64_t port_guid, const uint16_t *pkeys, size_t n);

/* The SM answers everything with this problem from now on. */
void box_refuse(struct box *b, const char *code, enum vhca_err kind);
/* ...as an older plugin does that knows no moves. */
void box_know_no_moves(struct box *b);
const struct false_sm_seen *box_last_seen(const struct box *b);
unsigned int box_rows(struct box *b);
unsigned int box_count_answers(const struct box *b, enum vhca_sm_answer answer);

#endif
