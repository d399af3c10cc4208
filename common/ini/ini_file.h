/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_INI_INI_FILE_H
#define VHCA_INI_INI_FILE_H
/*
 * INI files through inih, with what it lacks: line numbers for every pair, lines up to
 * VHCA_INI_LINE_MAX (a longer one is an error, not a split), no multi-line values, no inline
 * comments after values ("#" and ";" only start a comment at the beginning of a line), UTF-8 BOM
 * accepted, NUL bytes refused.
 */
#include <stddef.h>

#include "common/base/error.h"

#define VHCA_INI_LINE_MAX 1024
#define VHCA_INI_FILE_MAX (256 * 1024)

/* One `key = value` in `[section]` ("" before the first). Strings are borrowed until the return.
 * Returns 0, or a negative value after vhca_error_set(): parsing stops, the message is prefixed
 * with "file:line: key: ". */
typedef int (*vhca_ini_pair_fn)(void *ctx, const char *section, const char *key, const char *value,
				unsigned int line, struct vhca_error *err);

/* The file's text, which the caller frees. A missing or unreadable file is an error. */
int vhca_ini_read_file(const char *path, char **ret, size_t *ret_len, struct vhca_error *err);
/* Name stands for the file in messages. Errors: "name:line: key: reason". */
int vhca_ini_parse_text(const char *name, const char *text, size_t len, vhca_ini_pair_fn fn,
			void *ctx, struct vhca_error *err);

/*
 * Calls fn for every section header, empty sections included (key and value are ""). A negative
 * result stops; its message is prefixed with "file:line: [section]: ".
 */
int vhca_ini_list_sections(const char *name, const char *text, size_t len, vhca_ini_pair_fn fn,
			   void *ctx, struct vhca_error *err);

#endif
