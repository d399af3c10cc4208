/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which port of an adapter carries its VFs' identities. The configuration says so, but what has
 * been programmed is on the port of then: looked for on the other one, it is a foreign key in a
 * guest, and the VF is taken from it. So claims keep their port, over restarts, too.
 */
#include "agent/vf/report.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"

/* A claim whose VF may be programmed; NULL = none. */
static const struct vhca_claim *keeper(const struct vhca_engine *e, const struct vhca_hca *hca)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c->vf && c->vf->hca == hca && c->boot != VHCA_BOOT_EARLIER)
			return c;
	return NULL;
}

/* What was read of the VFs is of the other port. */
static void look_anew(struct vhca_engine *e, struct vhca_hca *hca)
{
	struct vhca_vf *vf;

	TAILQ_FOREACH (vf, &hca->vfs, link) {
		vf->hw_known = false;
		vf->look_ms = 0;
		engine_mark(e, vf);
	}
	vhca_timer_arm_ms(e->requests, 0);
}

static void take_port(struct vhca_engine *e, struct vhca_hca *hca, uint8_t port)
{
	vhca_engine_declare_members(e); /* the old port needs nothing any more */
	hca->port = port;
	look_anew(e, hca);
	engine_declare_again(e, hca);
}

void engine_set_port(struct vhca_engine *e, struct vhca_hca *hca, uint8_t want)
{
	const struct vhca_claim *c = keeper(e, hca);
	uint8_t port = c ? c->port : want;
	bool is_first = !hca->want_port, is_new = hca->want_port != want;
	char label[192];

	hca->want_port = want;
	if (is_first)
		hca->port = port;
	else if (port != hca->port)
		take_port(e, hca, port);
	if (is_new && port != want)
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(hca->facts.bdf),
				"port %u is configured; port %u stays the VFs' until the last of "
				"their claims has ended (%s has %s)",
				want, port, engine_claim_label(c, label), VHCA_BDF_STR(c->vf->bdf));
}

void engine_settle_port(struct vhca_engine *e, struct vhca_hca *hca)
{
	if (!hca->want_port || hca->port == hca->want_port || keeper(e, hca))
		return;
	take_port(e, hca, hca->want_port);
	vhca_events_add(e->args.events, "port", VHCA_BDF_STR(hca->facts.bdf),
			"port %u carries the VFs' identities now", hca->port);
}
