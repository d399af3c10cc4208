// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who is at the other end of a connection: found when it is accepted, kept as long as it lasts. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/message_ids.h"
#include "common/base/text.h"
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
	(void)snprintf(caller->from, sizeof(caller->from), "pid %d", cred.pid);
	return find_groups(fd, caller, cred.gid);
}

/* Whoever has a network of IPv6 has all addresses in it. */
static void take_key(const struct sockaddr *addr, const struct vhca_caller *caller,
		     struct vhca_http_source_key *ret)
{
	*ret = (struct vhca_http_source_key){.kind = 1};
	if (addr->sa_family == AF_INET) {
		ret->kind = 4;
		memcpy(ret->value, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
	} else if (addr->sa_family == AF_INET6) {
		ret->kind = 6;
		memcpy(ret->value, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr,
		       sizeof(ret->value));
	} else {
		memcpy(ret->value, &caller->uid, sizeof(caller->uid));
	}
}

static int find_caller(int fd, struct vhca_caller *caller, struct vhca_http_source_key *ret_key)
{
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
	} addr = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);
	int r = 0;

	if (getpeername(fd, &addr.any, &len) < 0)
		return -errno;
	if (addr.any.sa_family == AF_UNIX)
		r = find_local(fd, caller);
	else if (getnameinfo(&addr.any, len, caller->from, sizeof(caller->from), NULL, 0,
			     NI_NUMERICHOST) == 0)
		(void)snprintf(caller->name, sizeof(caller->name), "address:%s", caller->from);
	else
		r = -EIO;
	take_key(&addr.any, caller, ret_key);
	return r;
}

static int enter(struct vhca_http_server *srv, struct MHD_Connection *conn,
		 struct vhca_http_peer *peer)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct vhca_caller *caller = &peer->caller;
	struct vhca_http_source_key key;
	bool is_master;
	int r;

	if (!info)
		return -EIO;
	peer->visit.fd = info->connect_fd;
	info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	peer->visit.session = info ? info->tls_session : NULL;
	peer->conn = conn;
	r = find_caller(peer->visit.fd, caller, &key);
	if (r < 0)
		return r;
	is_master = caller->local && (caller->uid == 0 || caller->uid == geteuid());
	return vhca_http_door_enter(&srv->door, &peer->visit, &key, is_master);
}

struct vhca_http_peer *vhca_http_peer_new(struct vhca_http_server *srv, struct MHD_Connection *conn)
{
	struct vhca_http_peer *peer = calloc(1, sizeof(*peer));

	if (peer && enter(srv, conn, peer) < 0)
		return vhca_http_peer_free(srv, peer);
	return peer;
}

void vhca_http_peer_put(struct vhca_http_peer *peer, struct vhca_http_peers *list)
{
	if (peer->list)
		TAILQ_REMOVE(peer->list, peer, entry);
	peer->list = list;
	if (list)
		TAILQ_INSERT_TAIL(list, peer, entry);
}

void vhca_http_peer_let_go(const struct vhca_http_server *srv, struct vhca_http_peer *peer)
{
	if (!peer->held_by)
		return;
	(void)epoll_ctl(*peer->held_by, EPOLL_CTL_DEL, peer->visit.fd, NULL);
	(void)epoll_ctl(srv->gone_fd, EPOLL_CTL_DEL, peer->visit.fd, NULL);
	peer->held_by = NULL;
}

struct vhca_http_peer *vhca_http_peer_free(struct vhca_http_server *srv,
					   struct vhca_http_peer *peer)
{
	if (!peer)
		return NULL;
	vhca_http_door_taken(&srv->door, &peer->visit);
	vhca_http_door_leave(&srv->door, &peer->visit);
	vhca_http_peer_put(peer, NULL);
	vhca_http_peer_let_go(srv, peer); /* closing does not, if a child has it, too */
	vhca_caller_done(&peer->caller);
	free(peer);
	return NULL;
}

struct vhca_http_peer *vhca_http_peer_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* By what let the request in: the next one on the connection may have another token. */
static int find_name(struct vhca_http_request *req, struct vhca_http_peer *peer)
{
	const char *name = peer->caller.name;
	int r = 0;

	if (req->token && req->token->name[0]) {
		(void)snprintf(req->who, sizeof(req->who), "token:%s", req->token->name);
		return 0;
	}
	if (req->by_certificate && !peer->certificate[0])
		r = vhca_http_auth_name(req, peer->certificate);
	if (req->by_certificate)
		name = peer->certificate;
	else if (req->token)
		name = "token";
	return r < 0 ? r : vhca_strcpy(req->who, sizeof(req->who), name);
}

static enum vhca_caller_role find_role(const struct vhca_http_request *req,
				       const struct vhca_http_peer *peer)
{
	struct vhca_caller remote = {.local = false};

	if (!req->srv->rules)
		return VHCA_CALLER_ADMIN;
	if (req->token && req->token->name[0])
		return req->token->role;
	if (peer->caller.local)
		return vhca_caller_role(req->srv->rules, &peer->caller);
	(void)vhca_strcpy(remote.name, sizeof(remote.name), req->who); /* same size */
	return vhca_caller_role(req->srv->rules, &remote);
}

int vhca_http_caller_find(struct vhca_http_request *req)
{
	struct vhca_http_peer *peer = vhca_http_peer_of(req->conn);
	int r = find_name(req, peer);

	if (r < 0)
		return r;
	req->role = find_role(req, peer);
	if (req->role != VHCA_CALLER_NOBODY)
		vhca_http_door_know(&req->srv->door, &peer->visit);
	return vhca_strcpy(req->from, sizeof(req->from), peer->caller.from); /* same size */
}

int vhca_http_caller_check(const struct vhca_http_request *req, enum vhca_caller_role needed,
			   struct vhca_error *err)
{
	const char *word = vhca_caller_role_to_string(needed);
	const struct vhca_caller_rules *rules = req->srv->rules;

	if (vhca_caller_may(req->role, needed))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_ROLE_NEEDED, 0,
			     "the role %s is needed, and %s has %s: %s %.80s", word, req->who,
			     vhca_caller_role_to_string(req->role), req->method, req->path);
	if (strncmp(req->who, "token:", 6) == 0)
		vhca_error_hint(err, "the token's line in token_file says what it may");
	else
		vhca_error_hint(err, "ask as one who may: %s", rules->may);
	return -EACCES;
}

#define PATH_SHOWN 200

/* A client can send blanks, and so what reads like the words of another line. */
static const char *shown(const char *path, char buf[static PATH_SHOWN + 4])
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, PATH_SHOWN + 4);
	for (; *path && sb.len + 3 <= PATH_SHOWN; path++)
		vhca_strbuf_add(&sb, *path > ' ' && *path <= '~' ? "%c" : "%%%02x",
				(unsigned char)*path);
	vhca_strbuf_add(&sb, "%s", *path ? "..." : "");
	return buf;
}

/* As the man pages list them. */
static void tell(const struct vhca_http_request *req, enum vhca_log_level level, const char *path,
		 const char *status)
{
	const char *role = vhca_caller_role_to_string(req->role);
	bool refused = strcmp(req->code, VHCA_CODE_ROLE_NEEDED) == 0;

	vhca_log_event(level, refused ? VHCA_MESSAGE_REFUSED : VHCA_MESSAGE_CHANGE,
		       VHCA_LOG_FIELDS({"VHCA_WHO", req->who}, {"VHCA_ROLE", role},
				       {"VHCA_FROM", req->from}, {"VHCA_METHOD", req->method},
				       {"VHCA_PATH", path}, {"VHCA_STATUS", status},
				       {"VHCA_CODE", req->code}),
		       "audit: %s (%s, %s) %s %s: %s%s%s", req->who, role, req->from, req->method,
		       path, status, *req->code ? " " : "", req->code);
}

/*
 * Thousands of agents report again when the subnet manager is another one, and nobody has decided
 * on what they say: only what they may not is told. Whatever was done is told, and what has failed
 * here, perhaps in the middle; what was refused, which costs a caller nothing and changes nothing,
 * so often a minute.
 */
void vhca_http_audit(const struct vhca_http_request *req, unsigned int status)
{
	bool reads = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
	bool report = req->role >= VHCA_CALLER_AGENT && status != MHD_HTTP_FORBIDDEN;
	bool refused = status >= MHD_HTTP_BAD_REQUEST && status < MHD_HTTP_INTERNAL_SERVER_ERROR;
	char path[PATH_SHOWN + 4], text[16];

	if (reads || !req->who[0]) /* not let in */
		return;
	if (!report && refused &&
	    !vhca_ratelimit_allows(&req->srv->refusals, req->who, vhca_now_ms()))
		return;
	(void)snprintf(text, sizeof(text), "%u", status);
	tell(req, report ? VHCA_LOG_DEBUG : VHCA_LOG_NOTICE, shown(req->path, path), text);
}

void vhca_http_audit_sweep(struct vhca_http_server *srv, uint64_t now_ms)
{
	const char *who;
	uint64_t n;

	while ((who = vhca_ratelimit_next(&srv->refusals, now_ms, &n)))
		vhca_log_warning("audit: %s: %llu more refusals in a minute", who,
				 (unsigned long long)n);
}
