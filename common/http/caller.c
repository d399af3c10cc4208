// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who is at the other end of a connection: found at its first request, kept as long as it lasts. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/http/server_private.h"

/* The kernel's copy from the connect() on: what the process becomes later does not count. */
static int find_groups(int fd, struct vhca_caller *caller, gid_t own)
{
	socklen_t len = 0;
	gid_t *gids;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) < 0 && errno != ERANGE)
		return -errno;
	gids = malloc(len + sizeof(*gids));
	if (!gids)
		return -ENOMEM;
	caller->gids = gids;
	gids[0] = own;
	if (len > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids + 1, &len) < 0)
		return -errno;
	caller->n_gids = 1 + len / sizeof(*gids);
	return 0;
}

/* Numbers, not names: a directory service that is asked for a name may keep the loop waiting. */
static int find_local(int fd, struct vhca_caller *caller)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	caller->local = true;
	caller->uid = cred.uid;
	(void)snprintf(caller->name, sizeof(caller->name), "uid:%u", cred.uid);
	return find_groups(fd, caller, cred.gid);
}

static int find_remote(const struct sockaddr *addr, socklen_t len, struct vhca_caller *caller)
{
	static const char prefix[] = "address:";
	size_t n = sizeof(prefix) - 1;

	memcpy(caller->name, prefix, sizeof(prefix));
	if (getnameinfo(addr, len, caller->name + n, (socklen_t)(sizeof(caller->name) - n), NULL, 0,
			NI_NUMERICHOST) == 0)
		return 0;
	caller->name[0] = '\0';
	return -EIO;
}

static int find(int fd, struct vhca_caller *caller)
{
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
	} addr = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);

	if (getpeername(fd, &addr.any, &len) < 0)
		return -errno;
	return addr.any.sa_family == AF_UNIX ? find_local(fd, caller)
					     : find_remote(&addr.any, len, caller);
}

struct vhca_caller *vhca_http_caller_new(void)
{
	return calloc(1, sizeof(struct vhca_caller));
}

struct vhca_caller *vhca_http_caller_free(struct vhca_caller *caller)
{
	if (!caller)
		return NULL;
	vhca_caller_done(caller);
	free(caller);
	return NULL;
}

int vhca_http_caller_find(struct vhca_http_request *req)
{
	const struct vhca_caller_rules *rules = req->srv->rules;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct vhca_caller *caller = info ? info->socket_context : NULL;
	int r = caller ? 0 : -ENOMEM;

	if (caller && !caller->name[0])
		r = find(vhca_http_connection_fd(req), caller);
	if (r < 0) {
		if (caller) {
			vhca_caller_done(caller);
			caller->name[0] = '\0';
		}
		return r;
	}
	memcpy(req->who, caller->name, sizeof(req->who));
	req->role = rules ? vhca_caller_role(rules, caller) : VHCA_CALLER_ADMIN;
	return 0;
}

int vhca_http_caller_check(const struct vhca_http_request *req, enum vhca_caller_role needed,
			   struct vhca_error *err)
{
	const char *word = vhca_caller_role_to_string(needed);
	const struct vhca_caller_rules *rules = req->srv->rules;

	if (vhca_caller_may(req->role, needed))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_DENIED, "role_needed", 0,
			     "the role %s is needed, and %s has %s: %s %.80s", word, req->who,
			     vhca_caller_role_to_string(req->role), req->method, req->path);
	vhca_error_hint(
		err, "%s says who has it, besides root: ask as one of them, or have a rule added",
		rules->where);
	return -EACCES;
}

static bool is_change(const struct vhca_http_request *req)
{
	return strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0;
}

/* What agents report is no change that anybody has decided on, and thousands of them say it again when
 * the subnet manager is another one; only what they may not is told. */
void vhca_http_audit(const struct vhca_http_request *req, unsigned int status)
{
	bool report = req->role >= VHCA_CALLER_AGENT && status != MHD_HTTP_FORBIDDEN;

	if (!is_change(req) || req->role == VHCA_CALLER_NOBODY)
		return;
	vhca_log(report ? VHCA_LOG_DEBUG : VHCA_LOG_NOTICE, "audit: %s (%s) %s %.200s: %u%s%s",
		 req->who, vhca_caller_role_to_string(req->role), req->method, req->path, status,
		 *req->code ? " " : "", req->code);
}
