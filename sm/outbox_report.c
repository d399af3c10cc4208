/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a row says, whatever its kind; the tables are in outbox_row.c. */
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "sm/outbox_row.h"

bool vhca_outbox_row_add_keys(struct vhca_outbox_row *row, const uint16_t *pkeys, size_t n)
{
	struct vhca_sm_members *m = &row->members;

	for (size_t i = 0; i < n; i++) {
		if (vhca_pkey_find(m->pkeys, m->n_pkeys, pkeys[i]) >= 0)
			continue;
		if (m->n_pkeys == VHCA_SM_PORT_PKEYS_MAX)
			return false;
		m->pkeys[m->n_pkeys++] = pkeys[i];
	}
	return true;
}

uint64_t vhca_outbox_row_port(const struct vhca_outbox_row *row)
{
	return row->kind == VHCA_OUTBOX_MEMBERS ? row->members.port_guid : row->binding.port_guid;
}

bool vhca_outbox_row_same_subject(const struct vhca_outbox_row *a, const struct vhca_outbox_row *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == VHCA_OUTBOX_MEMBERS ? a->members.port_guid == b->members.port_guid
					      : a->binding.vguid == b->binding.vguid;
}

bool vhca_outbox_row_is_move(const struct vhca_outbox_row *row)
{
	return row->kind == VHCA_OUTBOX_BINDING && !row->plain &&
	       vhca_sm_binding_is_move(&row->binding);
}

int vhca_outbox_row_request(const struct vhca_sm_ops *ops, const struct vhca_outbox_row *row,
			    struct vhca_sm_request *ret)
{
	if (row->kind == VHCA_OUTBOX_MEMBERS)
		return ops->members_request(&row->members, ret);
	if (vhca_outbox_row_is_move(row))
		return ops->commit_request(&row->binding, ret);
	return ops->binding_request(&row->binding, ret);
}

enum vhca_sm_answer vhca_outbox_row_answer(const struct vhca_sm_ops *ops,
					   const struct vhca_outbox_row *row,
					   const struct vhca_http_result *res,
					   const struct vhca_error *err)
{
	if (row->kind == VHCA_OUTBOX_MEMBERS)
		return ops->members_answer(res->status, res->body);
	if (vhca_outbox_row_is_move(row))
		return ops->commit_answer(res->status, res->body);
	return ops->binding_answer(res->status, res->body, err);
}

bool vhca_outbox_row_waits_alone(int status, struct json_object *problem)
{
	/* Their statuses else speak of the SM as a whole, or of whoever asks. */
	static const char *const codes[] = {VHCA_CODE_NOT_YOUR_PORT, VHCA_CODE_KEYS_ON_THE_WAY,
					    VHCA_CODE_CHANGED_MEANWHILE,
					    VHCA_CODE_TICKET_NOT_VALID};

	return status == 409 || status == 429 || status == 500 || status == 507 ||
	       vhca_json_problem_find(problem, codes, VHCA_ARRAY_SIZE(codes)) >= 0;
}

bool vhca_outbox_row_lacks_owner(struct json_object *problem)
{
	static const char *const codes[] = {VHCA_CODE_TICKET_NOT_VALID, VHCA_CODE_OWNER_DISPUTED,
					    VHCA_CODE_OWNER_UNKNOWN};

	return vhca_json_problem_find(problem, codes, VHCA_ARRAY_SIZE(codes)) >= 0;
}

void vhca_outbox_row_log_dropped(const struct vhca_outbox_row *row, enum vhca_sm_answer answer,
				 const char *reason)
{
	const struct vhca_sm_binding *b = &row->binding;

	/* A withdrawal that a later owner has overtaken is how a hand-over ends. */
	if (row->kind == VHCA_OUTBOX_MEMBERS)
		vhca_log_warning("port %s: the SM dropped the declaration of its partitions: %s",
				 VHCA_GUID_STR(row->members.port_guid), reason);
	else if (!b->bound && answer == VHCA_SM_SUPERSEDED)
		vhca_log_info("%s: another owner was there before the withdrawal of epoch %llu",
			      VHCA_GUID_STR(b->vguid), (unsigned long long)b->epoch);
	else
		vhca_log_warning("%s: the SM dropped the report of epoch %llu: %s",
				 VHCA_GUID_STR(b->vguid), (unsigned long long)b->epoch, reason);
}

struct json_object *vhca_outbox_row_to_json(const struct vhca_outbox_row *row)
{
	struct json_object *obj = json_object_new_object();
	const char *kind = vhca_outbox_row_is_move(row) ? "move" : "binding";

	vhca_json_add_u64(obj, "seq", row->seq);
	vhca_json_add_string(obj, "kind", row->kind == VHCA_OUTBOX_MEMBERS ? "members" : kind);
	if (row->kind == VHCA_OUTBOX_BINDING) {
		vhca_json_add_guid(obj, "vguid", row->binding.vguid);
		vhca_json_add_u64(obj, "epoch", row->binding.epoch);
		vhca_json_add_bool(obj, "bound", row->binding.bound);
	}
	vhca_json_add_guid(obj, "port_guid", vhca_outbox_row_port(row));
	return obj;
}
