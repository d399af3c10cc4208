// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/slow_vfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static sqlite3_vfs shim;
static sqlite3_io_methods log_methods; /* those of the real layer but for xSync */
static int (*real_sync)(sqlite3_file *file, int flags);
static atomic_uint delay_ms, syncs;

static int slow_sync(sqlite3_file *file, int flags)
{
	unsigned int ms = atomic_load(&delay_ms);
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	(void)atomic_fetch_add(&syncs, 1);
	(void)nanosleep(&ts, NULL);
	return real_sync(file, flags);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
	sqlite3_vfs *real = vfs->pAppData;
	int rc = real->xOpen(real, name, file, flags, ret);

	if (rc == SQLITE_OK && (flags & SQLITE_OPEN_WAL)) {
		real_sync = file->pMethods->xSync;
		log_methods = *file->pMethods;
		log_methods.xSync = slow_sync;
		file->pMethods = &log_methods;
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

void slow_vfs_delay_ms(unsigned int ms)
{
	atomic_store(&delay_ms, ms);
}

unsigned int slow_vfs_syncs(void)
{
	return atomic_load(&syncs);
}
