/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/opensm/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "opensm/bindings/publisher.h"

/* ---- the false subnet ---- */

static bool false_busy(void *ctx)
{
	return ((struct false_subnet *)ctx)->busy;
}

static void false_status(void *ctx, struct vhca_osm_status *ret)
{
	*ret = ((struct false_subnet *)ctx)->status;
}

static bool find_port(void *ctx, uint64_t guid, struct vhca_osm_port_info *ret)
{
	const struct false_subnet *f = ctx;

	*ret = f->ports[0];
	for (unsigned int i = 0; i < f->n_ports; i++) {
		if (guid != FALSE_PORT(i))
			continue;
		*ret = f->ports[i];
		return true;
	}
	return f->anything && guid != f->gone;
}

static bool find_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	const struct false_subnet *f = ctx;

	*ret = f->alias;
	return guid == FALSE_GUID && f->alias_known;
}

static bool is_physical(void *ctx, uint64_t guid)
{
	const struct false_subnet *f = ctx;

	return f->physical && guid == f->physical;
}

static bool has_pkey(void *ctx, uint64_t port, uint16_t pkey)
{
	const struct false_subnet *f = ctx;

	(void)port;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(f->pkeys); i++)
		if (f->pkeys[i] == pkey)
			return true;
	return false;
}

static void each_port(void *ctx, vhca_osm_port_fn fn, void *arg)
{
	const struct false_subnet *f = ctx;

	for (unsigned int i = 0; i < f->n_ports; i++)
		fn(arg, FALSE_PORT(i), f->pkeys, i == 0 ? VHCA_ARRAY_SIZE(f->pkeys) : 1);
	for (uint32_t i = 0; i < f->crowd; i++)
		fn(arg, FALSE_CROWD(i), f->pkeys, 1);
}

static int apply(void *ctx)
{
	struct false_subnet *f = ctx;

	if (f->sweeping)
		return -EBUSY;
	f->applied += f->applies;
	return f->applies ? 0 : -EAGAIN;
}

static size_t unanswered(void *ctx)
{
	return ((struct false_subnet *)ctx)->unanswered;
}

static void sweep(void *ctx)
{
	((struct false_subnet *)ctx)->sweeps++;
}

const struct vhca_osm_subnet_ops false_subnet_ops = {
	.is_busy = false_busy,
	.status = false_status,
	.find_port = find_port,
	.find_alias = find_alias,
	.is_physical = is_physical,
	.has_pkey = has_pkey,
	.each_port = each_port,
	.apply = apply,
	.unanswered = unanswered,
	.sweep = sweep,
};

/* A master, and two ports that are active. */
static void subnet_init(struct false_subnet *f)
{
	*f = (struct false_subnet){
		.status = {.sm_state = "master", .master = true, .ready = true, .version = "false"},
		.n_ports = 2,
	};
	for (unsigned int i = 0; i < FALSE_PORTS; i++)
		f->ports[i] = (struct vhca_osm_port_info){.lid = (uint16_t)(5 + i),
							  .state = VHCA_OSM_PORT_ACTIVE,
							  .pkey_cap = i ? 32 : 128};
}

/* ---- the plugin ---- */

void plugin_init(struct plugin *p)
{
	memset(p, 0, sizeof(*p));
	vhca_log_set_level(VHCA_LOG_ERROR);
	tree_init(&p->tree);
	subnet_init(&p->subnet);
	p->sees = (struct vhca_osm_subnet){&false_subnet_ops, &p->subnet};
	vhca_osm_conf_set_defaults(&p->conf);
	(void)snprintf(p->conf.state_dir, sizeof(p->conf.state_dir), "%s/state", p->tree.root);
}

void plugin_done(struct plugin *p)
{
	p->mover = vhca_osm_mover_free(p->mover);
	if (p->api)
		vhca_osm_gate_done(&p->gate);
	p->api = vhca_osm_api_free(p->api);
	plugin_stop(p);
	vhca_osm_conf_done(&p->conf);
	tree_done(&p->tree);
}

int plugin_start(struct plugin *p, struct vhca_error *err)
{
	return vhca_osm_service_new(&p->conf, p->sees.ops, p->sees.ctx, &p->service, err);
}

void plugin_stop(struct plugin *p)
{
	p->service = vhca_osm_service_free(p->service);
}

int plugin_setup(void **state)
{
	struct plugin *p = malloc(sizeof(*p));

	assert_non_null(p);
	plugin_init(p);
	assert_int_equal(plugin_start(p, NULL), 0);
	*state = p;
	return 0;
}

int plugin_teardown(void **state)
{
	plugin_done(*state);
	free(*state);
	return 0;
}

void plugin_serve(struct plugin *p, const struct vhca_osm_lid_ops *lids)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)tree_path(&p->tree, "sm.sock", p->socket);
	assert_true((size_t)snprintf(p->conf.listen, sizeof(p->conf.listen), "unix:%s", p->socket) <
		    sizeof(p->conf.listen));
	assert_int_equal(plugin_start(p, &err), 0);
	assert_int_equal(vhca_osm_gate_init(&p->gate), 0);
	assert_int_equal(vhca_osm_mover_new(lids, p, &p->gate, &p->mover), 0);
	assert_int_equal(vhca_osm_api_new(&p->conf, p->service, p->mover, &p->api, &err), 0);
}

/* ---- what is said to it ---- */

struct vhca_osm_reports *plugin_reports(const struct plugin *p)
{
	return vhca_osm_service_reports(p->service);
}

const char *plugin_put(struct plugin *p, uint64_t epoch, uint64_t port, uint16_t pkey)
{
	static struct vhca_error err;
	struct vhca_osm_eviction ev;
	struct vhca_osm_binding b = {.vguid = FALSE_GUID,
				     .epoch = epoch,
				     .port_guid = port,
				     .gid_index = 3,
				     .n_pkeys = 1,
				     .pkeys = &pkey};

	err = (struct vhca_error)VHCA_ERROR_INIT;
	return vhca_osm_report_put(plugin_reports(p), &b, 0, &ev, &err) < 0 ? err.code : "";
}

void plugin_commit(struct plugin *p)
{
	assert_int_equal(vhca_osm_service_commit(p->service, NULL), 0);
}

void plugin_at(struct plugin *p, uint64_t ms_later)
{
	p->skew += ms_later;
	vhca_osm_service_publish(p->service, vhca_now_ms() + p->skew);
}

void plugin_settle(struct plugin *p)
{
	plugin_at(p, VHCA_OSM_BURST_MS);
}

bool plugin_shows(const struct plugin *p, const char *text)
{
	VHCA_AUTO_FREE char *file = NULL;
	size_t len;

	assert_int_equal(
		vhca_read_file(vhca_osm_service_partition_file(p->service), 1 << 20, &file, &len),
		0);
	return strstr(file, text) != NULL;
}

void plugin_set_base(struct plugin *p, const char *name)
{
	(void)snprintf(p->conf.base_file, sizeof(p->conf.base_file), "%s/%s", p->tree.root, name);
}
