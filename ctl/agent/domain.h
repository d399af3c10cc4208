/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_AGENT_DOMAIN_H
#define VHCA_CTL_AGENT_DOMAIN_H
/* Commands that change one domain, their first argument. */
#include <json-c/json_object.h>

#include "ctl/cli/ctl.h"

/* POST /v1/domains/DOMAIN/verb. Prints the answer with --json, and leaves *ret NULL; else *ret
 * is it (caller puts it). */
int vhca_ctl_domain(const struct vhca_ctl *ctl, const char *verb, struct json_object *body,
		    struct json_object **ret, struct vhca_error *err);
/* The same with any method at /v1/domains/DOMAIN/vfs/NAME, the command's two arguments. */
int vhca_ctl_domain_vf(const struct vhca_ctl *ctl, const char *method, struct json_object *body,
		       struct json_object **ret, struct vhca_error *err);
/* Adds to body what the options say of a VF that is wanted: partition, guid, fabric, pf, numa. */
int vhca_ctl_add_wish(const struct vhca_ctl *ctl, struct json_object *body, struct vhca_error *err);

#endif
