// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/common/store/slow_vfs.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

/* Logs that are open at once, of all hosts of a test. */
#define LOGS_MAX 16

static sqlite3_vfs shim;
static sqlite3_io_methods log_methods; /* those of the real layer but for these three */
static const sqlite3_io_methods *real_methods;
static atomic_uint delay_ms, syncs;
static atomic_bool held;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct {
	const sqlite3_file *file;
	char path[PATH_MAX];
} logs[LOGS_MAX];
static struct {
	const char *path;  /* NULL: there is room */
	unsigned int from; /* syncs */
	unsigned int refused, most;
} full;

static int slow_sync(sqlite3_file *file, int flags)
{
	unsigned int ms = atomic_load(&delay_ms);
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)atomic_fetch_add(&syncs, 1);
	(void)nanosleep(&ts, NULL);
	while (atomic_load(&held))
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return real_methods->xSync(file, flags);
}

static bool is_full_for(const char *path)
{
	if (!full.path || strncmp(path, full.path, strlen(full.path)) != 0 ||
	    atomic_load(&syncs) < full.from || full.refused == full.most)
		return false;
	full.refused++;
	return true;
}

static bool has_no_room(const sqlite3_file *file)
{
	bool no_room = false;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < LOGS_MAX; i++)
		if (logs[i].file == file)
			no_room = is_full_for(logs[i].path);
	pthread_mutex_unlock(&lock);
	return no_room;
}

static int write_if_room(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
	return has_no_room(file) ? SQLITE_FULL : real_methods->xWrite(file, data, n, at);
}

/* Its file was `was`, and is `now`; NULL stands for none. */
static void note(const sqlite3_file *was, const sqlite3_file *now, const char *path)
{
	unsigned int i = 0;

	pthread_mutex_lock(&lock);
	while (i < LOGS_MAX && logs[i].file != was)
		i++;
	if (i == LOGS_MAX)
		abort();
	logs[i].file = now;
	(void)snprintf(logs[i].path, sizeof(logs[i].path), "%s", path);
	pthread_mutex_unlock(&lock);
}

static int close_log(sqlite3_file *file)
{
	note(file, NULL, "");
	return real_methods->xClose(file);
}

/* Once: other threads read them, without the lock. */
static void note_methods(const sqlite3_io_methods *real)
{
	pthread_mutex_lock(&lock);
	if (!real_methods) {
		log_methods = *real;
		log_methods.xSync = slow_sync;
		log_methods.xWrite = write_if_room;
		log_methods.xClose = close_log;
		real_methods = real;
	}
	pthread_mutex_unlock(&lock);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
	sqlite3_vfs *real = vfs->pAppData;
	int rc = real->xOpen(real, name, file, flags, ret);

	if (rc == SQLITE_OK && (flags & SQLITE_OPEN_WAL)) {
		note_methods(file->pMethods);
		file->pMethods = &log_methods;
		note(NULL, file, name);
	}
	return rc;
}

void slow_vfs_install(void)
{
	sqlite3_vfs *real = sqlite3_vfs_find(NULL);

	shim = *real;
	shim.zName = "slow";
	shim.pAppData = real;
	shim.xOpen = open_file;
	if (sqlite3_vfs_register(&shim, 1) != SQLITE_OK)
		abort();
}

void slow_vfs_hold(bool hold)
{
	atomic_store(&held, hold);
}

void slow_vfs_delay_ms(unsigned int ms)
{
	atomic_store(&delay_ms, ms);
}

unsigned int slow_vfs_syncs(void)
{
	return atomic_load(&syncs);
}

static void fill(const char *path, unsigned int from, unsigned int most)
{
	pthread_mutex_lock(&lock);
	full.path = path;
	full.from = from;
	full.most = most;
	full.refused = 0;
	pthread_mutex_unlock(&lock);
}

void slow_vfs_fill(const char *path)
{
	fill(path, 0, UINT_MAX);
}

void slow_vfs_fill_briefly(const char *path, unsigned int after, unsigned int writes)
{
	fill(path, slow_vfs_syncs() + after, writes);
}

unsigned int slow_vfs_refused(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = full.refused;
	pthread_mutex_unlock(&lock);
	return n;
}
