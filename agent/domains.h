/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_DOMAINS_H
#define VHCA_AGENT_DOMAINS_H
/*
 * Between libvirt (agent/libvirt/virt.h) and the engine: every event about a domain becomes one
 * look at its live XML (bursts become one or two), and the attach, detach and ask effects become
 * libvirt calls.
 */
#include "agent/libvirt/virt.h"
#include "agent/migration/migration.h"
#include "agent/vf/engine.h"

struct vhca_domains;

/* Starts connecting to libvirt at uri; an absent libvirtd is no error. */
int vhca_domains_new(struct vhca_loop *loop, const char *uri, struct vhca_engine *engine,
		     struct vhca_domains **ret, struct vhca_error *err);
/* Bounded, even when libvirtd hangs. Accepts NULL, returns NULL. */
struct vhca_domains *vhca_domains_free(struct vhca_domains *d);
struct vhca_virt *vhca_domains_virt(struct vhca_domains *d); /* borrowed */

/* Reads the live XML again and tells the engine. */
void vhca_domains_refresh(struct vhca_domains *d, const struct vhca_uuid *uuid);
/*
 * The same; fn is called once the engine knows what libvirt said after this call (known), or that
 * libvirt has not answered in 3 s, or not at all: perhaps from inside.
 */
void vhca_domains_look(struct vhca_domains *d, const struct vhca_uuid *uuid,
		       void (*fn)(void *arg, bool known), void *arg);
/* MARK, UNMARK, COPY, CANCEL or JOB of a migration; conf tells where the peer is. */
void vhca_domains_migration(struct vhca_domains *d, const struct vhca_conf *conf,
			    struct vhca_mig *m, enum vhca_mig_effect effect);
/* ATTACH, DETACH or ASK. */
void vhca_domains_effect(struct vhca_domains *d, struct vhca_vf *vf, enum vhca_effect effect);

#endif
