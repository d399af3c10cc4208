/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conf/settings.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "conf/keys.h"
#include "conf/value.h"

#define VALUE_MAX   4096 /* of the longest list */
#define SECTION_MAX 64
#define NO_FILE	    "[hca default]\n"

struct walk {
	void (*fn)(void *ctx, const struct vhca_conf_setting *setting);
	void *ctx;
};

/* One section; like is what its keys are where no file says anything, or NULL. */
static void list_section(const struct walk *w, enum vhca_conf_scope scope, const char *name,
			 const void *object, const void *like)
{
	char section[SECTION_MAX], value[VALUE_MAX], usual[VALUE_MAX];
	struct vhca_conf_setting s = {.section = section, .value = value};

	(void)snprintf(section, sizeof(section), "%s%s%s", vhca_conf_scope_to_string(scope),
		       name[0] ? " " : "", name);
	for (unsigned int n = 0; (s.key = vhca_conf_format_key(scope, n, object, value, VALUE_MAX));
	     n++) {
		if (like)
			(void)vhca_conf_format_key(scope, n, like, usual, VALUE_MAX);
		s.usual = like ? usual : NULL;
		w->fn(w->ctx, &s);
	}
}

static void list_named(const struct walk *w, const struct vhca_conf *conf,
		       const struct vhca_conf_hca *usual)
{
	for (unsigned int i = 0; i < conf->n_partitions; i++)
		list_section(w, VHCA_CONF_PARTITION, conf->partitions[i].name, &conf->partitions[i],
			     NULL);
	for (unsigned int i = 0; i < conf->n_hcas; i++) {
		const struct vhca_conf_hca *hca = &conf->hcas[i];

		list_section(w, VHCA_CONF_HCA, hca->is_default ? "default" : VHCA_BDF_STR(hca->bdf),
			     hca, usual);
	}
	for (unsigned int i = 0; i < conf->n_peers; i++) {
		struct vhca_conf_peer unsaid = {.insecure = false};

		vhca_conf_certificate_of(conf->peers[i].agent, unsaid.certificate);
		list_section(w, VHCA_CONF_PEER, conf->peers[i].name, &conf->peers[i], &unsaid);
	}
}

int vhca_conf_each_setting(const struct vhca_conf *conf,
			   void (*fn)(void *ctx, const struct vhca_conf_setting *setting),
			   void *ctx, struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_conf *usual = NULL;
	const struct walk w = {.fn = fn, .ctx = ctx};
	int r = vhca_conf_parse("no file", NO_FILE, strlen(NO_FILE), &usual, err);

	if (r < 0)
		return r;
	for (unsigned int scope = 0; scope < VHCA_CONF_PARTITION; scope++)
		list_section(&w, (enum vhca_conf_scope)scope, "", conf, usual);
	list_named(&w, conf, &usual->hcas[0]);
	return 0;
}
