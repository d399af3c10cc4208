/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host is and what the agent has counted, for Prometheus (docs/design/0021-metrics.md).
 * No guest names a label, so that none makes series.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/explain/readiness.h"
#include "common/base/exposition.h"
#include "common/base/file.h"
#include "config.h"

#define TEXT_MAX    65536
#define FABRICS_MAX 16 /* what is on more of them is counted without a name */

/* What is one number a fabric. */
enum fabric_gauge { GRANTED, PORTS, ACTIVE, DOWN_WITH_GUESTS, PKEYS, PKEYS_FREE, FABRIC_GAUGES };

static const struct {
	const char *name, *help;
} fabric_gauges[FABRIC_GAUGES] = {
	[GRANTED] = {"vfs_granted", "VFs whose GUID the subnet manager has granted."},
	[PORTS] = {"ports", "InfiniBand ports of the host."},
	[ACTIVE] = {"ports_active", "Those that are ACTIVE."},
	[DOWN_WITH_GUESTS] = {"ports_down_with_guests",
			      "Those that are not, and whose VFs guests have."},
	[PKEYS] = {"pkey_table_entries",
		   "P_Keys that the port with the least room can hold; 0: not known yet."},
	[PKEYS_FREE] = {"pkey_table_free", "How many more it can take."},
};

struct fabric {
	const char *name; /* borrowed; "" = that of the rest */
	uint64_t vfs[VHCA_VF_STATE_COUNT];
	uint64_t waiting[VHCA_AWAITS_SM + 1]; /* cloud's ports, by what they wait for */
	uint64_t gauges[FABRIC_GAUGES];
};

struct fabrics {
	struct fabric all[FABRICS_MAX + 1];
	unsigned int n;
};

static void count_port(const struct vhca_hca *hca, bool has_guests, struct fabric *f)
{
	const struct vhca_port_state *port = &hca->ports[hca->port > 0 ? hca->port - 1 : 0];
	uint64_t room = 0;

	f->gauges[DOWN_WITH_GUESTS] += has_guests && port->port && port->state != VHCA_PORT_ACTIVE;
	for (unsigned int i = 0; i < port->n_pkeys; i++)
		room += port->pkeys[i] == 0;
	if (!hca->managed || !port->n_pkeys || (f->gauges[PKEYS] && room >= f->gauges[PKEYS_FREE]))
		return;
	f->gauges[PKEYS] = port->n_pkeys;
	f->gauges[PKEYS_FREE] = room;
}

static void count_hca(const struct vhca_hca *hca, struct fabric *f)
{
	bool has_guests = false;
	const struct vhca_vf *vf;

	for (unsigned int i = 0; i < VHCA_PORTS_MAX; i++) {
		f->gauges[PORTS] += hca->ports[i].is_ib;
		f->gauges[ACTIVE] += hca->ports[i].is_ib && hca->ports[i].state == VHCA_PORT_ACTIVE;
	}
	TAILQ_FOREACH (vf, &hca->vfs, link) {
		f->vfs[vf->state]++;
		f->gauges[GRANTED] += vf->granted;
		if (vf->claim)
			f->waiting[vhca_claim_awaits(vf->claim)]++;
		has_guests = has_guests || vf->state == VHCA_VF_ATTACHED;
	}
	count_port(hca, has_guests, f);
}

static void count_fabrics(const struct vhca_model *m, struct fabrics *ret)
{
	const struct vhca_hca *first = NULL, *hca;

	while ((first = vhca_model_next_fabric(m, first, false))) {
		struct fabric *f = &ret->all[ret->n < FABRICS_MAX ? ret->n : FABRICS_MAX];

		f->name = ret->n < FABRICS_MAX ? first->fabric : "";
		ret->n += ret->n <= FABRICS_MAX;
		TAILQ_FOREACH (hca, &m->hcas, link)
			if (strcmp(hca->fabric, first->fabric) == 0)
				count_hca(hca, f);
	}
}

static void add_fabrics(struct vhca_exposition *e, const struct vhca_model *m)
{
	struct fabrics f = {.n = 0};

	count_fabrics(m, &f);
	vhca_exposition_begin(e, VHCA_GAUGE, "vfs", "VFs of the fabric in this state.");
	for (unsigned int i = 0; i < f.n; i++)
		for (unsigned int s = 0; s < VHCA_VF_STATE_COUNT; s++)
			vhca_exposition_add(e, f.all[i].vfs[s], "fabric=\"%s\",state=\"%s\"",
					    f.all[i].name,
					    vhca_vf_state_to_string((enum vhca_vf_state)s));
	vhca_exposition_begin(e, VHCA_GAUGE, "ports_waiting",
			      "Of those claimed, cloud's ports that wait: for their domain "
			      "(reserved), or for the SM (held back).");
	for (unsigned int i = 0; i < f.n; i++)
		for (unsigned int w = VHCA_AWAITS_NOTHING + 1; w <= VHCA_AWAITS_SM; w++)
			vhca_exposition_add(e, f.all[i].waiting[w], "fabric=\"%s\",for=\"%s\"",
					    f.all[i].name,
					    vhca_claim_await_to_string((enum vhca_claim_await)w));
	for (unsigned int g = 0; g < FABRIC_GAUGES; g++) {
		vhca_exposition_begin(e, VHCA_GAUGE, fabric_gauges[g].name, fabric_gauges[g].help);
		for (unsigned int i = 0; i < f.n; i++)
			vhca_exposition_add(e, f.all[i].gauges[g], "fabric=\"%s\"", f.all[i].name);
	}
}

static void add_operations(struct vhca_exposition *e, const struct vhca_model *m)
{
	const struct vhca_counters *c = &m->counters;

	vhca_exposition_begin(e, VHCA_COUNTER, "operations",
			      "What was done to VFs outside of the agent's memory, by outcome.");
	for (unsigned int i = VHCA_EFFECT_NONE + 1; i < VHCA_EFFECT_COUNT; i++) {
		const char *kind = vhca_effect_to_string((enum vhca_effect)i);

		vhca_exposition_add(e, m->effects[i].done, "kind=\"%s\",outcome=\"done\"", kind);
		vhca_exposition_add(e, m->effects[i].failed, "kind=\"%s\",outcome=\"failed\"",
				    kind);
	}
	vhca_exposition_counter(e, "grants", c->grants, "GUIDs that became granted.");
	vhca_exposition_counter(e, "grants_lost", c->grants_lost,
				"GUIDs that were no longer granted.");
	vhca_exposition_counter(
		e, "drift_repairs", c->drifts,
		"Identities that somebody else had changed, and that are restored.");
	vhca_exposition_counter(e, "quarantines", c->quarantines, "VFs that became quarantined.");
	vhca_exposition_counter(e, "port_claims_refused", c->ports_refused,
				"Claims of a cloud's port (ebrctl) that were refused.");
}

static void add_times(struct vhca_exposition *e, const struct vhca_api_args *a,
		      const struct vhca_counters *c)
{
	const struct vhca_histogram commits = vhca_store_commits(a->store);

	vhca_exposition_begin(e, VHCA_HISTOGRAM, "program_seconds",
			      "Writing a VF's identity and reading it back.");
	vhca_exposition_add_histogram(e, &c->program, "");
	vhca_exposition_begin(e, VHCA_HISTOGRAM, "attach_seconds",
			      "libvirt's attaching a VF to its guest.");
	vhca_exposition_add_histogram(e, &c->attach, "");
	vhca_exposition_begin(e, VHCA_HISTOGRAM, "unplug_seconds",
			      "From a VF's detaching to its being gone from its guest.");
	vhca_exposition_add_histogram(e, &c->unplug, "");
	vhca_exposition_begin(e, VHCA_HISTOGRAM, "blackout_seconds",
			      "A migrated guest without its VFs on this host's account.");
	vhca_exposition_add_histogram(e, &c->blackout_source, "side=\"source\"");
	vhca_exposition_add_histogram(e, &c->blackout_destination, "side=\"destination\"");
	vhca_exposition_begin(e, VHCA_HISTOGRAM, "store_commit_seconds",
			      "From a transaction's submission to its being durable.");
	vhca_exposition_add_histogram(e, &commits, "");
}

static void add_readiness(struct vhca_exposition *e, const struct vhca_api_args *a)
{
	struct vhca_finding found[VHCA_READINESS_COUNT];
	struct vhca_explain ex = api_look_from(a, NULL);

	vhca_exposition_gauge(e, "libvirt_connected", ex.virt_connected,
			      "1: there is a connection to libvirt.");
	vhca_exposition_gauge(e, "ready", !ex.beginning.kind, "1: as /readyz has it.");
	vhca_exposition_gauge(e, "drained", ex.drained, "1: the host gives no VFs to guests.");
	vhca_exposition_gauge(e, "store_writable", !ex.disk.kind,
			      "0: the state disk refuses what is written.");
	vhca_explain_readiness(&ex, found);
	vhca_exposition_begin(e, VHCA_GAUGE, "ready_reasons", "1: /readyz lists this reason.");
	for (unsigned int i = 0; i < VHCA_READINESS_COUNT; i++)
		vhca_exposition_add(e, found[i].status != VHCA_FINDING_OK, "code=\"%s\"",
				    found[i].step);
}

/* Parked guests are meant to be without. What this life has not seen leave is not counted. */
static uint64_t longest_without_vf(const struct vhca_api_args *a)
{
	const struct vhca_claim *c;
	uint64_t now = vhca_now_us(), longest = 0;

	TAILQ_FOREACH (c, &vhca_engine_model(a->engine)->claims, link) {
		const struct vhca_mig *m =
			c->migrating ? vhca_migrations_find(a->migrations, &c->migration) : NULL;

		if (m && m->source && m->mode != VHCA_MIG_MODE_PARK && c->removed_us &&
		    c->vf->state != VHCA_VF_ATTACHED && now - c->removed_us > longest)
			longest = now - c->removed_us;
	}
	return longest;
}

static void add_host(struct vhca_exposition *e, const struct vhca_api_args *a)
{
	vhca_exposition_begin(e, VHCA_GAUGE, "migration_without_vf_seconds",
			      "Longest that a guest which leaves this host has been without a VF "
			      "now; 0: there is none.");
	vhca_exposition_add_us(e, longest_without_vf(a));
	vhca_exposition_begin(e, VHCA_GAUGE, "loop_longest_seconds",
			      "Most CPU time that one callback of the event loop has used.");
	vhca_exposition_add_us(e, vhca_loop_max_callback_us(a->loop));
	vhca_exposition_counter(e, "loop_stalls", vhca_loop_slow_callbacks(a->loop),
				"Callbacks that used more than 50 ms of it.");
	vhca_exposition_begin(e, VHCA_GAUGE, "build_info", "1: of this version.");
	vhca_exposition_add(e, 1, "version=\"%s\"", VHCA_VERSION);
	vhca_exposition_gauge(e, "outbox_reports", vhca_outbox_pending(a->outbox),
			      "Reports that the subnet manager has not answered yet.");
	vhca_exposition_begin(e, VHCA_GAUGE, "outbox_oldest_seconds",
			      "Age of the oldest of them; 0: there is none.");
	vhca_exposition_add_us(e, vhca_outbox_oldest_ms(a->outbox) * 1000);
	vhca_exposition_gauge(e, "sm_reachable", vhca_outbox_reachable(a->outbox),
			      "0: the last exchange with the subnet manager has failed.");
}

static void add_answers(struct vhca_exposition *e, const struct vhca_http_answers *answers)
{
	vhca_exposition_begin(e, VHCA_COUNTER, "http_requests",
			      "Requests that were answered, by the caller's role and the status.");
	for (unsigned int i = 0; i < VHCA_HTTP_STATUSES_MAX && answers->rows[i].status; i++)
		for (unsigned int r = 0; r < VHCA_CALLER_ROLES; r++)
			if (answers->rows[i].by_role[r])
				vhca_exposition_add(
					e, answers->rows[i].by_role[r], "role=\"%s\",status=\"%u\"",
					vhca_caller_role_to_string((enum vhca_caller_role)r),
					answers->rows[i].status);
	vhca_exposition_begin(e, VHCA_HISTOGRAM, "http_request_seconds",
			      "From a request's head to its answer, whatever that waits for; "
			      "without long polls.");
	vhca_exposition_add_histogram(e, &answers->times, "");
}

void api_get_metrics(void *ctx, struct vhca_http_request *req)
{
	const struct api_context *api = ctx;
	struct vhca_model *m = api_model(ctx);
	char *text = malloc(TEXT_MAX);
	struct vhca_error err;
	struct vhca_exposition e;

	if (!text) {
		(void)vhca_error_no_memory(&err, "metrics");
		vhca_http_reply_error(req, &err);
		return;
	}
	vhca_exposition_init(&e, "vhcad", text, TEXT_MAX);
	add_readiness(&e, &api->args);
	add_host(&e, &api->args);
	add_fabrics(&e, m);
	add_operations(&e, m);
	add_times(&e, &api->args, &m->counters);
	add_answers(&e, api->answers);
	vhca_exposition_end(&e);
	vhca_http_reply_text(req, 200, VHCA_EXPOSITION_TYPE, text);
	free(text);
}
