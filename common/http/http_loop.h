/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_HTTP_LOOP_H
#define VHCA_HTTP_HTTP_LOOP_H
/* Attaches the HTTP server and the curl multi client to the event loop (a library of its own, so
 * that what links only client or server needs no libsystemd). */
#include "common/http/client.h"
#include "common/http/server.h"
#include "common/loop/loop.h"

struct vhca_http_loop_server;
/* Drives srv (borrowed; free this adapter first) from the loop. */
int vhca_http_loop_attach(struct vhca_loop *loop, struct vhca_http_server *srv,
			  struct vhca_http_loop_server **ret);
struct vhca_http_loop_server *vhca_http_loop_detach(struct vhca_http_loop_server *a);
/* To be called after replying outside of a handler, so that the answer leaves at once. */
void vhca_http_loop_kick(struct vhca_http_loop_server *a);

struct vhca_http_loop_client;
/* A client whose transfers run in the loop; _free() ends what is under way. */
int vhca_http_loop_client_new(struct vhca_loop *loop, struct vhca_http_loop_client **ret);
struct vhca_http_multi *vhca_http_loop_client_multi(struct vhca_http_loop_client *c); /* borrowed */
struct vhca_http_loop_client *vhca_http_loop_client_free(struct vhca_http_loop_client *c);

#endif
