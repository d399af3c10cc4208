/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "tests/unit/unit.h"

char *tree_path(const struct tree *t, const char *path, char buf[static TREE_PATH_MAX])
{
	assert_true(snprintf(buf, TREE_PATH_MAX, "%s/%s", t->root, path) < TREE_PATH_MAX);
	return buf;
}

void tree_init(struct tree *t)
{
	assert_int_equal(vhca_strcpy(t->root, sizeof(t->root), "/tmp/vhca-test-XXXXXX"), 0);
	assert_non_null(mkdtemp(t->root));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tree_done(struct tree *t)
{
	assert_int_equal(nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void tree_remove(const struct tree *t, const char *path)
{
	assert_int_equal(nftw(TREE_PATH(t, path), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void tree_mkdir(const struct tree *t, const char *path)
{
	assert_int_equal(vhca_mkdir_p(TREE_PATH(t, path), 0755), 0);
}

static void make_parent(const struct tree *t, const char *path)
{
	char full[TREE_PATH_MAX];

	*strrchr(tree_path(t, path, full), '/') = '\0';
	assert_int_equal(vhca_mkdir_p(full, 0755), 0);
}

void tree_put_bytes(const struct tree *t, const char *path, const void *data, size_t len)
{
	VHCA_AUTO_CLOSE int fd = -1;

	make_parent(t, path);
	fd = open(TREE_PATH(t, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
}

void tree_put(const struct tree *t, const char *path, const char *text)
{
	tree_put_bytes(t, path, text, strlen(text));
}

void tree_link(const struct tree *t, const char *path, const char *target)
{
	make_parent(t, path);
	assert_int_equal(symlink(target, TREE_PATH(t, path)), 0);
}

bool tree_has(const struct tree *t, const char *path)
{
	struct stat st;

	return lstat(TREE_PATH(t, path), &st) == 0;
}

void tree_assert(const struct tree *t, const char *path, const char *want)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;

	assert_int_equal(vhca_read_file(TREE_PATH(t, path), 1 << 20, &text, &len), 0);
	assert_string_equal(text, want);
}
