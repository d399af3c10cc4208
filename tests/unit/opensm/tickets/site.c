/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/opensm/tickets/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/unit/common/http/auth_files.h"

/* ---- fixture ---- */

static const struct {
	const char *node, *certificate, *key;
} nodes[NODES] = {{"hv1", "named.pem", "named.key"},
		  {"hv2", "by-uri.pem", "by-uri.key"},
		  {"hv3", "by-address.pem", "by-address.key"},
		  {"hv4", "client.pem", "client.key"}};

struct vhca_http_auth *own[NODES];
static struct vhca_http_auth *plugins; /* what each has, and trusts */
char names[NODES][VHCA_CALLER_NAME_MAX];
char texts[VHCA_TICKETS_MAX][VHCA_TICKET_MAX];
struct vhca_osm_proof proof; /* of the next report */

static void name_nodes(void)
{
	for (int n = 0; n < NODES; n++) {
		struct vhca_ticket ticket = {
			.vguid = FALSE_GUID, .epoch = 1, .port_guid = PORT(A), .name = "cert:x"};

		own[n] = auth_loaded(nodes[n].certificate, nodes[n].key, NULL, NULL);
		assert_int_equal(vhca_ticket_sign(own[n], &ticket, NULL), 0);
		assert_int_equal(vhca_ticket_verify(plugins, &ticket, names[n], NULL), 0);
	}
}

int site_group_setup(void **state)
{
	(void)auth_setup(state);
	plugins = auth_loaded(NULL, NULL, "ca.pem", NULL);
	name_nodes();
	return 0;
}

int site_group_teardown(void **state)
{
	for (int n = 0; n < NODES; n++)
		own[n] = vhca_http_auth_free(own[n]);
	plugins = vhca_http_auth_free(plugins);
	return auth_teardown(state);
}

void start(struct site *s)
{
	assert_int_equal(plugin_start(&s->p, NULL), 0);
	vhca_osm_owners_init(&s->owners, &s->p.conf, plugin_reports(&s->p)->table, plugins);
}

void stop(struct site *s)
{
	plugin_commit(&s->p);
	vhca_osm_owners_done(&s->owners);
	plugin_stop(&s->p);
}

static struct vhca_osm_node node_of(const struct site *s, int n)
{
	const struct vhca_osm_agent *line = vhca_osm_agents_find(&s->p.conf.agents, names[n]);

	return (struct vhca_osm_node){.name = line->node, .line = line};
}

/* As each has declared its keys. */
static void pin_ports(struct site *s)
{
	for (int n = 0; n < NODES; n++) {
		const struct vhca_osm_node by = node_of(s, n);

		assert_int_equal(vhca_osm_report_pin(plugin_reports(&s->p), &by, PORT(n), NULL), 0);
	}
}

int site_setup(void **state)
{
	struct site *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	plugin_init(&s->p);
	s->p.subnet.anything = true;
	s->p.conf.tickets = s->p.conf.agents.listed = true;
	s->p.conf.settle_s = 0;
	for (int n = 0; n < NODES; n++)
		assert_int_equal(
			vhca_osm_agents_add(&s->p.conf.agents, nodes[n].node, names[n], NULL), 0);
	assert_int_equal(vhca_osm_agents_sort(&s->p.conf.agents, NULL), 0);
	start(s);
	pin_ports(s);
	proof = (struct vhca_osm_proof){.n_tickets = 0};
	*state = s;
	return 0;
}

int site_teardown(void **state)
{
	struct site *s = *state;

	vhca_osm_owners_done(&s->owners);
	plugin_done(&s->p);
	free(s);
	return 0;
}

/* ---- what is said ---- */

/* The next report has this ticket as well. */
void with(int from, int to, uint64_t epoch)
{
	struct vhca_ticket ticket = {.vguid = FALSE_GUID, .epoch = epoch, .port_guid = PORT(to)};

	(void)vhca_strcpy(ticket.name, sizeof(ticket.name), names[to]);
	assert_int_equal(vhca_ticket_sign(own[from], &ticket, NULL), 0);
	proof.tickets[proof.n_tickets] = vhca_ticket_format(&ticket, texts[proof.n_tickets]);
	proof.n_tickets++;
}

/* That its signer has not signed so. */
void spoil(size_t i)
{
	char *of_signature = &texts[i][strlen(texts[i]) - 20];

	*of_signature = *of_signature == 'A' ? 'B' : 'A';
}

struct vhca_error said; /* by the last report */

/* The error's code, "" = yes. As the routes do it. */
const char *report_of(struct site *s, uint64_t vguid, int n, uint64_t port_guid, uint64_t epoch)
{
	const struct vhca_osm_node by = node_of(s, n);
	struct vhca_osm_reports *reports = plugin_reports(&s->p);
	struct vhca_osm_eviction ev;
	uint16_t pkey = 0x8001;
	struct vhca_osm_binding b = {.vguid = vguid,
				     .epoch = epoch,
				     .port_guid = port_guid,
				     .n_pkeys = 1,
				     .pkeys = &pkey};
	int r;

	said = (struct vhca_error)VHCA_ERROR_INIT;
	r = vhca_osm_report_check_speaker(reports, &by, b.port_guid, &said);
	if (r == 0)
		r = vhca_osm_owners_put(&s->owners, reports, &by, &b, &proof, 0, &ev, &said);
	if (r == 0)
		assert_int_equal(vhca_osm_owners_pin(&s->owners, reports, &by, b.port_guid, &said),
				 0);
	proof = (struct vhca_osm_proof){.n_tickets = 0};
	assert_true(r == 0 || said.kind);
	return said.code;
}

const char *report(struct site *s, int n, uint64_t epoch)
{
	return report_of(s, FALSE_GUID, n, PORT(n), epoch);
}

const char *declare(struct site *s, int n, uint64_t port_guid)
{
	const struct vhca_osm_node by = node_of(s, n);
	struct vhca_osm_reports *reports = plugin_reports(&s->p);
	int r;

	said = (struct vhca_error)VHCA_ERROR_INIT;
	r = vhca_osm_report_check_speaker(reports, &by, port_guid, &said);
	if (r == 0)
		r = vhca_osm_report_declare(reports, port_guid, NULL, 0, &said);
	if (r == 0)
		(void)vhca_osm_owners_pin(&s->owners, reports, &by, port_guid, &said);
	return said.code;
}

const char *settle(struct site *s, int n, uint64_t epoch)
{
	proof.settled = true;
	return report(s, n, epoch);
}

const char *withdraw(struct site *s, int n, uint64_t epoch, bool keep)
{
	static struct vhca_error err;
	const struct vhca_osm_node by = node_of(s, n);
	struct vhca_osm_reports *reports = plugin_reports(&s->p);
	bool nothing = false;
	int r;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	r = vhca_osm_report_check_withdrawer(reports, &by, FALSE_GUID, epoch, PORT(n), &err);
	if (r == 0)
		r = vhca_osm_owners_check_withdrawal(&s->owners, &by, FALSE_GUID, epoch, &nothing,
						     &err);
	if (r == 0 && !nothing)
		(void)vhca_osm_owners_withdraw(&s->owners, reports, &by, FALSE_GUID, epoch, PORT(n),
					       keep, &err);
	return err.code;
}

void admin_names(struct site *s, int n)
{
	assert_int_equal(vhca_osm_owners_name(&s->owners, FALSE_GUID, PORT(n), NULL), 0);
}

uint64_t bound_at(struct site *s)
{
	const struct vhca_osm_binding *b =
		vhca_osm_table_find(vhca_osm_service_table(s->p.service), FALSE_GUID);

	return b && !b->withdrawn ? b->port_guid : 0;
}

/* Its owner, settled; whoever else asks at a higher epoch, and withdraws it. */
void a_has_it(struct site *s, uint64_t epoch)
{
	says(report(s, A, epoch), "");
	says(report(s, X, epoch + 1), "not_the_owner");
	says(withdraw(s, X, epoch + 1, false), "not_the_owner");
	assert_int_equal(bound_at(s), PORT(A));
}

void time_to_report(struct site *s)
{
	s->owners.settle_at = vhca_now_ms() + 60000;
}

void all_have_reported(struct site *s)
{
	s->owners.settle_at = 0;
}
