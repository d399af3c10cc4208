/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Both ends of what agents ask each other, with certificates: who gets through, and whom a source
 * believes.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/x509.h>
#include <json-c/json_tokener.h>

#include "agent/api/peer_server.h"
#include "agent/migration/peer.h"
#include "common/base/cleanup.h"
#include "common/http/http_loop.h"
#include "tests/unit/common/http/certs.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct tree dir;
static struct vhca_mig_result answer;
static unsigned int answers;
static const struct vhca_mig *known; /* the only one behind the door */
static unsigned int changes;	     /* offers, hand-overs and aborts that were let through to it */

/* Whoever is let in hears that there is none. */
const struct vhca_mig *__wrap_vhca_migrations_find(struct vhca_migrations *ms,
						   const struct vhca_uuid *id);
const struct vhca_mig *__wrap_vhca_migrations_find(struct vhca_migrations *ms,
						   const struct vhca_uuid *id)
{
	(void)ms;
	(void)id;
	return known;
}

static void refuse_change(vhca_mig_waiter_fn done, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	changes++;
	(void)vhca_error_set(&err, VHCA_ERR_CONFLICT, "let_through", 0, "by the door");
	done(arg, NULL, &err);
}

void __wrap_vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
				  vhca_mig_waiter_fn done, void *arg);
void __wrap_vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
				  vhca_mig_waiter_fn done, void *arg)
{
	(void)ms;
	(void)offer;
	refuse_change(done, arg);
}

void __wrap_vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
				vhca_mig_waiter_fn done, void *arg);
void __wrap_vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
				vhca_mig_waiter_fn done, void *arg)
{
	(void)ms;
	(void)id;
	refuse_change(done, arg);
}

void __wrap_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res);
void __wrap_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res)
{
	(void)m;
	assert_int_equal(effect, VHCA_MIG_EFFECT_STATUS);
	answer = *res;
	answers++;
}

static unsigned int verified; /* chains of clients */

int __real_gnutls_x509_trust_list_verify_crt2(gnutls_x509_trust_list_t list,
					      gnutls_x509_crt_t *chain, unsigned int n,
					      gnutls_typed_vdata_st *data, unsigned int n_data,
					      unsigned int flags, unsigned int *wrong,
					      gnutls_verify_output_function *fn);
int __wrap_gnutls_x509_trust_list_verify_crt2(gnutls_x509_trust_list_t list,
					      gnutls_x509_crt_t *chain, unsigned int n,
					      gnutls_typed_vdata_st *data, unsigned int n_data,
					      unsigned int flags, unsigned int *wrong,
					      gnutls_verify_output_function *fn);
int __wrap_gnutls_x509_trust_list_verify_crt2(gnutls_x509_trust_list_t list,
					      gnutls_x509_crt_t *chain, unsigned int n,
					      gnutls_typed_vdata_st *data, unsigned int n_data,
					      unsigned int flags, unsigned int *wrong,
					      gnutls_verify_output_function *fn)
{
	verified++;
	return __real_gnutls_x509_trust_list_verify_crt2(list, chain, n, data, n_data, flags, wrong,
							 fn);
}

static int setup(void **state)
{
	(void)state;
	tree_init(&dir);
	return certs_make(dir.root);
}

static int teardown(void **state)
{
	(void)state;
	tree_done(&dir);
	return 0;
}

/* Names in the tree; NULL = none. */
static struct vhca_http_auth *auth_of(const char *certificate, const char *key,
				      const char *authority)
{
	const struct vhca_http_auth_files files = {
		.certificate = certificate ? TREE_PATH(&dir, certificate) : NULL,
		.key = key ? TREE_PATH(&dir, key) : NULL,
		.authority = authority ? TREE_PATH(&dir, authority) : NULL,
	};
	struct vhca_http_auth *auth = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	return auth;
}

/* An agent's files: its own certificate, and whose it believes. */
static struct vhca_http_auth *agent(void)
{
	return auth_of("client.pem", "client.key", "ca.pem");
}

static struct vhca_http_auth *door(void)
{
	return auth_of("server.pem", "server.key", "ca.pem");
}

static unsigned int free_port(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(here);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&here, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &len), 0);
	(void)close(fd);
	return ntohs(here.sin_port);
}

struct hosts {
	struct vhca_loop *loop;
	struct vhca_conf conf;
	struct vhca_http_auth *door_auth;
	struct vhca_peer_api *door;
	struct vhca_http_loop_client *client;
};

static void hosts_begin(struct hosts *h, const char *scheme, struct vhca_http_auth *door_auth)
{
	const struct vhca_peer_api_parts parts = {.auth = door_auth};
	struct vhca_conf_peer *peer = &h->conf.peers[0];
	struct vhca_error err = VHCA_ERROR_INIT;
	unsigned int port = free_port();

	h->conf.n_peers = 2;
	(void)snprintf(h->conf.peers[1].name, sizeof(h->conf.peers[1].name), "hvc");
	(void)snprintf(h->conf.peers[1].certificate, sizeof(h->conf.peers[1].certificate),
		       "cert:hv1.example.org");
	h->door_auth = door_auth;
	(void)snprintf(peer->name, sizeof(peer->name), "hvb");
	(void)snprintf(peer->agent, sizeof(peer->agent), "%s://127.0.0.1:%u", scheme, port);
	(void)snprintf(peer->certificate, sizeof(peer->certificate), "cert:localhost");
	(void)snprintf(h->conf.peer_listen, sizeof(h->conf.peer_listen), "127.0.0.1:%u", port);
	assert_int_equal(vhca_loop_new(&h->loop), 0);
	if (vhca_peer_api_new(h->loop, &h->conf, &parts, &h->door, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(vhca_http_loop_client_new(h->loop, &h->client), 0);
}

static void hosts_end(struct hosts *h)
{
	(void)vhca_http_loop_client_free(h->client);
	(void)vhca_peer_api_free(h->door);
	(void)vhca_http_auth_free(h->door_auth);
	(void)vhca_loop_free(h->loop);
}

/* The code of the answer to a source that shows `auth` (freed); "" = success. */
static const char *ask(struct hosts *h, struct vhca_http_auth *auth)
{
	struct vhca_mig mig = {.peer = "hvb"};
	struct vhca_peer *source = NULL;

	assert_int_equal(vhca_peer_new(h->loop, vhca_http_loop_client_multi(h->client), &h->conf,
				       auth, &source),
			 0);
	answers = 0;
	vhca_peer_effect(source, &mig, VHCA_MIG_EFFECT_STATUS);
	while (!answers)
		assert_true(vhca_loop_once(h->loop, 60000) > 0);
	(void)vhca_peer_free(source);
	(void)vhca_http_auth_free(auth);
	return answer.rc < 0 ? answer.err.code : "";
}

/* ---- what a peer is heard on ---- */

static char code[VHCA_ERROR_CODE_MAX]; /* of the answer */

static void on_answer(void *arg, int rc, const struct vhca_http_result *res,
		      const struct vhca_error *err)
{
	(void)arg;
	(void)res;
	(void)snprintf(code, sizeof(code), "%s", rc < 0 ? err->code : "");
	answer.err = rc < 0 ? *err : (struct vhca_error)VHCA_ERROR_INIT;
	answers++;
}

#define CLAIMS "/v1/peer/claims/6d3a0000-0000-4000-8000-000000000001"
#define OFFER                                                                             \
	"{\"domain\":\"6d3a0000-0000-4000-8000-000000000002\",\"name\":\"vm\",\"vfs\":[{" \
	"\"name\":\"ib0\",\"way\":\"metadata\",\"fabric\":\"default\",\"epoch\":1,"       \
	"\"guid\":\"0x02c9ab0000000001\",\"pkeys\":[\"0x8001\"]}],\"node\":\"%s\"}"

/* The code of the answer to what the holder of NAME.pem says; node NULL: no body. */
static const char *say(struct hosts *h, const char *name, const char *method, const char *tail,
		       const char *node)
{
	char url[400], pem[64], key[64], text[512];
	struct vhca_http_auth *auth;
	struct vhca_http_call_args args = {.method = method, .url = url};

	(void)snprintf(pem, sizeof(pem), "%s.pem", name);
	(void)snprintf(key, sizeof(key), "%s.key", name);
	(void)snprintf(url, sizeof(url), "%s" CLAIMS "%s", h->conf.peers[0].agent, tail);
	(void)snprintf(text, sizeof(text), OFFER, node ? node : "");
	args.auth = auth = auth_of(pem, key, "ca.pem");
	args.body = node ? json_tokener_parse(text) : NULL;
	answers = 0;
	assert_int_equal(vhca_http_multi_start(vhca_http_loop_client_multi(h->client), &args,
					       on_answer, NULL),
			 0);
	while (!answers)
		assert_true(vhca_loop_once(h->loop, 60000) > 0);
	json_object_put(args.body);
	(void)vhca_http_auth_free(auth);
	return code;
}

/* "by-uri" is of the authority, and no [peer]'s. */
static void only_peers_are_agents(void **state)
{
	static struct hosts h;

	(void)state;
	changes = 0;
	hosts_begin(&h, "https", door());
	assert_string_equal(say(&h, "by-uri", "GET", "", NULL), "role_needed");
	assert_non_null(strstr(answer.err.msg, "cert:spiffe://x/y has nobody"));
	assert_string_equal(
		answer.err.hint,
		"ask as one who may: whose certificate is that of a [peer] in vhcad.conf");
	assert_string_equal(say(&h, "by-uri", "PUT", "", "hvb"), "role_needed");
	assert_string_equal(say(&h, "by-uri", "POST", "/abort", NULL), "role_needed");
	assert_int_equal(changes, 0);
	assert_string_equal(say(&h, "client", "PUT", "", "hvb"), "let_through");
	/* A reload makes it a peer, and the other none. */
	(void)snprintf(h.conf.peers[0].certificate, sizeof(h.conf.peers[0].certificate),
		       "cert:spiffe://x/y");
	assert_string_equal(say(&h, "by-uri", "PUT", "", "hvb"), "let_through");
	assert_string_equal(say(&h, "client", "PUT", "", "hvb"), "role_needed");
	hosts_end(&h);
}

static void a_peer_speaks_for_its_own_node(void **state)
{
	static const struct vhca_mig of_hvb = {.peer = "hvb"};
	static struct hosts h;

	(void)state;
	changes = 0;
	hosts_begin(&h, "https", door());
	assert_string_equal(say(&h, "named", "PUT", "", "hvb"), "not_your_node");
	assert_non_null(strstr(answer.err.msg, "cert:hv1.example.org does not speak for the node"));
	assert_string_equal(say(&h, "named", "PUT", "", "nobody"), "not_your_node");
	known = &of_hvb;
	assert_string_equal(say(&h, "named", "GET", "", NULL), "not_your_node");
	assert_string_equal(say(&h, "named", "PUT", "", "hvc"), "not_your_node");
	assert_string_equal(say(&h, "named", "POST", "/handover", "hvc"), "not_your_node");
	assert_string_equal(say(&h, "named", "POST", "/abort", NULL), "not_your_node");
	assert_int_equal(changes, 0);
	assert_string_equal(say(&h, "client", "PUT", "", "hvb"), "let_through");
	assert_string_equal(say(&h, "client", "POST", "/abort", NULL), "let_through");
	known = NULL;
	assert_string_equal(say(&h, "named", "PUT", "", "hvc"), "let_through");
	hosts_end(&h);
}

static void reload(struct hosts *h, const char *crl)
{
	const char *pem = TREE_PATH(&dir, "server.pem"), *key = TREE_PATH(&dir, "server.key");
	const char *ca = TREE_PATH(&dir, "ca.pem"), *revoked = TREE_PATH(&dir, crl);
	const struct vhca_http_auth_files files = {
		.certificate = pem, .key = key, .authority = ca, .revoked = revoked};
	struct vhca_http_auth *fresh = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_http_auth_load(&files, &fresh, &err) < 0)
		fail_msg("%s", err.msg);
	vhca_http_auth_replace(h->door_auth, &fresh);
}

/* A reload counts from the next request on. */
static void a_certificate_is_verified_once(void **state)
{
	static struct hosts h;

	(void)state;
	hosts_begin(&h, "https", door());
	verified = 0;
	for (unsigned int i = 0; i < 5; i++)
		assert_string_equal(say(&h, "client", "GET", "", NULL), "no_such_migration");
	assert_int_equal(verified, 1);
	reload(&h, "ca-client.crl");
	for (unsigned int i = 0; i < 5; i++)
		assert_string_equal(say(&h, "client", "GET", "", NULL), "unauthorized");
	assert_int_equal(verified, 2);
	reload(&h, "ca-none.crl");
	assert_string_equal(say(&h, "client", "GET", "", NULL), "no_such_migration");
	assert_int_equal(verified, 3);
	hosts_end(&h);
}

/* The door verifies a chain once for each connection. */
static void a_source_leaves_its_connections_when_it_has_other_files(void **state)
{
	static struct hosts h;
	struct vhca_http_multi *http;

	(void)state;
	hosts_begin(&h, "https", door());
	http = vhca_http_loop_client_multi(h.client);
	verified = 0;
	assert_string_equal(say(&h, "client", "GET", "", NULL), "no_such_migration");
	vhca_http_multi_renew(http);
	assert_string_equal(say(&h, "client", "GET", "", NULL), "no_such_migration");
	assert_int_equal(verified, 2);
	hosts_end(&h);
}

static void only_certificates_of_the_authority_are_let_in(void **state)
{
	static struct hosts h;

	(void)state;
	hosts_begin(&h, "https", door());
	assert_string_equal(ask(&h, agent()), "no_such_migration");
	assert_string_equal(ask(&h, auth_of(NULL, NULL, "ca.pem")), "unauthorized");
	assert_non_null(strstr(answer.err.msg, "peer hvb"));
	assert_string_not_equal(ask(&h, auth_of("stranger.pem", "stranger.key", "ca.pem")),
				"no_such_migration");
	assert_string_equal(ask(&h, agent()), "no_such_migration");
	hosts_end(&h);
}

static void a_source_believes_only_its_authority(void **state)
{
	static struct hosts h;

	(void)state;
	hosts_begin(&h, "https", door());
	assert_string_equal(ask(&h, auth_of("client.pem", "client.key", "other-ca.pem")),
			    "unreachable");
	assert_non_null(strstr(answer.err.msg, "certificate"));
	assert_string_equal(ask(&h, NULL), "unreachable"); /* the system knows no such authority */
	hosts_end(&h);
}

static void a_door_with_a_certificate_speaks_no_plain_http(void **state)
{
	static struct hosts h;

	(void)state;
	hosts_begin(&h, "http", door());
	assert_string_equal(ask(&h, agent()), "unreachable");
	hosts_end(&h);
}

static void without_certificates_everybody_is_let_in(void **state)
{
	static struct hosts h;

	(void)state;
	hosts_begin(&h, "http", NULL);
	assert_string_equal(ask(&h, NULL), "no_such_migration");
	assert_string_equal(ask(&h, agent()), "no_such_migration");
	hosts_end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_certificates_of_the_authority_are_let_in),
		cmocka_unit_test(a_source_believes_only_its_authority),
		cmocka_unit_test(a_door_with_a_certificate_speaks_no_plain_http),
		cmocka_unit_test(without_certificates_everybody_is_let_in),
		cmocka_unit_test(a_certificate_is_verified_once),
		cmocka_unit_test(a_source_leaves_its_connections_when_it_has_other_files),
		cmocka_unit_test(only_peers_are_agents),
		cmocka_unit_test(a_peer_speaks_for_its_own_node),
	};

	return cmocka_run_group_tests_name("peer_tls", tests, setup, teardown);
}
