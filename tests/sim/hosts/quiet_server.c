/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A server that no loop runs, for doors that a test knocks at by itself. */
#include "common/http/http_loop.h"

int __wrap_vhca_http_loop_attach(struct vhca_loop *loop, struct vhca_http_server *srv,
				 struct vhca_http_loop_server **ret);
int __wrap_vhca_http_loop_attach(struct vhca_loop *loop, struct vhca_http_server *srv,
				 struct vhca_http_loop_server **ret)
{
	(void)loop;
	*ret = (struct vhca_http_loop_server *)srv; /* never looked into */
	return 0;
}

struct vhca_http_loop_server *__wrap_vhca_http_loop_detach(struct vhca_http_loop_server *a);
struct vhca_http_loop_server *__wrap_vhca_http_loop_detach(struct vhca_http_loop_server *a)
{
	(void)a;
	return NULL;
}

void __wrap_vhca_http_loop_kick(struct vhca_http_loop_server *a);
void __wrap_vhca_http_loop_kick(struct vhca_http_loop_server *a)
{
	(void)a;
}
