/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CONF_KEYS_H
#define VHCA_CONF_KEYS_H
/* The table of sections and keys, inside conf/ only. */
#include <stddef.h>

#include "common/base/error.h"

enum vhca_conf_scope {
	VHCA_CONF_AGENT,
	VHCA_CONF_API,
	VHCA_CONF_TLS,
	VHCA_CONF_LIBVIRT,
	VHCA_CONF_GUID,
	VHCA_CONF_SM,
	VHCA_CONF_MIGRATION,
	VHCA_CONF_POLICY,
	VHCA_CONF_PARTITION, /* [partition NAME] */
	VHCA_CONF_HCA,	     /* [hca ADDRESS|default] */
	VHCA_CONF_PEER,	     /* [peer NAME] */
	VHCA_CONF_SCOPES
};

/*
 * Finds the scope of a section header; *ret_arg is the text after "partition ", "hca " or "peer ",
 * else "".
 */
int vhca_conf_find_scope(const char *section, enum vhca_conf_scope *ret, const char **ret_arg,
			 struct vhca_error *err);

/*
 * Parses value into the field of object that the key names: struct vhca_conf_partition, _hca or
 * _peer for these scopes, struct vhca_conf for all others.
 */
int vhca_conf_set_key(enum vhca_conf_scope scope, void *object, const char *key, const char *value,
		      struct vhca_error *err);
/*
 * The other way round, for the n-th key of the scope: fills buf and returns the key; NULL after the
 * last.
 */
const char *vhca_conf_format_key(enum vhca_conf_scope scope, unsigned int n, const void *object,
				 char *buf, size_t size);
const char *vhca_conf_scope_to_string(enum vhca_conf_scope scope); /* never NULL */

#endif
