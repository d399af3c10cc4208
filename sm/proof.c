/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "common/ticket/ticket.h"

struct sm_proof {
	LIST_ENTRY(sm_proof) link;
	uint64_t vguid, epoch; /* of the last ticket */
	struct json_object *tickets;
};

/* ---- what a proof is ---- */

static int bad_proof(struct vhca_error *err, uint64_t vguid, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_TICKET, 0, "tickets of %s: %s",
			      VHCA_GUID_STR(vguid), why);
}

static int read_ticket(struct json_object *text, struct vhca_ticket *ret, struct vhca_error *err)
{
	if (!json_object_is_type(text, json_type_string))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_TICKET, 0,
				      "a ticket is a text");
	return vhca_ticket_parse(json_object_get_string(text), ret, err);
}

int vhca_sm_proof_check(struct json_object *proof, uint64_t vguid, uint64_t epoch,
			struct vhca_error *err)
{
	uint64_t last = 0;
	size_t n =
		json_object_is_type(proof, json_type_array) ? json_object_array_length(proof) : 0;

	if (n < 1 || n > VHCA_TICKETS_MAX)
		return bad_proof(err, vguid, "one to four are wanted");
	for (size_t i = 0; i < n; i++) {
		struct vhca_ticket ticket;
		int r = read_ticket(json_object_array_get_idx(proof, i), &ticket, err);

		if (r < 0)
			return r;
		if (ticket.vguid != vguid)
			return bad_proof(err, vguid, "one is of another virtual GUID");
		if (ticket.epoch <= last)
			return bad_proof(err, vguid, "they are not in the order of their epochs");
		last = ticket.epoch;
	}
	return last == epoch ? 0 : bad_proof(err, vguid, "the last one is at another epoch");
}

/* ---- the list and its table ---- */

static struct sm_proof *find(const struct vhca_sm_proofs *all, uint64_t vguid)
{
	struct sm_proof *p;

	LIST_FOREACH (p, &all->all, link)
		if (p->vguid == vguid)
			return p;
	return NULL;
}

static void forget(struct sm_proof *p)
{
	LIST_REMOVE(p, link);
	json_object_put(p->tickets);
	free(p);
}

/* Of one that was checked. */
static uint64_t last_epoch(struct json_object *proof)
{
	struct vhca_ticket ticket = {.epoch = 0};

	(void)read_ticket(json_object_array_get_idx(proof, json_object_array_length(proof) - 1),
			  &ticket, NULL);
	return ticket.epoch;
}

static int keep(struct vhca_sm_proofs *all, uint64_t vguid, struct json_object *proof)
{
	struct sm_proof *p = calloc(1, sizeof(*p)), *old = find(all, vguid);

	if (!p)
		return -ENOMEM;
	if (old)
		forget(old);
	*p = (struct sm_proof){
		.vguid = vguid, .epoch = last_epoch(proof), .tickets = json_object_get(proof)};
	LIST_INSERT_HEAD(&all->all, p, link);
	return 0;
}

struct json_object *vhca_sm_proof_of(const struct vhca_sm_proofs *all, uint64_t vguid)
{
	const struct sm_proof *p = find(all, vguid);

	return p ? p->tickets : NULL;
}

void vhca_sm_proof_put(struct vhca_sm_proofs *all, struct vhca_txn *txn, uint64_t vguid,
		       struct json_object *proof)
{
	vhca_txn_exec(txn, "INSERT OR REPLACE INTO proofs VALUES (?1, ?2)", "us", vguid,
		      json_object_to_json_string_ext(proof, JSON_C_TO_STRING_PLAIN));
	/* Without memory the row is in the table all the same, and counts after the next start. */
	if (keep(all, vguid, proof) < 0)
		vhca_log_error("%s: its tickets are not shown until a restart: out of memory",
			       VHCA_GUID_STR(vguid));
}

void vhca_sm_proof_drop(struct vhca_sm_proofs *all, struct vhca_txn *txn, uint64_t vguid)
{
	struct sm_proof *p = find(all, vguid);

	if (!p)
		return;
	vhca_txn_exec(txn, "DELETE FROM proofs WHERE vguid = ?1", "u", vguid);
	forget(p);
}

uint64_t vhca_sm_proof_unneeded(const struct vhca_sm_proofs *all,
				bool (*needs)(void *arg, uint64_t vguid), void *arg)
{
	const struct sm_proof *p;

	LIST_FOREACH (p, &all->all, link)
		if (!needs(arg, p->vguid))
			return p->vguid;
	return 0;
}

bool vhca_sm_proof_is_over(const struct vhca_sm_proofs *all, uint64_t vguid, uint64_t epoch)
{
	const struct sm_proof *p = find(all, vguid);

	return p && p->epoch <= epoch;
}

bool vhca_sm_proof_is_unknown(struct json_object *problem)
{
	static const char *const codes[] = {VHCA_CODE_BAD_REQUEST, VHCA_CODE_BODY_TOO_LARGE};

	return vhca_json_problem_find(problem, codes, VHCA_ARRAY_SIZE(codes)) >= 0;
}

bool vhca_sm_proof_is_wanted(struct json_object *problem)
{
	static const char *const codes[] = {VHCA_CODE_NOT_THE_OWNER, VHCA_CODE_TICKET_NOT_VALID};

	return vhca_json_problem_find(problem, codes, VHCA_ARRAY_SIZE(codes)) >= 0;
}

static void put_json(struct json_object **p)
{
	json_object_put(*p);
}

static int load_row(void *ctx, const struct vhca_row *row)
{
	VHCA_CLEANUP(put_json) struct json_object *proof = NULL;
	const char *text = vhca_row_text(row, 1);
	uint64_t vguid = vhca_row_u64(row, 0);

	if (vhca_json_parse(text, strlen(text), &proof, NULL) < 0 ||
	    !json_object_is_type(proof, json_type_array) || json_object_array_length(proof) == 0 ||
	    vhca_sm_proof_check(proof, vguid, last_epoch(proof), NULL) < 0)
		return -EBADMSG;
	return keep(ctx, vguid, proof);
}

int vhca_sm_proofs_load(struct vhca_sm_proofs *all, struct vhca_store *store,
			struct vhca_error *err)
{
	int r = vhca_store_query(store, "SELECT vguid, tickets FROM proofs", load_row, all, err,
				 "");

	return r == -EBADMSG ? vhca_error_set(err, VHCA_ERR_INTERNAL, "store_corrupt", EBADMSG,
					      "state database: table proofs holds a row that "
					      "cannot be read")
			     : r;
}

void vhca_sm_proofs_done(struct vhca_sm_proofs *all)
{
	while (LIST_FIRST(&all->all))
		forget(LIST_FIRST(&all->all));
}
