/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/repeats.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "agent/state/journal.h"
#include "common/base/codes.h"
#include "common/base/file.h"

#define FINGERPRINT_MAX 72

struct vhca_repeat {
	TAILQ_ENTRY(vhca_repeat) link; /* oldest first */
	struct vhca_repeats *owner;
	char caller[VHCA_CALLER_NAME_MAX], key[VHCA_REPEAT_KEY_MAX + 1];
	char fingerprint[FINGERPRINT_MAX];
	struct vhca_uuid object;
	uint64_t until_ms; /* vhca_now_ms(): the wall clock may be set */
	bool begun;	   /* as it was when this life began */
	bool under_way;	   /* in this life */
	unsigned int status;
	char *answer;
	void (*done)(void *arg, int rc); /* of vhca_repeat_keep() */
	void *arg;
};

struct vhca_repeats {
	struct vhca_store *store; /* NULL: stopped */
	TAILQ_HEAD(, vhca_repeat) list;
};

const struct vhca_uuid *vhca_repeat_object(const struct vhca_repeat *r)
{
	return &r->object;
}

bool vhca_repeat_has_begun(const struct vhca_repeat *r)
{
	return r->begun;
}

unsigned int vhca_repeat_status(const struct vhca_repeat *r)
{
	return r->status;
}

const char *vhca_repeat_answer(const struct vhca_repeat *r)
{
	return r->answer;
}

static void drop(struct vhca_repeat *r)
{
	TAILQ_REMOVE(&r->owner->list, r, link);
	free(r->answer);
	free(r);
}

static int add(struct vhca_repeats *rs, const struct vhca_repeat_request *req,
	       struct vhca_repeat **ret)
{
	struct vhca_repeat *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (vhca_strcpy(r->caller, sizeof(r->caller), req->caller) < 0 ||
	    vhca_strcpy(r->key, sizeof(r->key), req->key) < 0 ||
	    vhca_strcpy(r->fingerprint, sizeof(r->fingerprint), req->fingerprint) < 0) {
		free(r);
		return -EBADMSG;
	}
	r->owner = rs;
	TAILQ_INSERT_TAIL(&rs->list, r, link);
	*ret = r;
	return 0;
}

static int set_answer(struct vhca_repeat *r, unsigned int status, const char *answer)
{
	r->answer = strdup(answer);
	if (!r->answer)
		return -ENOMEM;
	r->status = status;
	return 0;
}

/* ---- the table ---- */

/* What is left of the day. That of a clock which was ahead is a whole one: a key that is forgotten
 * too soon is done twice. */
static uint64_t until(uint64_t made_ms)
{
	uint64_t now = vhca_wall_ms(), age = now > made_ms ? now - made_ms : 0;

	return vhca_now_ms() + (age < VHCA_REPEAT_MS ? VHCA_REPEAT_MS - age : 0);
}

static int load(void *ctx, const struct vhca_row *row)
{
	const struct vhca_repeat_request req = {.caller = vhca_row_text(row, 0),
						.key = vhca_row_text(row, 1),
						.fingerprint = vhca_row_text(row, 2)};
	int64_t status = vhca_row_i64(row, 6);
	struct vhca_repeat *r = NULL;
	int rc = add(ctx, &req, &r);

	if (rc < 0)
		return rc;
	if (vhca_journal_uuid(row, 3, &r->object) < 0 || status < 0 || status > 999)
		return -EBADMSG;
	r->begun = vhca_row_i64(row, 4) != 0;
	r->until_ms = until(vhca_row_u64(row, 5));
	return status ? set_answer(r, (unsigned int)status, vhca_row_text(row, 7)) : 0;
}

int vhca_repeats_new(struct vhca_store *store, struct vhca_repeats **ret, struct vhca_error *err)
{
	struct vhca_repeats *rs = calloc(1, sizeof(*rs));
	int r;

	if (!rs)
		return vhca_error_no_memory(err, "repeats");
	TAILQ_INIT(&rs->list);
	rs->store = store;
	r = vhca_store_query(store,
			     "SELECT caller, key, fingerprint, object, begun, made, status, answer"
			     " FROM repeats ORDER BY made",
			     load, rs, err, "");
	if (r == -EBADMSG)
		r = vhca_error_set(err, VHCA_ERR_INTERNAL, "store_corrupt", EBADMSG,
				   "state database: table repeats holds a row that cannot be read");
	if (r < 0) {
		vhca_repeats_free(rs);
		return r;
	}
	*ret = rs;
	return 0;
}

void vhca_repeats_stop(struct vhca_repeats *rs)
{
	if (rs)
		rs->store = NULL;
}

struct vhca_repeats *vhca_repeats_free(struct vhca_repeats *rs)
{
	if (!rs)
		return NULL;
	while (!TAILQ_EMPTY(&rs->list))
		drop(TAILQ_FIRST(&rs->list));
	free(rs);
	return NULL;
}

static void delete_row(const struct vhca_repeat *r, void (*done)(void *arg, int rc), void *arg)
{
	struct vhca_txn *txn = vhca_txn_new(r->owner->store);

	vhca_txn_fail_fast(txn);
	vhca_txn_exec(txn, "DELETE FROM repeats WHERE caller = ?1 AND key = ?2", "ss", r->caller,
		      r->key);
	vhca_txn_commit(txn, done, arg);
}

void vhca_repeats_replace(struct vhca_txn *txn, const struct vhca_uuid *object,
			  const struct vhca_uuid *by)
{
	vhca_txn_exec(txn, "UPDATE repeats SET object = ?2 WHERE object = ?1", "ss",
		      VHCA_UUID_STR(object), VHCA_UUID_STR(by));
}

/* ---- requests ---- */

static void drop_old(struct vhca_repeats *rs)
{
	uint64_t now = vhca_now_ms();
	struct vhca_repeat *r, *next;

	for (r = TAILQ_FIRST(&rs->list); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->under_way || r->until_ms > now)
			continue;
		delete_row(r, NULL, NULL);
		drop(r);
	}
}

static int check_key(const char *key, struct vhca_error *err)
{
	size_t len = strlen(key);

	for (const char *p = key; *p; p++)
		if (!isgraph((unsigned char)*p))
			len = 0;
	if (len > 0 && len <= VHCA_REPEAT_KEY_MAX)
		return 0;
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			      "Idempotency-Key: want 1 to %d printable characters without blanks",
			      VHCA_REPEAT_KEY_MAX);
}

static int check_again(const struct vhca_repeat *r, const struct vhca_repeat_request *req,
		       struct vhca_error *err)
{
	if (strcmp(r->fingerprint, req->fingerprint) != 0) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_KEY_REUSED, 0,
				     "Idempotency-Key %s was given with another request", req->key);
		vhca_error_hint(err, "a key for each request; method, path and body are those of "
				     "the first when it is made again");
		return -EINVAL;
	}
	if (!r->under_way)
		return 0;
	return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_KEY_IN_USE, EBUSY,
			      "the request with Idempotency-Key %s is under way", req->key);
}

/* Of what there is nobody has more than half: a key cannot be forgotten to make room. */
static int check_room(const struct vhca_repeats *rs, const char *caller, struct vhca_error *err)
{
	unsigned int n = 0, of_caller = 0;
	uint64_t bytes = 0, bytes_of_caller = 0;
	const struct vhca_repeat *r;

	TAILQ_FOREACH (r, &rs->list, link) {
		size_t len = r->answer ? strlen(r->answer) : 0;

		n++;
		bytes += len;
		if (strcmp(r->caller, caller) != 0)
			continue;
		of_caller++;
		bytes_of_caller += len;
	}
	if (n < VHCA_REPEATS_MAX && bytes < VHCA_REPEATS_ANSWERS_MAX &&
	    of_caller < VHCA_REPEATS_MAX / 2 && bytes_of_caller < VHCA_REPEATS_ANSWERS_MAX / 2)
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_keys", 0,
			      "%u requests with an Idempotency-Key are remembered, %u of them of "
			      "%s, each for a day",
			      n, of_caller, caller);
}

static int add_new(struct vhca_repeats *rs, const struct vhca_repeat_request *req,
		   struct vhca_repeat **ret, struct vhca_error *err)
{
	struct vhca_repeat *r = NULL;
	uint64_t made_ms = vhca_wall_ms();
	struct vhca_uuid object;
	struct vhca_txn *txn;

	if (check_room(rs, req->caller, err) < 0)
		return -ENOSPC;
	if (vhca_uuid_random(&object) < 0 || add(rs, req, &r) < 0)
		return vhca_error_no_memory(err, "request");
	r->object = object;
	r->until_ms = until(made_ms);
	txn = vhca_txn_new(rs->store);
	/* The disk may have refused to take out the row of one that was forgotten. */
	vhca_txn_exec(txn, "INSERT OR REPLACE INTO repeats VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, '')",
		      "ssssu", r->caller, r->key, r->fingerprint, VHCA_UUID_STR(&r->object),
		      made_ms);
	vhca_txn_commit(txn, NULL, NULL);
	*ret = r;
	return 0;
}

int vhca_repeats_admit(struct vhca_repeats *rs, const struct vhca_repeat_request *req,
		       struct vhca_repeat **ret, struct vhca_error *err)
{
	struct vhca_repeat *found;
	int r = check_key(req->key, err);

	if (r < 0)
		return r;
	drop_old(rs);
	TAILQ_FOREACH (found, &rs->list, link)
		if (strcmp(found->key, req->key) == 0 && strcmp(found->caller, req->caller) == 0)
			break;
	r = found ? check_again(found, req, err) : add_new(rs, req, &found, err);
	if (r < 0)
		return r;
	found->under_way = found->status == 0;
	*ret = found;
	return 0;
}

static void on_kept(void *arg, int rc)
{
	struct vhca_repeat *r = arg;

	r->under_way = false;
	r->done(r->arg, rc);
}

void vhca_repeat_keep(struct vhca_repeat *r, unsigned int status, const char *answer,
		      void (*done)(void *arg, int rc), void *arg)
{
	struct vhca_txn *txn;

	if (!r->owner->store || set_answer(r, status, answer) < 0) {
		vhca_repeat_forget(r, done, arg);
		return;
	}
	r->done = done;
	r->arg = arg;
	txn = vhca_txn_new(r->owner->store);
	vhca_txn_fail_fast(txn);
	vhca_txn_exec(txn,
		      "UPDATE repeats SET status = ?3, answer = ?4 WHERE caller = ?1 AND key = ?2",
		      "ssis", r->caller, r->key, (int64_t)status, answer);
	vhca_txn_commit(txn, on_kept, r);
}

void vhca_repeat_forget(struct vhca_repeat *r, void (*done)(void *arg, int rc), void *arg)
{
	if (!r->owner->store) {
		done(arg, 0);
		return;
	}
	delete_row(r, done, arg);
	drop(r);
}
