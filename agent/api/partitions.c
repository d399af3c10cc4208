/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "agent/api/body.h"
#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

/* ---- what there is ---- */

#define BASES 0x8000 /* P_Keys without the membership bit */

static struct json_object *view_names(const struct vhca_conf *conf, uint16_t base)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 0; i < conf->n_partitions; i++) {
		const struct vhca_conf_partition *part = &conf->partitions[i];
		struct json_object *o;

		if (vhca_pkey_base(part->pkey) != base)
			continue;
		o = json_object_new_object();
		vhca_json_add_string(o, "name", part->name);
		vhca_json_add_string(o, "pkey", VHCA_PKEY_STR(part->pkey));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *view_members(const struct vhca_model *m, uint16_t base)
{
	struct json_object *list = json_object_new_array();
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &m->claims, link) {
		uint16_t pkey = api_claim_key(c, base);
		struct json_object *o;

		if (!pkey)
			continue;
		o = json_object_new_object();
		vhca_json_add_string(o, "claim", VHCA_UUID_STR(&c->id));
		vhca_json_add_string(o, "domain", VHCA_UUID_STR(&c->domain));
		vhca_json_add_string(o, "domain_name", c->domain_name);
		vhca_json_add_string(o, "name", c->name);
		vhca_json_add_string(o, "fabric", c->fabric);
		vhca_json_add_string(o, "bdf", VHCA_BDF_STR(c->vf->bdf));
		vhca_json_add_string(o, "pkey", VHCA_PKEY_STR(pkey));
		json_object_array_add(list, o);
	}
	return list;
}

/* The port that carries its VFs' identities; NULL: nobody gets one of them. */
static const struct vhca_port_state *port_of(const struct vhca_hca *hca)
{
	return hca->present && hca->managed && hca->port ? &hca->ports[hca->port - 1] : NULL;
}

static struct json_object *view_port(const struct vhca_hca *hca, uint16_t base)
{
	const struct vhca_port_state *port = port_of(hca);
	struct json_object *o = json_object_new_object();
	uint16_t pkey = api_find_key(port->pkeys, port->n_pkeys, base);
	unsigned int n = 0;

	for (unsigned int i = 0; i < port->n_pkeys; i++)
		n += port->pkeys[i] == 0;
	vhca_json_add_string(o, "pf", VHCA_BDF_STR(hca->facts.bdf));
	vhca_json_add_u64(o, "port", hca->port);
	vhca_json_add_string(o, "fabric", hca->fabric);
	vhca_json_add_string(o, "pkey", pkey ? VHCA_PKEY_STR(pkey) : NULL);
	vhca_json_add(o, "table_entries",
		      port->n_pkeys ? json_object_new_int(port->n_pkeys) : NULL);
	vhca_json_add(o, "table_free", port->n_pkeys ? json_object_new_int64(n) : NULL);
	return o;
}

static struct json_object *view_partition(void *ctx, uint16_t base)
{
	struct json_object *o = json_object_new_object(), *ports = json_object_new_array();
	const struct vhca_model *m = api_model(ctx);
	const struct vhca_hca *hca;

	vhca_json_add_string(o, "pkey", VHCA_PKEY_STR(base | 0x8000));
	vhca_json_add(o, "names", view_names(api_args(ctx)->conf, base));
	vhca_json_add(o, "members", view_members(m, base));
	TAILQ_FOREACH (hca, &m->hcas, link)
		if (port_of(hca))
			json_object_array_add(ports, view_port(hca, base));
	vhca_json_add(o, "ports", ports);
	return o;
}

static void mark(bool known[static BASES], const uint16_t *pkeys, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		known[vhca_pkey_base(pkeys[i])] = true;
}

/* Those that have a name, a guest or a place in a port's table; 0 is no key. */
static void find_partitions(void *ctx, bool known[static BASES])
{
	const struct vhca_conf *conf = api_args(ctx)->conf;
	const struct vhca_model *m = api_model(ctx);
	const struct vhca_claim *c;
	const struct vhca_hca *hca;

	memset(known, 0, BASES * sizeof(*known));
	for (unsigned int i = 0; i < conf->n_partitions; i++)
		mark(known, &conf->partitions[i].pkey, 1);
	TAILQ_FOREACH (c, &m->claims, link)
		if (!vhca_claim_is_ending(c))
			mark(known, c->identity.pkeys, c->identity.n_pkeys);
	TAILQ_FOREACH (hca, &m->hcas, link)
		if (port_of(hca))
			mark(known, port_of(hca)->pkeys, port_of(hca)->n_pkeys);
	known[0] = false;
}

void api_get_partitions(void *ctx, struct vhca_http_request *req)
{
	struct json_object *list;
	struct api_page page;
	struct vhca_error err;
	bool known[BASES];

	if (api_read_page(req, UINT32_MAX, &page, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	find_partitions(ctx, known);
	for (unsigned int base = 1; base < BASES; base++)
		if (known[base] && api_page_takes(&page, VHCA_PKEY_STR(base | 0x8000), true))
			json_object_array_add(list, view_partition(ctx, (uint16_t)base));
	api_reply_page(req, "partitions", list, &page);
}

/* By a name, or by either of its P_Keys. */
void api_get_partition(void *ctx, struct vhca_http_request *req)
{
	const char *word = vhca_http_param(req, 0);
	struct vhca_error err = VHCA_ERROR_INIT;
	bool known[BASES];
	uint16_t pkey;
	int r = api_find_pkey(ctx, word, &pkey, &err);

	find_partitions(ctx, known);
	if (r == 0 && !known[vhca_pkey_base(pkey)])
		r = api_no_partition(word, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, view_partition(ctx, vhca_pkey_base(pkey)));
}

/* ---- those of a cloud's port ---- */

/* So many names, and a blank behind each. */
#define TEXT_MAX (VHCA_VF_PKEYS_MAX * VHCA_NAME_MAX)

/* In the form that metadata has, which the configuration knows how to read. */
static int parse_partitions(struct json_object *body, char ret[static TEXT_MAX],
			    struct vhca_error *err)
{
	static const char *const members[] = {"partitions", NULL};
	struct json_object *list = NULL;
	struct vhca_strbuf text;
	int r = api_check_body(body, members, "partitions", err);

	vhca_strbuf_init(&text, ret, TEXT_MAX);
	if (r < 0)
		return r;
	list = json_object_object_get(body, "partitions");
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > VHCA_VF_PKEYS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: partitions: want a list of %d at most",
				      VHCA_VF_PKEYS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *element = json_object_array_get_idx(list, i);
		const char *word = json_object_get_string(element);

		if (!json_object_is_type(element, json_type_string) || !vhca_name_is_valid(word))
			return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
					      "body: partitions: want P_Keys such as \"0x8001\", "
					      "or names");
		vhca_strbuf_add(&text, "%s%s", text.len > 0 ? " " : "", word);
	}
	return 0;
}

void api_put_partitions(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *claim = api_find_port(ctx, req, &err);
	char text[TEXT_MAX];
	struct api_pending *p;

	if (!claim || parse_partitions(vhca_http_body(req), text, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (!p)
		return;
	p->guid = claim->identity.guid;
	vhca_engine_set_partitions(api_args(ctx)->engine, claim, text, api_on_port, p);
}
