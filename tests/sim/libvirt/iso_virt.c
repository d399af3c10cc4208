/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt, its QEMUs and their guests. A look at a domain is as old as the answer took; a detach is
 * only a request; a group closes some time after the device has left the XML.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/sim/host/iso.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/libvirt/sim_domain.h"

#define LOOK_MS 3
#define HANG_MS 60000

/* Of the tenants; the third has limited membership where the first is a full member. */
static const uint16_t tenants[][4] = {
	{0x8010, 0x8011, 0x8012},
	{0x8020, 0x0021, 0x8022},
	{0x8030, 0x8031, 0x0010},
};

void iso_virt_init(struct iso *it)
{
	for (unsigned int d = 0; d < TRUTH_DOMAINS; d++) {
		struct vhca_dom_info *info = &it->domains[d].info;
		struct truth_domain *t = &it->truth.domains[d];

		sim_domain_init(info, d);
		info->memory.kib = 1 << 20;
		(void)vhca_strcpy(t->uuid, sizeof(t->uuid), VHCA_UUID_STR(&info->uuid));
		t->keys = tenants[d % VHCA_ARRAY_SIZE(tenants)];
	}
	for (unsigned int v = 0; v < HW_VFS; v++) {
		it->listed[v] = TRUTH_NOBODY;
		it->truth.vfs[v].user = TRUTH_NOBODY;
	}
}

static int domain_of(const struct iso *it, const struct vhca_uuid *uuid)
{
	for (int d = 0; d < TRUTH_DOMAINS; d++)
		if (vhca_uuid_equal(&it->domains[d].info.uuid, uuid))
			return d;
	return TRUTH_NOBODY;
}

/* ---- live XML ---- */

struct look {
	struct iso *it;
	struct vhca_uuid uuid;
	bool active;
	struct sim_live live;
};

static struct vhca_dom_info *take_info(const struct iso *it, unsigned int d, struct sim_live *live)
{
	struct vhca_bdf host;

	sim_live_init(live, &it->domains[d].info);
	live->info.id = 1;
	for (unsigned int v = 0; v < HW_VFS; v++) {
		if (it->listed[v] != (int)d || (it->broken == ISO_FOREIGN_IGNORED && !it->ours[v]))
			continue;
		assert(!vhca_bdf_parse(it->truth.hw.vfs[v].bdf, &host));
		(void)sim_live_add(live, host, it->guest[v], it->ours[v] ? it->names[v] : "");
	}
	return &live->info;
}

static void on_look(void *arg)
{
	struct look *look = arg;

	if (look->it->virt_up)
		vhca_engine_domain(look->it->engine, &look->uuid,
				   look->active ? &look->live.info : NULL);
	free(look);
}

static void look_at(struct iso *it, unsigned int d)
{
	struct look *look;

	if (!it->engine || !it->virt_up)
		return;
	look = calloc(1, sizeof(*look));
	assert(look);
	look->it = it;
	look->uuid = it->domains[d].info.uuid;
	look->active = it->domains[d].running;
	(void)take_info(it, d, &look->live);
	vtime_after(VTIME_AGENT, LOOK_MS, on_look, look, free);
}

void iso_virt_refresh(void *ctx, const struct vhca_uuid *uuid)
{
	struct iso *it = ctx;
	int d = domain_of(it, uuid);

	if (d != TRUTH_NOBODY)
		look_at(it, (unsigned int)d);
}

void iso_virt_sync(struct iso *it)
{
	struct sim_live *lives = calloc(TRUTH_DOMAINS, sizeof(*lives));
	struct vhca_dom_info *list[TRUTH_DOMAINS];
	unsigned int n = 0;

	assert(lives);
	for (unsigned int d = 0; d < TRUTH_DOMAINS; d++) {
		if (!it->domains[d].running)
			continue;
		list[n] = take_info(it, d, &lives[n]);
		n++;
	}
	vhca_engine_virt_sync(it->engine, list, n);
	free(lives);
}

/* ---- QEMU and its guest ---- */

static unsigned int stamp(const struct iso *it, unsigned int v)
{
	return v | it->life[v] << 8;
}

static bool same_life(const struct iso *it, unsigned int s)
{
	return it->life[s & 0xff] == s >> 8;
}

static void on_guest_driver(struct iso *it, unsigned int s)
{
	if (!same_life(it, s) || !it->truth.hw.vfs[s & 0xff].open)
		return;
	hw_guest_driver(&it->truth.hw, s & 0xff);
	iso_sm_vports(it);
}

static void on_group_closed(struct iso *it, unsigned int s)
{
	if (!same_life(it, s))
		return;
	vhca_log_debug("world: VF %u is closed", s & 0xff);
	truth_closed(&it->truth, s & 0xff);
}

static void open_vf(struct iso *it, unsigned int v, unsigned int d, bool ours)
{
	it->listed[v] = (int)d;
	it->ours[v] = ours;
	it->life[v]++;
	truth_opened(&it->truth, v, (int)d);
	vhca_log_debug("world: VF %u is opened by vm%u%s", v, d,
		       it->truth.vfs[v].foreign ? ", which it is not for" : "");
	iso_later(it, false, iso_random(it, 2000), on_guest_driver, stamp(it, v));
}

/* The device leaves the XML; the process lets go of the group soon after, seldom much later. */
static void leave(struct iso *it, unsigned int v)
{
	it->listed[v] = TRUTH_NOBODY;
	if (it->truth.hw.vfs[v].open)
		iso_later(it, false, iso_random(it, iso_random(it, 8) ? 30 : 5000), on_group_closed,
			  stamp(it, v));
}

void iso_plug(struct iso *it, unsigned int v, unsigned int d)
{
	/*
	 * libvirt: it must be on vfio-pci (managed='no') and in no other domain; QEMU: the group
	 * must be closed
	 */
	if (!it->domains[d].running || it->listed[v] != TRUTH_NOBODY || it->truth.hw.vfs[v].open ||
	    strcmp(it->truth.hw.vfs[v].driver, "vfio-pci") != 0)
		return;
	it->stats.foreign++;
	it->guest[v] = (struct vhca_bdf){.bus = (uint8_t)(0x20 + v)};
	open_vf(it, v, d, false);
	look_at(it, d);
}

void iso_unplug(struct iso *it, unsigned int v)
{
	int d = it->listed[v];

	if (d == TRUTH_NOBODY)
		return;
	leave(it, v);
	look_at(it, (unsigned int)d);
}

void iso_guest_acts(struct iso *it)
{
	unsigned int v = iso_random(it, HW_VFS), n = 0, qp, port;

	while (!it->truth.hw.vfs[v].guest_driver && n++ < HW_VFS)
		v = (v + 1) % HW_VFS;
	if (n > HW_VFS)
		return;
	it->stats.qps++;
	if (it->truth.hw.card != HW_MLX4) {
		it->truth.hw.vports[v].known = 0;
		iso_sm_vports(it);
		return;
	}
	qp = iso_random(it, HW_QPS);
	port = iso_random(it, 8) == 0;
	hw_modify_qp(&it->truth.hw, v, qp, port, iso_random(it, 3));
}

/* ---- domains ---- */

void iso_random_keys(struct iso *it, unsigned int d, char *buf, size_t size)
{
	const uint16_t *keys = it->truth.domains[d].keys;
	unsigned int first = iso_random(it, 3), n = 1 + iso_random(it, 3);
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, size);
	for (unsigned int i = 0; i < n; i++)
		vhca_strbuf_add(&sb, "%s0x%04x", i ? " " : "", keys[(first + i) % 3]);
}

/* QEMU of a domain whose XML has VF v starts, some time after the hook let it pass. */
static void on_boot_with(struct iso *it, unsigned int s)
{
	unsigned int v = s & 0xff, d = s >> 8;

	if (it->domains[d].running && it->listed[v] == (int)d && !it->truth.hw.vfs[v].open)
		open_vf(it, v, d, false);
}

/* What an orchestrator does that claimed a VF: it stands in the XML, the hook is asked. */
static bool start_with_claims(struct iso *it, unsigned int d)
{
	struct vhca_hook_request req = {.op = "prepare", .subop = "begin", .has_uuid = true};
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_claim *c;
	unsigned int vfs[HW_VFS];

	req.uuid = it->domains[d].info.uuid;
	TAILQ_FOREACH (c, &vhca_engine_model(it->engine)->claims, link) {
		unsigned int v = iso_vf_at(it, c->vf->bdf);

		if (c->origin != VHCA_ORIGIN_CLAIM || domain_of(it, &c->domain) != (int)d ||
		    it->listed[v] != TRUTH_NOBODY)
			continue;
		vfs[req.n_hostdevs] = v;
		req.hostdevs[req.n_hostdevs++] = c->vf->bdf;
	}
	if (vhca_engine_hook(it->engine, &req, &err) < 0)
		return false;
	for (unsigned int i = 0; i < req.n_hostdevs; i++) {
		it->listed[vfs[i]] = (int)d;
		it->ours[vfs[i]] = false;
		it->guest[vfs[i]] = (struct vhca_bdf){.bus = (uint8_t)(0x10 + i)};
		iso_later(it, false, iso_random(it, 300), on_boot_with, vfs[i] | d << 8);
	}
	return true;
}

void iso_domain_boot(struct iso *it, unsigned int d, const char *partition)
{
	struct iso_domain *dom = &it->domains[d];

	/*
	 * The hook refuses while the agent is down (a VF in the XML), or is not ours to ask (none
	 * in it).
	 */
	if (dom->running || !it->engine || !start_with_claims(it, d))
		return;
	dom->info.n_requests = 0;
	if (*partition)
		sim_domain_ask(&dom->info, "ib0", partition);
	dom->running = true;
	look_at(it, d);
}

void iso_domain_start(struct iso *it, unsigned int d)
{
	char keys[64] = "";

	if (iso_random(it, 4))
		iso_random_keys(it, d, keys, sizeof(keys));
	iso_domain_boot(it, d, keys);
}

void iso_domain_stop(struct iso *it, unsigned int d)
{
	if (!it->domains[d].running)
		return;
	it->domains[d].running = false;
	if (it->truth.domains[d].unresponsive)
		truth_delay(&it->truth); /* its QPs end when its QEMU does */
	it->truth.domains[d].unresponsive = false;
	for (unsigned int v = 0; v < HW_VFS; v++)
		if (it->listed[v] == (int)d)
			leave(it, v);
	look_at(it, d);
}

/* ---- attach and detach ---- */

struct call {
	struct iso *it;
	struct vhca_vf *vf;
	enum vhca_effect effect;
	bool hangs;
	unsigned int v;
	struct vhca_uuid domain;
	char name[VHCA_NAME_MAX];
	bool has_guest;
	struct vhca_bdf guest;
	struct vhca_effect_result res;
};

static void on_answer(void *arg)
{
	struct call *call = arg;

	if (call->hangs)
		truth_call_hangs(&call->it->truth, call->v, false);
	vhca_engine_effect_done(call->it->engine, call->vf, call->effect, &call->res);
	free(call);
}

/* Few calls take long: another job has the domain, or a QEMU does not answer. */
static void answer(struct call *call, int r)
{
	call->res.rc = r;
	call->hangs = iso_random(call->it, 20) == 0;
	if (call->hangs)
		truth_call_hangs(&call->it->truth, call->v, true);
	vtime_after(VTIME_AGENT, iso_random(call->it, call->hangs ? HANG_MS : 6), on_answer, call,
		    free);
}

static struct call *new_call(struct iso *it, struct vhca_vf *vf, enum vhca_effect effect)
{
	struct call *call = calloc(1, sizeof(*call));

	assert(call);
	*call = (struct call){.it = it, .vf = vf, .effect = effect, .v = iso_vf_at(it, vf->bdf)};
	call->domain = vf->claim->domain;
	call->has_guest = vf->claim->has_guest;
	call->guest = vf->claim->guest;
	(void)vhca_strcpy(call->name, sizeof(call->name), vf->claim->name);
	return call;
}

static void on_attach(void *arg)
{
	struct call *call = arg;
	struct iso *it = call->it;
	int d = domain_of(it, &call->domain);

	if (!it->virt_up) {
		answer(call, sim_virt_lost(&call->res.err));
		return;
	}
	if (d == TRUTH_NOBODY || !it->domains[d].running) {
		answer(call, sim_virt_gone(&call->res.err));
		return;
	}
	if (it->listed[call->v] == d && it->ours[call->v]) {
		answer(call, 0); /* its alias is there already */
		return;
	}
	if (it->listed[call->v] != TRUTH_NOBODY || it->truth.hw.vfs[call->v].open) {
		answer(call, vhca_error_set(&call->res.err, VHCA_ERR_CONFLICT, "in_use", EBUSY,
					    "in use by another domain"));
		return;
	}
	it->stats.attaches++;
	it->guest[call->v] =
		call->has_guest ? call->guest : (struct vhca_bdf){.bus = (uint8_t)(call->v + 1)};
	(void)vhca_strcpy(it->names[call->v], sizeof(it->names[call->v]), call->name);
	open_vf(it, call->v, (unsigned int)d, true);
	answer(call, iso_random(it, 20) ? 0 : sim_virt_lost(&call->res.err));
}

void iso_virt_attach(struct iso *it, struct vhca_vf *vf)
{
	vtime_after(VTIME_AGENT, iso_random(it, 20), on_attach,
		    new_call(it, vf, VHCA_EFFECT_ATTACH), free);
}

static void on_guest_lets_go(struct iso *it, unsigned int s)
{
	if (same_life(it, s))
		iso_unplug(it, s & 0xff);
}

static void on_detach(void *arg)
{
	struct call *call = arg;
	struct iso *it = call->it;
	int d = domain_of(it, &call->domain);

	if (!it->virt_up) {
		answer(call, sim_virt_lost(&call->res.err));
		return;
	}
	if (d == TRUTH_NOBODY || it->listed[call->v] != d) {
		answer(call, vhca_error_set(&call->res.err, VHCA_ERR_NOT_FOUND, "no_such_device",
					    ENOENT, "no device with this alias"));
		return;
	}
	it->stats.detaches++;
	if (!it->truth.domains[d].unresponsive)
		iso_later(it, false, 10 + iso_random(it, 200), on_guest_lets_go,
			  stamp(it, call->v));
	answer(call, 0);
}

void iso_virt_detach(struct iso *it, struct vhca_vf *vf)
{
	vtime_after(VTIME_AGENT, iso_random(it, 20), on_detach,
		    new_call(it, vf, VHCA_EFFECT_DETACH), free);
}
