/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_ERROR_H
#define VHCA_BASE_ERROR_H
/*
 * Two levels of errors, everywhere in this project:
 *
 *  - mechanism (common/): a function returns 0 (or a count >= 0) or a negative errno. It neither
 *    logs nor prints, and writes its ret_ outputs only on success.
 *  - meaning (sriov, pkey, sm, conf, agent, ctl): the same int, plus `struct vhca_error *err` as
 *    the last argument. It lives on the caller's stack, owns no memory and needs no release. err
 *    may be NULL.
 *
 * The kind selects HTTP status, CLI exit code and retry policy; the code is a stable
 * machine-readable word (API); msg and hint are for people and may change. A message names object
 * and operation: "0000:3b:00.2: bind to vfio-pci: Device or resource busy".
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum vhca_err {
	VHCA_ERR_NONE = 0,
	VHCA_ERR_INVALID,     /* the caller's input is wrong; retrying cannot help */
	VHCA_ERR_NOT_FOUND,   /* the named object does not exist */
	VHCA_ERR_CONFLICT,    /* the object is in a state that forbids this now */
	VHCA_ERR_EXHAUSTED,   /* a limit is reached: VFs, P_Key table, root ports, queue */
	VHCA_ERR_DEVICE,      /* the kernel, the firmware or the device refused */
	VHCA_ERR_UNAVAILABLE, /* a peer (SM, libvirt, agent) cannot be reached; retryable */
	VHCA_ERR_DENIED,      /* policy or permission */
	VHCA_ERR_INTERNAL,    /* a bug or out of memory */
	VHCA_ERR_COUNT
};

#define VHCA_ERROR_CODE_MAX 48 /* with NUL */

struct vhca_error {
	enum vhca_err kind;
	int errnum;			/* positive errno, 0 if none applies */
	char code[VHCA_ERROR_CODE_MAX]; /* e.g. "pkey_not_on_port"; never "" once set */
	char msg[256];
	char hint[256]; /* the way out; "" if there is none */
};

#define VHCA_ERROR_INIT               \
	{                             \
		.kind = VHCA_ERR_NONE \
	}

/*
 * Fills *err (if not NULL) and returns -errnum, or -EIO when errnum is 0, so that
 * `return vhca_error_set(err, ...)` is one line. strerror(errnum) is appended when errnum is not 0.
 */
int vhca_error_set(struct vhca_error *err, enum vhca_err kind, const char *code, int errnum,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* "no_memory", -ENOMEM: there was none for `what`. */
int vhca_error_no_memory(struct vhca_error *err, const char *what);

/* Sets the hint of an error that was set before. Returns nothing: it is used between set and
 * return. */
void vhca_error_hint(struct vhca_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Does it have this code, one of codes.h? */
bool vhca_error_is(const struct vhca_error *err, const char *code);

/* Puts "context: " in front of the message; truncates at the end, never at the front. */
void vhca_error_prefix(struct vhca_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "message; hint", or the message alone; cut at the end. */
void vhca_error_text(const struct vhca_error *err, char *buf, size_t size);

/* "invalid", "not-found", ... Never NULL. */
const char *vhca_err_to_string(enum vhca_err kind);

/* HTTP status of an error kind: 400 404 409 507 502 503 403 500. */
int vhca_err_to_http(enum vhca_err kind);

/* Exit status of the command line tools: 2 usage, 3 not found, 4 conflict, 5 exhausted, 6 device,
 * 7 unavailable, 8 denied, 1 anything else. */
int vhca_err_to_exit(enum vhca_err kind);

/* The kind that a problem+json "kind" word names; VHCA_ERR_INTERNAL for an unknown word. */
enum vhca_err vhca_err_from_string(const char *word);

#endif
