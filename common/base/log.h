/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_LOG_H
#define VHCA_BASE_LOG_H
/*
 * Logging to stderr: with "<N>" priorities when systemd reads it (JOURNAL_STREAM is set), with a
 * time stamp otherwise. Thread-safe, one write(2) a line, control characters of the text are
 * escaped. A message starts with its subject: "0000:3b:00.2: ...", "vm1/ib0: ...". Secrets are
 * never logged.
 */
enum vhca_log_level {
	VHCA_LOG_ERROR,
	VHCA_LOG_WARNING,
	VHCA_LOG_NOTICE,
	VHCA_LOG_INFO,
	VHCA_LOG_DEBUG
};

/* Messages above this level are dropped; default VHCA_LOG_INFO. May be called at any time. */
void vhca_log_set_level(enum vhca_log_level level);

/* Sends each formatted message (no newline, no priority) to fn instead of stderr; NULL undoes it.
 * For OpenSM's own log and for tests. fn is called from any thread. */
void vhca_log_set_sink(void (*fn)(enum vhca_log_level level, const char *msg));

/* printf-like, one line without its newline; a message of more than 1 KiB is cut. */
void vhca_log(enum vhca_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct vhca_log_field {
	const char *name, *value; /* "VHCA_WHO"; a value of more than 1 KiB is left out */
};

/*
 * The same with a MESSAGE_ID (message_ids.h) and fields, if stderr is the journal's: as an entry of
 * its own that stands for the line. A sink gets the line all the same. The last field has no name.
 */
void vhca_log_event(enum vhca_log_level level, const char *id, const struct vhca_log_field *fields,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define VHCA_LOG_FIELDS(...) ((const struct vhca_log_field[]){__VA_ARGS__, {NULL, NULL}})

#define vhca_log_error(...)   vhca_log(VHCA_LOG_ERROR, __VA_ARGS__)
#define vhca_log_warning(...) vhca_log(VHCA_LOG_WARNING, __VA_ARGS__)
#define vhca_log_notice(...)  vhca_log(VHCA_LOG_NOTICE, __VA_ARGS__)
#define vhca_log_info(...)    vhca_log(VHCA_LOG_INFO, __VA_ARGS__)
#define vhca_log_debug(...)   vhca_log(VHCA_LOG_DEBUG, __VA_ARGS__)

#endif
