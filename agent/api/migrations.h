/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_MIGRATIONS_H
#define VHCA_AGENT_API_MIGRATIONS_H
/* /v1/migrations. ctx is the API; all answer at once: a migration runs on by itself. */
#include "common/http/server.h"

void vhca_api_get_migrations(void *ctx,
			     struct vhca_http_request *req); /* {migrations: [...]}, oldest first */
void vhca_api_get_migration(void *ctx, struct vhca_http_request *req);	 /* one, by id */
void vhca_api_post_migrations(void *ctx, struct vhca_http_request *req); /* 202 */
void vhca_api_extend_migration(void *ctx, struct vhca_http_request *req);
void vhca_api_abort_migration(void *ctx, struct vhca_http_request *req); /* 202 */

#endif
