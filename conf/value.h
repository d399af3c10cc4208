/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CONF_VALUE_H
#define VHCA_CONF_VALUE_H
/*
 * Typed values, inside conf/ only. A parser writes *field, whose type it knows, or sets the error.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/base/caller.h"
#include "common/base/error.h"
#include "common/base/text.h"

/* What a value may be; which members count depends on the parser. */
struct vhca_conf_type {
	uint64_t min, max;	  /* numbers; durations in ms */
	size_t size;		  /* strings: of the field */
	const char *const *words; /* enumerations: in the order of their values, NULL-terminated */
};

typedef int (*vhca_conf_value_fn)(const char *value, const struct vhca_conf_type *type, void *field,
				  struct vhca_error *err);

int vhca_conf_bool(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* bool */
int vhca_conf_word(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* any enum: unsigned int */
int vhca_conf_choice(const char *value, const struct vhca_conf_type *type, void *field,
		     struct vhca_error *err); /* char[]: one of the words */
int vhca_conf_duration(const char *value, const struct vhca_conf_type *type, void *field,
		       struct vhca_error *err); /* uint32_t, ms */
int vhca_conf_uint(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* unsigned int */
int vhca_conf_port(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* uint8_t */
int vhca_conf_vfs(const char *value, const struct vhca_conf_type *type, void *field,
		  struct vhca_error *err); /* uint16_t: number or "keep" */
int vhca_conf_guid(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* uint64_t */
int vhca_conf_pkey(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* uint16_t */
int vhca_conf_name(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* char[VHCA_NAME_MAX] */
int vhca_conf_text(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* char[], may be empty, no blanks inside */
int vhca_conf_path(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* char[], absolute */
int vhca_conf_file(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err); /* char[], absolute or empty */
int vhca_conf_uri(const char *value, const struct vhca_conf_type *type, void *field,
		  struct vhca_error *err); /* char[], not empty, no blanks */
int vhca_conf_listen(const char *value, const struct vhca_conf_type *type, void *field,
		     struct vhca_error *err); /* char[]: numeric ADDRESS:PORT, [v6]:PORT or empty */
int vhca_conf_agent(const char *value, const struct vhca_conf_type *type, void *field,
		    struct vhca_error *err); /* char[]: http://HOST:PORT or https://HOST:PORT */
int vhca_conf_roles(const char *value, const struct vhca_conf_type *type, void *field,
		    struct vhca_error *err); /* struct vhca_caller_rules, of a unix socket */
int vhca_conf_network_roles(const char *value, const struct vhca_conf_type *type, void *field,
			    struct vhca_error *err); /* the same, of the network */
int vhca_conf_certificate(const char *value, const struct vhca_conf_type *type, void *field,
			  struct vhca_error *err); /* char[]: cert:NAME or cert-sha256:HEX */

/* The other way round: what that parser has written, as it reads it. */
void vhca_conf_format(struct vhca_strbuf *sb, vhca_conf_value_fn parse,
		      const struct vhca_conf_type *type, const void *field);
/* Whether two of these cannot both be bound: a wildcard is all addresses of its family. */
bool vhca_conf_listen_overlaps(const char *one, const char *other);
/* Where the user of a URL begins that has one: "me:secret@host". NULL: it has none. */
const char *vhca_conf_url_user(const char *url, size_t len);

/* The name that a certificate for the HOST of such a URL has: lower case, addresses in one form. */
void vhca_conf_certificate_of(const char *agent, char ret[static VHCA_CALLER_NAME_MAX]);
/* How long the "http://" or "https://" is that the URL begins with; 0 = neither. */
size_t vhca_conf_http_scheme(const char *url);

#endif
