/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_API_H
#define VHCA_CTL_CLI_API_H
/* Calls to the server, and what every command does with the answer. */
#include <stdio.h>

#include <json-c/json_object.h>

#include "common/base/text.h"
#include "ctl/cli/ctl.h"
#include "ctl/cli/table.h"

#define VHCA_CTL_PATH_MAX 2048
#define VHCA_CTL_READ_MS  10000
#define VHCA_CTL_CHANGE_MS \
	180000 /* attach and detach wait for the guest: longer than the agent's own time-outs */

/* Adds text to a path or query, everything but unreserved characters as %XX. */
void vhca_ctl_encode(struct vhca_strbuf *sb, const char *text);

/*
 * All texts of the answer, and names of its members, are safe to print, but for --json, which
 * escapes them, and who keeps controls.
 * One call; path starts with '/'. On success *ret is the answer (NULL if it has none); caller puts
 * it. default_ms applies unless --timeout is given. With --json a problem document is printed, too.
 */
int vhca_ctl_call(const struct vhca_ctl *ctl, const char *method, const char *path,
		  struct json_object *body, uint32_t default_ms, struct json_object **ret,
		  struct vhca_error *err);

/* The same, and prints the answer with --json: nothing is left to say then. */
int vhca_ctl_ask(const struct vhca_ctl *ctl, const char *method, const char *path,
		 struct json_object *body, uint32_t default_ms, struct json_object **ret,
		 struct vhca_error *err);

/*
 * As vhca_ctl_call() by GET of a state that is an answer also as 503, as /readyz of who is not
 * ready.
 */
int vhca_ctl_get_state(const struct vhca_ctl *ctl, const char *path, struct json_object **ret,
		       struct vhca_error *err);

/* As vhca_ctl_call() by GET of what is no JSON; caller frees it. */
int vhca_ctl_get_text(const struct vhca_ctl *ctl, const char *path, char **ret,
		      struct vhca_error *err);

/* Writes, or prints a document for --json; in one line. Controls are escaped. */
void vhca_ctl_write_json(FILE *out, struct json_object *doc);
void vhca_ctl_print_json(struct json_object *doc);
void vhca_ctl_print_json_line(struct json_object *doc);

/*
 * A table as the options want it: as wide as the terminal, or whole; or fields of the array that
 * the rows were made of (or that are them).
 */
int vhca_ctl_print_rows(const struct vhca_ctl *ctl, const struct vhca_column *columns,
			unsigned int n, struct json_object *array, struct json_object *rows,
			struct vhca_error *err);

/* A list that is shown as a table: what vhca_ctl_list() needs to know about it. */
struct vhca_ctl_list {
	const char *path, *key; /* of the array in the answer */
	const char *empty;	/* said instead of a table without rows */
	const char *none;	/* the same where a filter was given; NULL: there is none */
	const struct vhca_column *columns;
	unsigned int n_columns;
	uint64_t query;	    /* VHCA_OPT_BIT() of the options that are parameters of that name */
	unsigned int limit; /* that of them with which one page is all; 0: none */
	/*
	 * Makes the rows of the table from the array; NULL: each element is a row. Caller puts the
	 * result.
	 */
	struct json_object *(*flatten)(struct json_object *array);
};
/*
 * A copy of row i of an array, to which members may be added; an empty object if it is none. Caller
 * puts it.
 */
struct json_object *vhca_ctl_copy_row(struct json_object *array, size_t i);
/*
 * As vhca_ctl_call() by GET of a list, all pages as one answer; from the first page again where the
 * last row of one has left the list meanwhile.
 */
int vhca_ctl_get_pages(const struct vhca_ctl *ctl, const char *path, const char *key,
		       struct json_object **ret, struct vhca_error *err);
#define VHCA_CTL_CURSOR_MAX 128
/* As vhca_ctl_call() by GET of what has happened since a cursor; waits so long for something. */
int vhca_ctl_get_events(const struct vhca_ctl *ctl, const char *cursor, unsigned int wait_s,
			struct json_object **ret, struct vhca_error *err);
/* The cursor behind such an answer. */
int vhca_ctl_take_cursor(struct json_object *doc, char ret[static VHCA_CTL_CURSOR_MAX],
			 struct vhca_error *err);
/*
 * Gets it, page by page where the answer has a `next`, and prints the table; with --json all rows
 * as one answer.
 */
int vhca_ctl_list(const struct vhca_ctl *ctl, const struct vhca_ctl_list *list,
		  struct vhca_error *err);

#endif
