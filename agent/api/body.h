/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_BODY_H
#define VHCA_AGENT_API_BODY_H
/* What the JSON bodies of several requests have in common. */
#include <json-c/json_object.h>

#include "agent/state/domain_info.h"

/* There is one (needed says with what), and it has no members but those of the NULL-terminated
 * list. */
int api_check_body(struct json_object *body, const char *const *members, const char *needed,
		   struct vhca_error *err);
/* Members pf and numa, both optional: which adapters will do. */
int api_parse_place(struct json_object *body, struct vhca_vf_request *ret, struct vhca_error *err);
/* Member lease, in seconds; *ret is 0 if there is none. */
int api_parse_lease(struct json_object *body, uint32_t *ret, struct vhca_error *err);
/* A body that has nothing but that. */
int api_parse_renewal(struct json_object *body, uint32_t *ret, struct vhca_error *err);

#endif
