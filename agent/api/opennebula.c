/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What OpenNebula's monitoring merges into the template of this host, ready-made: attributes in its
 * own syntax (docs/opennebula.md says which). It replaces attributes that come again and keeps
 * those that do not, so each one is printed always, with 0 if there is nothing.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "common/base/cleanup.h"
#include "config.h"

/* What a VM needs from a host, on one fabric or on all. */
struct supply {
	unsigned int vfs, pkeys, active_ports;
	int numa_node; /* of the adapter that has most of the VFs; -1: none, or not known */
};

/* Between quotation marks: the kernel chose some of these names. */
static void add_text(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s=\"", key);
	for (; *value; value++)
		fputc(isalnum((unsigned char)*value) || strchr("_-.:+/ ", *value) ? *value : '_',
		      f);
	fputc('"', f);
}

static void add_number(FILE *f, const char *key, uint64_t value)
{
	fprintf(f, "%s=\"%llu\"", key, (unsigned long long)value);
}

/* An attribute has no hyphen, as the names of fabrics and partitions may. */
static void add_named(FILE *f, const char *key, const char *name, int64_t value)
{
	fprintf(f, "%s_", key);
	for (; *name; name++)
		fputc(*name == '-' ? '_' : toupper((unsigned char)*name), f);
	fprintf(f, "=\"%lld\"\n", (long long)value);
}

static const struct vhca_port_state *port_of(const struct vhca_hca *hca)
{
	return &hca->ports[hca->port > 0 ? hca->port - 1 : 0];
}

static struct supply hca_supply(const struct vhca_api_args *a, const struct vhca_hca *hca)
{
	const struct vhca_port_state *port = port_of(hca);
	struct supply s = {.active_ports = port->state == VHCA_PORT_ACTIVE,
			   .numa_node = hca->facts.numa_node};
	const struct vhca_vf *vf;

	TAILQ_FOREACH (vf, &hca->vfs, link)
		s.vfs += !vhca_drain_is_on(a->drain) && vhca_engine_offers(a->engine, vf);
	for (unsigned int i = 0; i < port->n_pkeys; i++)
		s.pkeys += port->pkeys[i] == 0;
	return s;
}

static void add_hca(FILE *f, const struct vhca_api_args *a, const struct vhca_hca *hca)
{
	const struct vhca_port_state *port = port_of(hca);
	struct supply s = hca_supply(a, hca);

	fputs("IB_HCA=[ ", f);
	add_text(f, "NAME", hca->facts.ibdev);
	add_text(f, ", PF", VHCA_BDF_STR(hca->facts.bdf));
	add_text(f, ", FABRIC", hca->fabric);
	add_number(f, ", PORT", port->port);
	add_text(f, ", STATE", vhca_port_state_to_string(port->state));
	add_number(f, ", LID", port->lid);
	if (hca->facts.numa_node >= 0)
		add_number(f, ", NUMA_NODE", (uint64_t)hca->facts.numa_node);
	add_number(f, ", VFS", hca->facts.num_vfs);
	add_number(f, ", VFS_FREE", s.vfs);
	add_number(f, ", PKEYS_FREE", s.pkeys);
	fputs(" ]\n", f);
}

static void add_agent(FILE *f, const struct vhca_api_args *a)
{
	bool is_ready = vhca_engine_check_ready(a->engine, NULL) == 0;
	const char *status = vhca_drain_is_on(a->drain) ? "drained"
			     : is_ready			? "ready"
							: "not_ready";

	fputs("IB_AGENT=[ ", f);
	add_text(f, "NODE", a->conf->node_name);
	add_text(f, ", VERSION", VHCA_VERSION);
	add_text(f, ", STATUS", status);
	add_text(f, ", SM", a->sm->name);
	fputs(" ]\n", f);
}

/*
 * Of all adapters, or of those of a fabric. A VM gets all its P_Keys from one port: the room of
 * several does not add up.
 */
static struct supply supply_of(const struct vhca_api_args *a, const char *fabric)
{
	struct supply sum = {.numa_node = -1}, s;
	const struct vhca_hca *hca;
	unsigned int most = 0;

	TAILQ_FOREACH (hca, &vhca_engine_model(a->engine)->hcas, link) {
		if (!hca->present || !hca->managed || (fabric && strcmp(hca->fabric, fabric) != 0))
			continue;
		s = hca_supply(a, hca);
		sum.vfs += s.vfs;
		sum.pkeys = s.pkeys > sum.pkeys ? s.pkeys : sum.pkeys;
		sum.active_ports += s.active_ports;
		if (s.vfs > most) {
			most = s.vfs;
			sum.numa_node = s.numa_node;
		}
	}
	return sum;
}

/* Each once, also while its adapters are absent. */
static void add_fabrics(FILE *f, const struct vhca_api_args *a)
{
	const struct vhca_model *m = vhca_engine_model(a->engine);
	const struct vhca_hca *hca = NULL;
	struct supply s;

	while ((hca = vhca_model_next_fabric(m, hca, true))) {
		s = supply_of(a, hca->fabric);
		add_named(f, "IB_VF_FREE", hca->fabric, s.vfs);
		add_named(f, "IB_PKEYS_FREE", hca->fabric, s.pkeys);
		add_named(f, "IB_PORTS_ACTIVE", hca->fabric, s.active_ports);
		add_named(f, "IB_NUMA_NODE", hca->fabric, s.numa_node);
	}
}

/* VFs of guests in a partition that has a name, so that a VM can be placed beside its peers or away
 * from them. */
static void add_partitions(FILE *f, const struct vhca_api_args *a)
{
	struct vhca_model *m = vhca_engine_model(a->engine);
	const struct vhca_claim *claim;

	for (unsigned int i = 0; i < a->conf->n_partitions; i++) {
		const struct vhca_conf_partition *part = &a->conf->partitions[i];
		unsigned int n = 0;

		TAILQ_FOREACH (claim, &m->claims, link)
			n += api_claim_key(claim, part->pkey) != 0;
		add_named(f, "IB_GUESTS", part->name, n);
	}
}

static char *host_system(const struct vhca_api_args *a)
{
	struct supply all = supply_of(a, NULL);
	struct vhca_model *m = vhca_engine_model(a->engine);
	const struct vhca_hca *hca;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	add_agent(f, a);
	TAILQ_FOREACH (hca, &m->hcas, link)
		if (hca->present && hca->managed)
			add_hca(f, a, hca);
	fprintf(f, "IB_VF_FREE=\"%u\"\nIB_PKEYS_FREE=\"%u\"\nIB_PORTS_ACTIVE=\"%u\"\n", all.vfs,
		all.pkeys, all.active_ports);
	fprintf(f, "IB_NUMA_NODE=\"%d\"\n", all.numa_node);
	fprintf(f, "IB_SM_REACHABLE=\"%d\"\n", vhca_outbox_reachable(a->outbox));
	add_fabrics(f, a);
	add_partitions(f, a);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

void api_get_opennebula(void *ctx, struct vhca_http_request *req)
{
	VHCA_AUTO_FREE char *text = host_system(api_args(ctx));
	struct vhca_error err = VHCA_ERROR_INIT;

	if (text) {
		vhca_http_reply_text(req, 200, "text/plain; charset=utf-8", text);
		return;
	}
	(void)vhca_error_no_memory(&err, "probe");
	vhca_http_reply_error(req, &err);
}
