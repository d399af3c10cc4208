/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_TREE_H
#define VHCA_TESTS_TREE_H
/*
 * A temporary directory tree for a test (a false sysfs, a configuration directory). Every failure
 * fails the running test. Paths are relative to the tree; missing directories are made.
 */
#include <stdbool.h>
#include <stddef.h>

#define TREE_PATH_MAX 512

struct tree {
	char root[64];
};

void tree_init(struct tree *t);
void tree_done(struct tree *t); /* removes everything */
void tree_mkdir(const struct tree *t, const char *path);
void tree_put(const struct tree *t, const char *path, const char *text);
void tree_put_bytes(const struct tree *t, const char *path, const void *data, size_t len);
void tree_link(const struct tree *t, const char *path, const char *target);
void tree_remove(const struct tree *t, const char *path); /* a file or a whole directory */
bool tree_has(const struct tree *t, const char *path);
void tree_assert(const struct tree *t, const char *path,
		 const char *want); /* the file's whole text */
/* root/path in buf, returned. */
char *tree_path(const struct tree *t, const char *path, char buf[static TREE_PATH_MAX]);
#define TREE_PATH(t, path) tree_path((t), (path), (char[TREE_PATH_MAX]){0})

#endif
