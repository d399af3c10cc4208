/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_LISTEN_H
#define VHCA_HTTP_LISTEN_H
/* Listening sockets; internal to the server. */
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

struct vhca_listener {
	int fd;
	char *path; /* of a unix socket, else NULL */
	dev_t dev;  /* which file at path is ours: a later instance may have replaced it */
	ino_t ino;
	uint16_t port; /* of TCP, else 0 */
};
#define VHCA_LISTENER_NULL \
	{                  \
		.fd = -1   \
	}

/* "unix:/path", "ADDRESS:PORT" or "[v6]:PORT"; non-blocking. A unix socket that nobody listens on
 * is replaced. */
int vhca_listen(const char *spec, mode_t sock_mode, struct vhca_listener *ret,
		struct vhca_error *err);
/* Removes the socket file if it still is the one made here, and frees. The descriptor is left
 * alone. */
void vhca_listener_done(struct vhca_listener *l);

#endif
