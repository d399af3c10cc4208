/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conf/value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "conf/conf.h"

#define HOST_SIZE 254 /* the longest name of the DNS, with NUL */

static int bad(struct vhca_error *err, const char *value, const char *want)
{
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0, "\"%.80s\" is not %s", value,
			      want);
}

int vhca_conf_bool(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	(void)type;
	return vhca_parse_bool(value, field) < 0 ? bad(err, value, "yes or no") : 0;
}

/* Index of value in the words, or the error that lists them. */
static int find_word(const char *value, const char *const *words, struct vhca_error *err)
{
	struct vhca_strbuf sb;
	char list[128];

	vhca_strbuf_init(&sb, list, sizeof(list));
	for (int i = 0; words[i]; i++) {
		if (strcmp(value, words[i]) == 0)
			return i;
		vhca_strbuf_add(&sb, "%s%s", i ? " | " : "one of ", words[i]);
	}
	return bad(err, value, list);
}

int vhca_conf_word(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	int i = find_word(value, type->words, err);

	if (i < 0)
		return i;
	*(unsigned int *)field = (unsigned int)i;
	return 0;
}

int vhca_conf_choice(const char *value, const struct vhca_conf_type *type, void *field,
		     struct vhca_error *err)
{
	int i = find_word(value, type->words, err);

	if (i < 0)
		return i;
	return vhca_strcpy(field, type->size, value);
}

static int out_of_range(struct vhca_error *err, const char *value, uint64_t min, uint64_t max,
			const char *unit)
{
	return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
			      "\"%.80s\" is not between %llu%s and %llu%s", value,
			      (unsigned long long)min, unit, (unsigned long long)max, unit);
}

int vhca_conf_duration(const char *value, const struct vhca_conf_type *type, void *field,
		       struct vhca_error *err)
{
	static const struct {
		const char *name;
		uint32_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}};
	size_t digits = strspn(value, "0123456789");
	char number[16];
	uint64_t n;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(units) && digits > 0; i++) {
		if (strcmp(value + digits, units[i].name) != 0)
			continue;
		(void)vhca_strcpy(number, sizeof(number), digits < 10 ? value : "9999999999");
		number[digits < 10 ? digits : 10] = '\0';
		if (vhca_parse_u64(number, 10, UINT32_MAX, &n) < 0 || n * units[i].ms < type->min ||
		    n * units[i].ms > type->max)
			return out_of_range(err, value, type->min, type->max, "ms");
		*(uint32_t *)field = (uint32_t)(n * units[i].ms);
		return 0;
	}
	return bad(err, value, "a time with its unit (500ms, 5s, 2min, 1h)");
}

/* Reads a decimal number inside the type's range. */
static int number(const char *value, const struct vhca_conf_type *type, uint64_t *ret,
		  struct vhca_error *err)
{
	uint64_t n = 0;
	int r = vhca_parse_u64(value, 10, UINT64_MAX, &n);

	if (r == -EINVAL)
		return bad(err, value, "a number");
	if (r < 0 || n < type->min || n > type->max)
		return out_of_range(err, value, type->min, type->max, "");
	*ret = n;
	return 0;
}

int vhca_conf_uint(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	uint64_t n = 0;
	int r = number(value, type, &n, err);

	if (r < 0)
		return r;
	*(unsigned int *)field = (unsigned int)n;
	return 0;
}

int vhca_conf_port(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	uint64_t n = 0;
	int r = number(value, type, &n, err);

	if (r < 0)
		return r;
	*(uint8_t *)field = (uint8_t)n;
	return 0;
}

int vhca_conf_vfs(const char *value, const struct vhca_conf_type *type, void *field,
		  struct vhca_error *err)
{
	uint64_t n = VHCA_CONF_VFS_KEEP;
	int r = strcmp(value, "keep") == 0 ? 0 : number(value, type, &n, err);

	if (r < 0)
		return r;
	*(uint16_t *)field = (uint16_t)n;
	return 0;
}

int vhca_conf_guid(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	uint64_t guid;

	(void)type;
	if (vhca_guid_parse(value, &guid) < 0)
		return bad(err, value, "a GUID (0x and 16 hex digits)");
	*(uint64_t *)field = guid;
	return 0;
}

int vhca_conf_pkey(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	(void)type;
	if (vhca_pkey_parse(value, field) < 0)
		return bad(err, value, "a P_Key (0x0001..0x7fff limited, 0x8001..0xffff full)");
	return 0;
}

int vhca_conf_name(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	(void)type;
	if (!vhca_name_is_valid(value))
		return bad(err, value, "a name of up to 31 letters, digits, \"_\" and \"-\"");
	return vhca_strcpy(field, VHCA_NAME_MAX, value);
}

int vhca_conf_text(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	if (strpbrk(value, " \t"))
		return bad(err, value, "one word");
	if (strlen(value) >= type->size)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0,
				      "longer than %zu characters", type->size - 1);
	return vhca_strcpy(field, type->size, value);
}

int vhca_conf_path(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	if (value[0] != '/')
		return bad(err, value, "an absolute path");
	return vhca_conf_text(value, type, field, err);
}

int vhca_conf_file(const char *value, const struct vhca_conf_type *type, void *field,
		   struct vhca_error *err)
{
	return (value[0] ? vhca_conf_path : vhca_conf_text)(value, type, field, err);
}

/* Who writes a password escapes nothing in it: behind a colon each @ may be its end. */
const char *vhca_conf_url_user(const char *url, size_t len)
{
	const char *scheme = strstr(url, "://"), *user = scheme ? scheme + 3 : url;
	size_t n = strcspn(user, ":@/?# \t");
	const char *end = url + len;

	if (*user == '[') /* of an address */
		return NULL;
	if (user + n >= end || (user[n] != '@' && user[n] != ':'))
		return NULL;
	return memchr(user + n, '@', (size_t)(end - user) - n) ? user : NULL;
}

int vhca_conf_uri(const char *value, const struct vhca_conf_type *type, void *field,
		  struct vhca_error *err)
{
	const char *user = vhca_conf_url_user(value, strlen(value));

	if (!strchr(value, ':'))
		return bad(err, value, "a URI");
	if (user && user[strcspn(user, ":@")] == ':')
		return vhca_error_set(
			err, VHCA_ERR_INVALID, "bad_value", 0,
			"a password, which whoever looks at vhcad would see; libvirt "
			"has auth.conf for it, and an @ behind a port is written %%40");
	return vhca_conf_text(value, type, field, err);
}

/* Splits "HOST:PORT" or "[v6]:PORT"; the port is a number that can be connected to. */
static int split_endpoint(const char *value, char host[static HOST_SIZE], bool *ret_v6)
{
	bool v6 = *value == '[';
	const char *start = value + v6;
	size_t len = strcspn(start, v6 ? "]" : ":");
	const char *colon = start + len + (v6 && start[len] == ']');
	uint32_t port;

	if (len == 0 || len >= HOST_SIZE || *colon != ':' ||
	    vhca_parse_u32(colon + 1, 10, UINT16_MAX, &port) < 0 || port == 0)
		return -EINVAL;
	memcpy(host, start, len);
	host[len] = '\0';
	*ret_v6 = v6;
	return 0;
}

static bool is_address(const char *host, bool v6)
{
	struct in6_addr addr; /* the larger of the two */

	return inet_pton(v6 ? AF_INET6 : AF_INET, host, &addr) == 1;
}

static bool is_host(const char *host, bool v6)
{
	static const char chars[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

	return v6 ? is_address(host, true) : host[strspn(host, chars)] == '\0';
}

int vhca_conf_listen(const char *value, const struct vhca_conf_type *type, void *field,
		     struct vhca_error *err)
{
	char host[HOST_SIZE];
	bool v6;

	if (value[0] && (split_endpoint(value, host, &v6) < 0 || !is_address(host, v6)))
		return bad(err, value, "a numeric ADDRESS:PORT or [IPV6-ADDRESS]:PORT");
	return vhca_conf_text(value, type, field, err);
}

bool vhca_conf_listen_overlaps(const char *one, const char *other)
{
	static const struct in6_addr any;
	const char *specs[] = {one, other};
	struct in6_addr addr[2] = {0}; /* the larger of the two */
	char host[HOST_SIZE];
	uint32_t port[2];
	bool v6[2];

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(specs); i++)
		if (split_endpoint(specs[i], host, &v6[i]) < 0 ||
		    inet_pton(v6[i] ? AF_INET6 : AF_INET, host, &addr[i]) != 1 ||
		    vhca_parse_u32(strrchr(specs[i], ':') + 1, 10, UINT16_MAX, &port[i]) < 0)
			return false; /* "": it listens nowhere */
	return v6[0] == v6[1] && port[0] == port[1] &&
	       (memcmp(&addr[0], &addr[1], sizeof(any)) == 0 ||
		memcmp(&addr[0], &any, sizeof(any)) == 0 ||
		memcmp(&addr[1], &any, sizeof(any)) == 0);
}

size_t vhca_conf_http_scheme(const char *url)
{
	if (strncmp(url, "http://", 7) == 0)
		return 7;
	return strncmp(url, "https://", 8) == 0 ? 8 : 0;
}

int vhca_conf_agent(const char *value, const struct vhca_conf_type *type, void *field,
		    struct vhca_error *err)
{
	size_t scheme = vhca_conf_http_scheme(value);
	char host[HOST_SIZE];
	bool v6;

	if (!scheme || split_endpoint(value + scheme, host, &v6) < 0 || !is_host(host, v6))
		return bad(err, value, "http://HOST:PORT or https://HOST:PORT");
	return vhca_conf_text(value, type, field, err);
}

int vhca_conf_roles(const char *value, const struct vhca_conf_type *type, void *field,
		    struct vhca_error *err)
{
	(void)type;
	return vhca_caller_rules_parse(field, value, true, err);
}

int vhca_conf_network_roles(const char *value, const struct vhca_conf_type *type, void *field,
			    struct vhca_error *err)
{
	(void)type;
	return vhca_caller_rules_parse(field, value, false, err);
}

int vhca_conf_certificate(const char *value, const struct vhca_conf_type *type, void *field,
			  struct vhca_error *err)
{
	char name[VHCA_CALLER_NAME_MAX];

	if (vhca_caller_take_certificate(value, name) < 0)
		return bad(err, value, "cert:NAME or cert-sha256:HEX");
	return vhca_conf_text(name, type, field, err);
}

void vhca_conf_certificate_of(const char *agent, char ret[static VHCA_CALLER_NAME_MAX])
{
	char host[HOST_SIZE], address[INET6_ADDRSTRLEN];
	struct in6_addr binary;
	const char *name = host;
	bool v6;

	if (split_endpoint(agent + vhca_conf_http_scheme(agent), host, &v6) < 0)
		return;
	for (char *c = host; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (v6 && inet_pton(AF_INET6, host, &binary) == 1 &&
	    inet_ntop(AF_INET6, &binary, address, sizeof(address)))
		name = address;
	/* One that is cut would be another's. */
	if (snprintf(ret, VHCA_CALLER_NAME_MAX, "cert:%s", name) >= VHCA_CALLER_NAME_MAX)
		ret[0] = '\0';
}

/* ---- the other way round ---- */

static void format_bool(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			const void *field)
{
	(void)type;
	vhca_strbuf_add(sb, "%s", *(const bool *)field ? "yes" : "no");
}

static void format_word(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			const void *field)
{
	vhca_strbuf_add(sb, "%s", type->words[*(const unsigned int *)field]);
}

static void format_duration(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			    const void *field)
{
	uint32_t ms = *(const uint32_t *)field;

	(void)type;
	if (ms % 1000)
		vhca_strbuf_add(sb, "%ums", ms);
	else
		vhca_strbuf_add(sb, "%us", ms / 1000);
}

static void format_uint(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			const void *field)
{
	(void)type;
	vhca_strbuf_add(sb, "%u", *(const unsigned int *)field);
}

static void format_port(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			const void *field)
{
	(void)type;
	vhca_strbuf_add(sb, "%u", *(const uint8_t *)field);
}

static void format_vfs(struct vhca_strbuf *sb, const struct vhca_conf_type *type, const void *field)
{
	uint16_t n = *(const uint16_t *)field;

	if (n > type->max)
		vhca_strbuf_add(sb, "keep");
	else
		vhca_strbuf_add(sb, "%u", n);
}

static void format_guid(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			const void *field)
{
	(void)type;
	vhca_strbuf_add(sb, "%s", VHCA_GUID_STR(*(const uint64_t *)field));
}

static void format_pkey(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			const void *field)
{
	(void)type;
	vhca_strbuf_add(sb, "%s", VHCA_PKEY_STR(*(const uint16_t *)field));
}

static void format_roles(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
			 const void *field)
{
	const struct vhca_caller_rules *rules = field;

	(void)type;
	for (unsigned int i = 0; i < rules->n; i++) {
		const struct vhca_caller_rule *r = &rules->list[i];

		vhca_strbuf_add(sb, "%s%s:%s", i > 0 ? " " : "",
				r->who == VHCA_CALLER_ANYBODY ? "*" : r->name,
				vhca_caller_role_to_string(r->role));
	}
}

static const struct {
	vhca_conf_value_fn parse;
	void (*format)(struct vhca_strbuf *sb, const struct vhca_conf_type *type,
		       const void *field);
} formats[] = {
	{vhca_conf_bool, format_bool},	       {vhca_conf_word, format_word},
	{vhca_conf_duration, format_duration}, {vhca_conf_uint, format_uint},
	{vhca_conf_port, format_port},	       {vhca_conf_vfs, format_vfs},
	{vhca_conf_guid, format_guid},	       {vhca_conf_pkey, format_pkey},
	{vhca_conf_roles, format_roles},       {vhca_conf_network_roles, format_roles},
};

void vhca_conf_format(struct vhca_strbuf *sb, vhca_conf_value_fn parse,
		      const struct vhca_conf_type *type, const void *field)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(formats); i++) {
		if (formats[i].parse != parse)
			continue;
		formats[i].format(sb, type, field);
		return;
	}
	vhca_strbuf_add(sb, "%s", (const char *)field); /* all others are texts */
}
