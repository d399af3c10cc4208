/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/mlx4_script.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE 64
#define PATH  96

struct play {
	const struct mlx4_model *model;
	struct mlx4_played *ret;
	unsigned int line;
	bool skipping;
};

__attribute__((format(printf, 2, 3))) static void problem(struct play *p, const char *fmt, ...)
{
	char *text = p->ret->problem;
	int n;
	va_list ap;

	if (text[0] != '\0')
		return;
	n = snprintf(text, sizeof(p->ret->problem), "%s, line %u: ", p->model->name, p->line);
	va_start(ap, fmt);
	(void)vsnprintf(text + n, sizeof(p->ret->problem) - (size_t)n, fmt, ap);
	va_end(ap);
}

static const char *errno_name(int r)
{
	switch (-r) {
	case 0:
		return "ok";
	case EINVAL:
		return "EINVAL";
	case ENOENT:
		return "ENOENT";
	case EACCES:
		return "EACCES";
	default:
		return "(an errno)";
	}
}

/* "{4}/..." is the directory of function 4: ib/sysfs.c get_name(). */
static const char *path_of(const char *word, char buf[static PATH])
{
	unsigned int fn;
	int end = 0;

	if (sscanf(word, "{%u}%n", &fn, &end) != 1 || end == 0)
		return word;
	(void)snprintf(buf, PATH, "%.8s%.2u.%u%s", MLX4_SCRIPT_PF, fn / 8, fn % 8, word + end);
	return buf;
}

/* What a read shows: its text, or the name of its errno. */
static const char *show(struct play *p, const char *word, char value[static VALUE])
{
	int r = p->model->read(p->model->ctx, path_of(word, (char[PATH]){0}), value, VALUE);

	return r < 0 ? errno_name(r) : value;
}

static void play_read(struct play *p, char *const words[])
{
	const char *found = show(p, words[1], (char[VALUE]){0});

	if (!words[2] || strcmp(words[2], "->") != 0 || !words[3])
		problem(p, "no value");
	else if (fnmatch(words[3], found, 0) != 0)
		problem(p, "read %s -> %s, found %s", words[1], words[3], found);
}

static void play_write(struct play *p, char *const words[])
{
	const char *text, *found;

	if (!words[2] || !words[3] || strcmp(words[3], "->") != 0 || !words[4]) {
		problem(p, "no result");
		return;
	}
	text = strcmp(words[2], "\"\"") == 0 ? "" : words[2];
	found = errno_name(
		p->model->write(p->model->ctx, path_of(words[1], (char[PATH]){0}), text));
	if (strcmp(found, words[4]) != 0)
		problem(p, "write %s %s -> %s, found %s", words[1], words[2], words[4], found);
}

/* "225c90000000001" and "fe80:0000:0000:0000:0225:c900:0000:0001" are one GUID. */
static uint64_t guid_in(const char *text)
{
	unsigned int g[4];

	if (sscanf(text, "%*4x:%*4x:%*4x:%*4x:%4x:%4x:%4x:%4x", &g[0], &g[1], &g[2], &g[3]) != 4)
		return strtoull(text, NULL, 16);
	return (uint64_t)g[0] << 48 | (uint64_t)g[1] << 32 | (uint64_t)g[2] << 16 | g[3];
}

static void play_agree(struct play *p, char *const words[])
{
	char asked[VALUE], held[VALUE];
	const char *a = show(p, words[1], asked), *b = show(p, words[2], held);

	if (guid_in(a) == 0 || guid_in(a) != guid_in(b))
		problem(p, "%s is %s, %s is %s", words[1], a, words[2], b);
}

/* The entry of the port's table that holds the key, or -1. */
static int find_key(struct play *p, unsigned int port, uint16_t key)
{
	char value[VALUE], path[PATH];

	for (int i = 0;; i++) {
		(void)snprintf(path, sizeof(path), "ports/%u/pkeys/%d", port, i);
		if (p->model->read(p->model->ctx, path, value, sizeof(value)) < 0)
			return -1;
		if (strtoul(value, NULL, 16) == key)
			return i;
	}
}

/* Each index to the entry of its key, the others none; then the GUID. */
static int give_by_files(struct play *p, const struct mlx4_identity *id)
{
	char path[PATH], text[VALUE];
	int r = 0, phys;

	for (unsigned int i = 0; r == 0; i++) {
		phys = i < id->n_keys ? find_key(p, id->port, id->keys[i]) : -1;
		(void)snprintf(path, sizeof(path), "%.8s%.2u.%u/ports/%u/pkey_idx/%u",
			       MLX4_SCRIPT_PF, id->fn / 8, id->fn % 8, id->port, i);
		(void)snprintf(text, sizeof(text), "%d", phys);
		r = p->model->write(p->model->ctx, path, phys < 0 ? "none" : text);
	}
	if (r != -ENOENT) /* the end of the table */
		return r;
	(void)snprintf(path, sizeof(path), "ports/%u/admin_guids/%u", id->port, id->fn);
	(void)snprintf(text, sizeof(text), "%llx", (unsigned long long)id->guid);
	return p->model->write(p->model->ctx, path, text);
}

static void play_give(struct play *p, char *const words[])
{
	struct mlx4_identity id = {.guid = UINT64_MAX};
	int r;

	id.fn = (unsigned int)strtoul(words[1], NULL, 10);
	id.port = (unsigned int)strtoul(words[2], NULL, 10);
	if (strcmp(words[0], "give") == 0) {
		id.guid = strtoull(words[3], NULL, 16);
		for (unsigned int i = 4; words[i]; i++)
			id.keys[id.n_keys++] = (uint16_t)strtoul(words[i], NULL, 16);
	}
	r = p->model->give ? p->model->give(p->model->ctx, &id) : give_by_files(p, &id);
	if (r < 0)
		problem(p, "%s: %s", words[0], errno_name(r));
}

static void play_event(struct play *p, char *const words[])
{
	if (p->model->event(p->model->ctx, words + 1) < 0)
		problem(p, "no event '%s'", words[1]);
}

/* Words until a comment; false for none. */
static bool split(char *line, char *words[static MLX4_SCRIPT_WORDS])
{
	unsigned int n = 0;
	char *save = NULL;

	for (char *w = strtok_r(line, " \t\n", &save); w && *w != '#' && n < MLX4_SCRIPT_WORDS - 1;
	     w = strtok_r(NULL, " \t\n", &save))
		words[n++] = w;
	words[n] = NULL;
	return n > 0;
}

static void begin_section(struct play *p)
{
	p->skipping = false;
	p->model->begin(p->model->ctx);
}

static void play_line(struct play *p, char *const words[])
{
	static const struct {
		const char *verb;
		void (*fn)(struct play *p, char *const words[]);
		unsigned int least; /* words */
	} verbs[] = {{"read", play_read, 2},   {"await", play_read, 2}, {"write", play_write, 2},
		     {"agree", play_agree, 3}, {"give", play_give, 4},	{"take", play_give, 3},
		     {"event", play_event, 2}};

	p->ret->lines++;
	p->ret->skipped += p->skipping;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(words[0], verbs[i].verb) != 0)
			continue;
		for (unsigned int n = 0; n < verbs[i].least; n++) {
			if (!words[n])
				problem(p, "too few words");
		}
		if (!p->skipping && p->ret->problem[0] == '\0')
			verbs[i].fn(p, words);
		return;
	}
	problem(p, "no verb '%s'", words[0]);
}

/* `not MODEL: REASON` */
static void play_not(struct play *p, char *const words[])
{
	size_t len = strlen(p->model->name);

	if (!words[1] || !words[2])
		problem(p, "no reason");
	else if (strncmp(words[1], p->model->name, len) == 0 && strcmp(words[1] + len, ":") == 0)
		p->skipping = true;
}

void mlx4_script_play(const struct mlx4_model *model, const char *file, struct mlx4_played *ret)
{
	struct play p = {.model = model, .ret = ret};
	char line[512], *words[MLX4_SCRIPT_WORDS];
	FILE *f = fopen(file, "re");

	*ret = (struct mlx4_played){.lines = 0};
	if (!f) {
		problem(&p, "cannot open %s", file);
		return;
	}
	while (ret->problem[0] == '\0' && fgets(line, sizeof(line), f)) {
		p.line++;
		if (!split(line, words))
			continue;
		if (words[0][0] == '[')
			begin_section(&p);
		else if (strcmp(words[0], "not") == 0)
			play_not(&p, words);
		else
			play_line(&p, words);
	}
	(void)fclose(f);
}
