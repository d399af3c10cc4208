/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * No back end: whoever runs the SM has put the ports into their partitions. Nothing leaves the
 * host.
 */
#include <errno.h>

#include "sm/sm.h"

static int binding_request(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	(void)b;
	(void)ret;
	return -EOPNOTSUPP;
}

static enum vhca_sm_answer binding_answer(int status, struct json_object *body,
					  const struct vhca_error *err)
{
	(void)status;
	(void)body;
	(void)err;
	return VHCA_SM_ACCEPTED;
}

const struct vhca_sm_ops vhca_sm_none = {
	.name = "none",
	.binding_request = binding_request,
	.binding_answer = binding_answer,
};
