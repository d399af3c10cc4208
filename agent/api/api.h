/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_API_H
#define VHCA_AGENT_API_API_H
/*
 * The agent's HTTP API (docs/openapi.yaml). Reads answer from memory; mutations answer when their
 * transaction has ended.
 */
#include "agent/api/context.h"

struct vhca_api;

/* Listens on run_dir/vhcad.sock (mode 0600, or 0660 and the configured group) and, if it is set, on
 * [api] listen. */
int vhca_api_new(const struct vhca_api_args *args, struct vhca_api **ret, struct vhca_error *err);
struct vhca_api *vhca_api_free(struct vhca_api *api); /* accepts NULL, returns NULL */

#endif
