/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stddef.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "conf/conf.h"

#define TEXT(m)	 offsetof(struct vhca_conf, m), 0
#define VALUE(m) offsetof(struct vhca_conf, m), sizeof(((struct vhca_conf *)0)->m)

static const struct {
	const char *name;
	size_t offset, size; /* size 0 = text */
} fixed[] = {
	{"[agent] node_name", TEXT(node_name)},
	{"[agent] state_dir", TEXT(state_dir)},
	{"[agent] run_dir", TEXT(run_dir)},
	{"[api] group", TEXT(api_group)},
	{"[api] peer_listen", TEXT(peer_listen)},
	{"[api] listen", TEXT(api_listen)},
	{"[api] token_file", TEXT(api_token_file)},
	{"[tls] certificate", TEXT(tls_certificate)},
	{"[tls] key", TEXT(tls_key)},
	{"[tls] ca", TEXT(tls_ca)},
	{"[tls] crl", TEXT(tls_crl)},
	{"[libvirt] uri", TEXT(libvirt_uri)},
	{"[sm] backend", TEXT(sm_backend)},
	{"[sm] url", VALUE(sm_urls)},
	{"[sm] token_file", TEXT(sm_token_file)},
	{"[sm] lid_policy", VALUE(lid_policy)},
	{"[sm] timeout", VALUE(sm_timeout_ms)},
	{"[sm] poll", VALUE(poll_ms)},
};

const char *vhca_conf_fixed_difference(const struct vhca_conf *a, const struct vhca_conf *b)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(fixed); i++) {
		const char *x = (const char *)a + fixed[i].offset;
		const char *y = (const char *)b + fixed[i].offset;

		if (fixed[i].size ? memcmp(x, y, fixed[i].size) != 0 : strcmp(x, y) != 0)
			return fixed[i].name;
	}
	return NULL;
}
