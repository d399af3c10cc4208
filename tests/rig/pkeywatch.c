/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pkeywatch PATH: an independent witness of isolation. PATH is /sys/class/infiniband/<ibdev>/iov.
 * Samples every function's P_Key map together with the port's table, as fast as 100 times per second, and prints
 * a line whenever the set of P_Keys that a function shows has changed: "SECONDS FUNCTION KEY,KEY" ("-" for none).
 * Ends at SIGTERM with "samples N seconds S". Shares no code with the agent.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TABLE_SIZE   128
#define FUNCTIONS    16
#define INTERVAL_NS  10000000L
#define KEY_BASE(k)  ((k)&0x7fffu)
#define KEYS_PER_SET 16

struct function {
	char name[32];
	int fd[TABLE_SIZE];
	unsigned int n;
	bool shown;		     /* at least one line was printed */
	uint16_t keys[KEYS_PER_SET]; /* the last set: ascending, zero-filled */
};

struct watch {
	int table_fd[TABLE_SIZE];
	unsigned int n_table, n_functions;
	struct function functions[FUNCTIONS];
	struct timespec start;
};

static volatile sig_atomic_t stop;

static void on_term(int signo)
{
	(void)signo;
	stop = 1;
}

static double elapsed(const struct watch *w)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - w->start.tv_sec) +
	       (double)(now.tv_nsec - w->start.tv_nsec) / 1e9;
}

/* Opens DIR/0, DIR/1, ... and returns how many there are. */
static unsigned int open_numbered(const char *dir, int *fds)
{
	char path[512];
	unsigned int n;

	for (n = 0; n < TABLE_SIZE; n++) {
		snprintf(path, sizeof(path), "%s/%u", dir, n);
		fds[n] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[n] < 0)
			break;
	}
	return n;
}

static bool read_attribute(int fd, char *buf, size_t size)
{
	const ssize_t n = pread(fd, buf, size - 1, 0);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

static bool read_table(const struct watch *w, uint16_t *table)
{
	char text[64];

	for (unsigned int i = 0; i < w->n_table; i++) {
		if (!read_attribute(w->table_fd[i], text, sizeof(text)))
			return false;
		table[i] = (uint16_t)strtoul(text, NULL, 16);
	}
	return true;
}

static void insert_key(uint16_t *keys, uint16_t key)
{
	for (unsigned int i = 0; i < KEYS_PER_SET; i++) {
		if (keys[i] == key)
			return;
		if (keys[i] == 0 || keys[i] > key) {
			memmove(&keys[i + 1], &keys[i], (KEYS_PER_SET - i - 1) * sizeof(*keys));
			keys[i] = key;
			return;
		}
	}
}

/* The set of P_Key values that the function's map makes visible to its guest. */
static bool read_function(const struct function *f, const uint16_t *table, unsigned int n_table,
			  uint16_t *keys)
{
	char text[64];
	unsigned long index;

	memset(keys, 0, KEYS_PER_SET * sizeof(*keys));
	for (unsigned int i = 0; i < f->n; i++) {
		if (!read_attribute(f->fd[i], text, sizeof(text)))
			return false;
		if (strncmp(text, "none", 4) == 0)
			continue;
		index = strtoul(text, NULL, 10);
		if (index < n_table && KEY_BASE(table[index]))
			insert_key(keys, table[index]);
	}
	return true;
}

static void show_change(const struct watch *w, struct function *f, const uint16_t *keys)
{
	const char *separator = "";

	if (f->shown && !memcmp(f->keys, keys, sizeof(f->keys)))
		return;
	f->shown = true;
	memcpy(f->keys, keys, sizeof(f->keys));
	printf("%.3f %s ", elapsed(w), f->name);
	for (unsigned int i = 0; i < KEYS_PER_SET && keys[i]; i++, separator = ",")
		printf("%s0x%04x", separator, keys[i]);
	printf("%s\n", keys[0] ? "" : "-");
	fflush(stdout);
}

static bool read_functions(const struct watch *w, const uint16_t *table,
			   uint16_t keys[static FUNCTIONS][KEYS_PER_SET])
{
	for (unsigned int i = 0; i < w->n_functions; i++)
		if (!read_function(&w->functions[i], table, w->n_table, keys[i]))
			return false;
	return true;
}

/* One sample. The table is read before and after the maps: if it moved in between, they mean nothing together. */
static bool sample(struct watch *w)
{
	uint16_t before[TABLE_SIZE], after[TABLE_SIZE], keys[FUNCTIONS][KEYS_PER_SET];

	do {
		if (!read_table(w, before) || !read_functions(w, before, keys) ||
		    !read_table(w, after))
			return false;
	} while (memcmp(before, after, w->n_table * sizeof(*before)));
	for (unsigned int i = 0; i < w->n_functions; i++)
		show_change(w, &w->functions[i], keys[i]);
	return true;
}

static void open_functions(struct watch *w, const char *top)
{
	DIR *dir = opendir(top);
	const struct dirent *e;
	char path[400];
	struct function *f;

	if (!dir)
		err(1, "%s", top);
	while ((e = readdir(dir))) {
		if (!strchr(e->d_name, ':') || w->n_functions == FUNCTIONS)
			continue;
		f = &w->functions[w->n_functions++];
		snprintf(f->name, sizeof(f->name), "%.31s", e->d_name);
		snprintf(path, sizeof(path), "%s/%s/ports/1/pkey_idx", top, f->name);
		f->n = open_numbered(path, f->fd);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	static struct watch w;
	const struct sigaction action = {.sa_handler = on_term};
	const struct timespec pause = {.tv_nsec = INTERVAL_NS};
	unsigned long samples = 0;
	char path[400];

	if (argc != 2)
		errx(2, "usage: pkeywatch /sys/class/infiniband/<ibdev>/iov");
	sigaction(SIGTERM, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &w.start);
	snprintf(path, sizeof(path), "%s/ports/1/pkeys", argv[1]);
	w.n_table = open_numbered(path, w.table_fd);
	open_functions(&w, argv[1]);
	if (!w.n_table || !w.n_functions)
		errx(1, "%s: no functions or no table", argv[1]);
	while (!stop) {
		if (!sample(&w))
			err(1, "%s: an attribute cannot be read", argv[1]);
		samples++;
		nanosleep(&pause, NULL);
	}
	printf("samples %lu seconds %.3f\n", samples, elapsed(&w));
	return 0;
}
