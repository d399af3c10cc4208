/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_MIGRATE_H
#define VHCA_AGENT_LIBVIRT_MIGRATE_H
/*
 * The libvirt calls around a migration: blocking, on a strand, never on the state thread.
 * Contracts: agent/libvirt/virt.h.
 */
#include <libvirt/libvirt.h>

#include "agent/libvirt/virt.h"

#define VIRT_URI_MAX 256 /* with NUL */

/*
 * On a connection of its own: libvirtd stops reading from a client, keepalives included, while five
 * of its calls are under way, and migrations take minutes. *ret_called_us: when libvirt was told to
 * (vhca_now_us()); may be NULL.
 */
int virt_call_migrate(virConnectPtr conn, const struct vhca_uuid *uuid, const char *dest_uri,
		      const char *migrate_uri, const struct vhca_conf_copy *how,
		      uint64_t *ret_called_us, struct vhca_error *err);
int virt_call_abort(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_error *err);
int virt_call_job(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_virt_job *ret,
		  struct vhca_error *err);
int virt_call_no_start(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_error *err);
int virt_call_marker(virConnectPtr conn, const struct vhca_uuid *uuid,
		     const struct vhca_uuid *migration, bool autostart, struct vhca_error *err);

#endif
