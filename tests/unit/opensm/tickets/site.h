/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_OPENSM_TICKETS_SITE_H
#define VHCA_TESTS_UNIT_OPENSM_TICKETS_SITE_H
/*
 * Four nodes with certificates, of which the last means harm, on a fake subnet and a real state
 * directory. Failures fail the running test.
 */
#include "opensm/tickets/owners.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

enum { A, B, C, X, NODES };

#define PORT(n) FALSE_PORT(n)

extern struct vhca_http_auth *own[NODES]; /* what each has */
extern char names[NODES][VHCA_CALLER_NAME_MAX];
extern char texts[VHCA_TICKETS_MAX][VHCA_TICKET_MAX];
extern struct vhca_osm_proof proof; /* of the next report */
extern struct vhca_error said;	    /* by the last one */

struct site {
	struct plugin p;
	struct vhca_osm_owners owners;
};

/* For cmocka. */
int site_group_setup(void **state);
int site_group_teardown(void **state);
int site_setup(void **state);
int site_teardown(void **state);
#define test(f) cmocka_unit_test_setup_teardown(f, site_setup, site_teardown)

void start(struct site *s);
void stop(struct site *s);

/* The next report has this ticket as well. */
void with(int from, int to, uint64_t epoch);
/* That its signer has not signed so. */
void spoil(size_t i);
/* The error's code, "" = yes. As the routes do it. */
const char *report_of(struct site *s, uint64_t vguid, int n, uint64_t port_guid, uint64_t epoch);
/* That it has this port, and no keys of its own there. */
const char *declare(struct site *s, int n, uint64_t port_guid);
/* Of FALSE_GUID, at its own port. */
const char *report(struct site *s, int n, uint64_t epoch);
const char *settle(struct site *s, int n, uint64_t epoch);
const char *withdraw(struct site *s, int n, uint64_t epoch, bool keep);
void admin_names(struct site *s, int n);
/* A port; 0 = it is not bound. */
uint64_t bound_at(struct site *s);
/* Its owner, settled; whoever else asks at a higher epoch, and withdraws it. */
void a_has_it(struct site *s, uint64_t epoch);
/* Of settle. */
void time_to_report(struct site *s);
void all_have_reported(struct site *s);

#define says(call, code) assert_string_equal(call, code)

#endif
