/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A host whose name somebody else uses: beside what its agent says, the SM and the other agents
 * hear from it what others have said, to them or to somebody else, with other epochs, keys and
 * ports (docs/design/0014-authority.md). It knows the numbers of all migrations, which a real one
 * would have to guess.
 */
#include "tests/sim/hosts/chaos_attacker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "agent/migration/list.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "tests/sim/host/vtime.h"

#define PAUSE_MS 500

static uint32_t draw(struct chaos_attacker *a, uint32_t n)
{
	a->rng ^= a->rng >> 12;
	a->rng ^= a->rng << 25;
	a->rng ^= a->rng >> 27;
	return (uint32_t)((a->rng * 0x2545f4914f6cdd1du) >> 33) % n;
}

/* ---- what it has heard ---- */

void chaos_overhear(struct chaos *c, unsigned int from, unsigned int to, const char *method,
		    const char *path, struct json_object *body)
{
	struct chaos_attacker *a = &c->attacker;
	struct chaos_heard *heard = &a->heard[a->n_heard % CHAOS_HEARD_MAX];

	if (!a->on || from == a->host)
		return;
	json_object_put(heard->body);
	*heard = (struct chaos_heard){.to = to};
	(void)snprintf(heard->method, sizeof(heard->method), "%s", method);
	(void)snprintf(heard->path, sizeof(heard->path), "%s", path);
	if (body)
		(void)json_object_deep_copy(body, &heard->body, NULL);
	a->n_heard++;
}

/* ---- what it makes of it ---- */

static void change_epoch(struct chaos_attacker *a, struct json_object *o)
{
	static const uint64_t steps[] = {0, 0, 1, 2, 100, UINT64_C(1) << 32, UINT64_C(1) << 40};
	struct json_object *epoch = o ? json_object_object_get(o, "epoch") : NULL;
	uint64_t step = steps[draw(a, VHCA_ARRAY_SIZE(steps))];

	if (epoch)
		json_object_object_add(
			o, "epoch", json_object_new_uint64(json_object_get_uint64(epoch) + step));
}

static void change_keys(struct chaos_attacker *a, struct json_object *o)
{
	struct json_object *keys = o ? json_object_object_get(o, "pkeys") : NULL;

	if (keys && draw(a, 2))
		json_object_array_add(keys, json_object_new_string("0x8003"));
}

static void change_port(struct chaos *c, struct json_object *body)
{
	struct json_object *to = json_object_object_get(body, "to");

	vhca_json_add_guid(to ? to : body, "port_guid", c->hosts[c->attacker.host].w.port_guid);
}

static void change_body(struct chaos *c, struct json_object *body)
{
	struct chaos_attacker *a = &c->attacker;
	struct json_object *vfs = json_object_object_get(body, "vfs");

	change_epoch(a, body);
	change_keys(a, body);
	if (a->takes)
		change_port(c, body);
	for (size_t i = 0; vfs && i < json_object_array_length(vfs); i++) {
		change_epoch(a, json_object_array_get_idx(vfs, i));
		change_keys(a, json_object_array_get_idx(vfs, i));
	}
}

/* A withdrawal, as whoever has said it, or as itself. */
static void change_path(struct chaos *c, char *path, size_t size)
{
	struct chaos_attacker *a = &c->attacker;
	char *port = strstr(path, "port_guid=");

	if (port && draw(a, 2))
		(void)snprintf(port, size - (size_t)(port - path), "port_guid=%s",
			       VHCA_GUID_STR(c->hosts[a->host].w.port_guid));
}

static void attack(struct chaos *c)
{
	struct chaos_attacker *a = &c->attacker;
	unsigned int n = a->n_heard < CHAOS_HEARD_MAX ? a->n_heard : CHAOS_HEARD_MAX;
	const struct chaos_heard *heard = &a->heard[draw(a, n)];
	struct chaos_heard forged = *heard;

	forged.body = NULL;
	if (heard->body)
		(void)json_object_deep_copy(heard->body, &forged.body, NULL);
	if (forged.to < CHAOS_HOSTS_MAX && (forged.to == a->host || draw(a, 3) == 0))
		forged.to = (a->host + 1 + draw(a, c->n_hosts - 1)) % c->n_hosts;
	if (forged.to >= CHAOS_HOSTS_MAX)
		forged.to = CHAOS_HOSTS_MAX + c->sm_master;
	change_path(c, forged.path, sizeof(forged.path));
	if (forged.body)
		change_body(c, forged.body);
	a->sent++;
	chaos_net_forge(c, &forged);
}

static void on_turn(void *arg)
{
	struct chaos *c = arg;
	struct chaos_attacker *a = &c->attacker;

	if (a->n_heard)
		attack(c);
	vtime_after(VTIME_WORLD, 1 + draw(a, PAUSE_MS), on_turn, c, NULL);
}

void chaos_attacker_begin(struct chaos *c, unsigned int host, uint64_t seed, bool takes)
{
	c->attacker =
		(struct chaos_attacker){.on = true, .host = host, .takes = takes, .rng = seed | 1};
	vtime_after(VTIME_WORLD, PAUSE_MS, on_turn, c, NULL);
}

void chaos_attacker_end(struct chaos *c)
{
	for (unsigned int i = 0; i < CHAOS_HEARD_MAX; i++)
		json_object_put(c->attacker.heard[i].body);
	c->attacker = (struct chaos_attacker){.on = false};
}

/* ---- what must not have come of it ---- */

static uint64_t mix(uint64_t sum, uint64_t x)
{
	sum = (sum ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 32;
}

static uint64_t sum_binding(const struct chaos *c, const struct vhca_osm_binding *b)
{
	uint64_t sum = b->vguid;

	if (b->port_guid == c->hosts[c->attacker.host].w.port_guid)
		return 0;
	sum = mix(mix(mix(sum, b->port_guid), b->epoch), b->withdrawn);
	for (uint16_t i = 0; i < b->n_pkeys; i++)
		sum = mix(sum, b->pkeys[i]);
	return sum;
}

uint64_t chaos_sum_of_others(struct chaos *c)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < c->ledger.n_ids; i++) {
		const struct vhca_osm_binding *b =
			sim_sm_find(chaos_master(c), c->ledger.ids[i].guid);

		sum = mix(sum, b ? sum_binding(c, b) : 1);
	}
	for (unsigned int h = 0; h < c->n_hosts; h++) {
		const struct vhca_osm_port *port =
			h == c->attacker.host ? NULL
					      : vhca_osm_table_port(chaos_master(c)->table,
								    c->hosts[h].w.port_guid);

		for (size_t k = 0; port && k < port->n_needs; k++)
			sum = mix(sum, port->needs[k].pkey);
	}
	for (unsigned int i = 0; i < c->n_lids; i++)
		sum = mix(mix(mix(sum, c->lids[i].vguid), c->lids[i].port), c->lids[i].vport);
	return sum;
}

void chaos_check_others(struct chaos *c, const char *path, uint64_t before)
{
	if (chaos_sum_of_others(c) != before)
		chaos_broken(c, CHAOS_RULE_AUTHORITY,
			     "host %u has changed what is another node's: %.80s", c->attacker.host,
			     path);
}

void chaos_check_forged(struct chaos *c, unsigned int to, const char *id, unsigned int status)
{
	const struct vhca_mig *m;
	struct vhca_uuid uuid;
	char name[16];

	(void)snprintf(name, sizeof(name), "host%u", c->attacker.host);
	if (status >= 300 || !c->hosts[to].ms || vhca_uuid_parse(id, &uuid))
		return;
	m = vhca_migrations_find(c->hosts[to].ms, &uuid);
	if (m && m->peer[0] && strcmp(m->peer, name) != 0)
		chaos_broken(c, CHAOS_RULE_AUTHORITY,
			     "host %u is heard at host %u for a migration of %s's",
			     c->attacker.host, to, m->peer);
}
