/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The domains of a host, as libvirt shows them to its agent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/sim/host/world_int.h"
#include "tests/sim/libvirt/sim_domain.h"

const struct world_domain *world_domain_of(const struct world *w, const struct vhca_uuid *uuid)
{
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		if (vhca_uuid_equal(&w->domains[i].info.uuid, uuid))
			return &w->domains[i];
	return NULL;
}

void world_tell_removed(const struct world *w, const struct world_vf *t)
{
	char alias[80];

	(void)snprintf(alias, sizeof(alias), "%s%s", VHCA_ALIAS_PREFIX, t->name);
	if (w->engine && !w->virt_down && !w->events_lost)
		vhca_engine_device_removed(w->engine, &t->user, alias, vhca_now_us());
}

static struct vhca_dom_info *unreadable_info(const struct world *w, unsigned int i,
					     struct sim_live *live)
{
	const struct vhca_dom_info *info = &w->domains[i].info;

	live->info = (struct vhca_dom_info){
		.uuid = info->uuid, .held = w->domains[i].incoming, .hostdevs = live->hostdevs};
	(void)snprintf(live->info.name, sizeof(live->info.name), "%s", info->name);
	(void)vhca_error_set(&live->info.unreadable, VHCA_ERR_INVALID, "bad_domain_xml", 0,
			     "too large");
	return &live->info;
}

/* libvirt gives a device that somebody else has plugged in an alias of its own. */
static void show_vf(const struct world *w, const struct world_vf *vf, struct sim_live *live)
{
	bool is_ours = strncmp(vf->name, "hostdev", 7) != 0;
	struct vhca_dom_hostdev *dev =
		sim_live_add(live, vf->bdf, vf->guest, is_ours ? vf->name : "");

	dev->path.n = w->odd_bus ? 0 : 2;
	if (!is_ours)
		(void)snprintf(dev->alias, sizeof(dev->alias), "%s", vf->name);
}

static struct vhca_dom_info *live_info(const struct world *w, unsigned int i, struct sim_live *live)
{
	struct vhca_dom_info *ret = &live->info;

	if (w->domains[i].unreadable)
		return unreadable_info(w, i, live);
	sim_live_init(live, &w->domains[i].info);
	ret->held = w->domains[i].incoming && !w->shows_too_early;
	ret->paused = w->domains[i].paused;
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (world_domain_has(w, i, v))
			show_vf(w, &w->vfs[v], live);
	return ret;
}

static void tell_domain(struct world *w, unsigned int i)
{
	const struct world_domain *dom = &w->domains[i];
	struct sim_live live;

	if (!w->engine || w->virt_down)
		return;
	if (!dom->running && dom->transient)
		vhca_engine_no_domain(w->engine, &dom->info.uuid);
	else
		vhca_engine_domain(w->engine, &dom->info.uuid,
				   dom->running ? live_info(w, i, &live) : NULL);
}

struct look {
	struct world *w;
	struct vhca_uuid uuid;
};

static void on_look(void *arg)
{
	struct look *look = arg;
	struct world *w = look->w;
	bool known = false;

	for (unsigned int i = 0; i < WORLD_DOMAINS; i++)
		if (vhca_uuid_equal(&w->domains[i].info.uuid, &look->uuid)) {
			tell_domain(w, i);
			known = true;
		}
	if (!known && w->engine && !w->virt_down)
		vhca_engine_no_domain(w->engine, &look->uuid);
	free(look);
}

void world_refresh(void *ctx, const struct vhca_uuid *uuid)
{
	struct look *look = calloc(1, sizeof(*look));

	world_must(look != NULL, "out of memory");
	*look = (struct look){.w = ctx, .uuid = *uuid};
	world_later(look->w, on_look, look);
}

void world_sync_domains(struct world *w)
{
	struct sim_live lives[WORLD_DOMAINS];
	struct vhca_dom_info *list[WORLD_DOMAINS];
	unsigned int n = 0;

	if (!w->engine || w->virt_down)
		return;
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++) {
		if (!w->domains[i].running)
			continue;
		list[n] = live_info(w, i, &lives[n]);
		n++;
	}
	vhca_engine_virt_sync(w->engine, list, n);
}

struct vhca_uuid world_domain_start(struct world *w, unsigned int i, const char *partition)
{
	struct vhca_dom_info *info = &w->domains[i].info;

	sim_domain_init(info, i);
	if (partition)
		sim_domain_ask(info, "ib0", partition);
	w->domains[i].running = true;
	tell_domain(w, i);
	return info->uuid;
}

void world_ask(struct world *w, unsigned int i, const char *name, const char *partition)
{
	sim_domain_ask(&w->domains[i].info, name, partition);
	tell_domain(w, i);
}

void world_domain_stop(struct world *w, unsigned int i)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (world_domain_has(w, i, v))
			world_vf_unplug(&w->vfs[v]);
	w->domains[i].running = w->domains[i].incoming = false;
	w->domains[i].stopped_ms = vhca_now_ms();
	tell_domain(w, i);
}

void world_look(struct world *w, unsigned int i)
{
	tell_domain(w, i);
}

void world_incoming(struct world *w, unsigned int i, bool incoming)
{
	w->domains[i].running = true;
	w->domains[i].incoming = incoming;
	if (!incoming && w->engine && !w->virt_down && !w->events_lost)
		vhca_engine_guest_state(w->engine, &w->domains[i].info.uuid, true, vhca_now_us());
	tell_domain(w, i);
}

void world_plug(struct world *w, unsigned int v, unsigned int i, const char *name)
{
	(void)snprintf(w->vfs[v].driver, sizeof(w->vfs[v].driver), "vfio-pci");
	w->vfs[v].group_open = true;
	w->vfs[v].user = w->domains[i].info.uuid;
	(void)snprintf(w->vfs[v].name, sizeof(w->vfs[v].name), "%s", name);
	tell_domain(w, i);
}
