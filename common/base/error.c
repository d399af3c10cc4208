/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *word;
	int http, exit;
} kinds[] = {
	[VHCA_ERR_NONE] = {"none", 200, 0},
	[VHCA_ERR_INVALID] = {"invalid", 400, 2},
	[VHCA_ERR_NOT_FOUND] = {"not-found", 404, 3},
	[VHCA_ERR_CONFLICT] = {"conflict", 409, 4},
	[VHCA_ERR_EXHAUSTED] = {"exhausted", 507, 5},
	[VHCA_ERR_DEVICE] = {"device", 502, 6},
	[VHCA_ERR_UNAVAILABLE] = {"unavailable", 503, 7},
	[VHCA_ERR_DENIED] = {"denied", 403, 8},
	[VHCA_ERR_INTERNAL] = {"internal", 500, 1},
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == VHCA_ERR_COUNT, "one row a kind");

/* strerror() is not thread-safe and depends on the locale; this is neither. */
static void append_errno(char *msg, size_t size, int errnum)
{
	const char *text = strerrordesc_np(errnum);
	size_t len = strlen(msg);

	if (text)
		(void)snprintf(msg + len, size - len, ": %s",
			       text); /* cut at the end by contract */
	else
		(void)snprintf(msg + len, size - len, ": errno %d", errnum);
}

int vhca_error_set(struct vhca_error *err, enum vhca_err kind, const char *code, int errnum,
		   const char *fmt, ...)
{
	va_list ap;

	/* A caller that passes its own negative errno must not turn a failure into a success. */
	if (errnum < 0)
		errnum = -errnum;
	if (err) {
		err->kind = kind;
		err->errnum = errnum;
		(void)snprintf(err->code, sizeof(err->code), "%s", code); /* words of ours fit */
		err->hint[0] = '\0';
		va_start(ap, fmt);
		(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
		if (errnum)
			append_errno(err->msg, sizeof(err->msg), errnum);
	}
	return errnum ? -errnum : -EIO;
}

int vhca_error_no_memory(struct vhca_error *err, const char *what)
{
	return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "%s", what);
}

void vhca_error_hint(struct vhca_error *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
}

bool vhca_error_is(const struct vhca_error *err, const char *code)
{
	return strcmp(err->code, code) == 0;
}

void vhca_error_text(const struct vhca_error *err, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s%s%s", err->msg, err->hint[0] ? "; " : "", err->hint);
}

void vhca_error_prefix(struct vhca_error *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;
	size_t len;

	if (!err)
		return;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	(void)snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", old);
}

const char *vhca_err_to_string(enum vhca_err kind)
{
	return (unsigned int)kind < VHCA_ERR_COUNT ? kinds[kind].word : "internal";
}

int vhca_err_to_http(enum vhca_err kind)
{
	return (unsigned int)kind < VHCA_ERR_COUNT ? kinds[kind].http : 500;
}

int vhca_err_to_exit(enum vhca_err kind)
{
	return (unsigned int)kind < VHCA_ERR_COUNT ? kinds[kind].exit : 1;
}

enum vhca_err vhca_err_from_string(const char *word)
{
	for (unsigned int i = VHCA_ERR_INVALID; word && i < VHCA_ERR_COUNT; i++)
		if (strcmp(kinds[i].word, word) == 0)
			return (enum vhca_err)i;
	return VHCA_ERR_INTERNAL;
}
