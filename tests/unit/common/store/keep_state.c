// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into a test program by tools/keep-state: each state.db that it closes is copied to
 * $VHCA_KEEP_STATE before. It knows nothing but SQLite.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

static bool is_ours(sqlite3 *db)
{
	sqlite3_stmt *stmt = NULL;
	bool yes = sqlite3_prepare_v2(db, "SELECT 1 FROM outbox LIMIT 1", -1, &stmt, NULL) ==
		   SQLITE_OK;

	(void)sqlite3_finalize(stmt);
	return yes;
}

static void copy(sqlite3 *db)
{
	static unsigned int n;
	const char *dir = getenv("VHCA_KEEP_STATE");
	char sql[512];

	if (!db || !dir || !is_ours(db))
		return;
	(void)snprintf(sql, sizeof(sql), "VACUUM INTO '%s/%s-%d-%u.db'", dir,
		       program_invocation_short_name, (int)getpid(), n++);
	(void)sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int sqlite3_close(sqlite3 *db)
{
	int (*next)(sqlite3 * db);

	*(void **)&next = dlsym(RTLD_NEXT, "sqlite3_close");
	copy(db);
	return next(db);
}

int sqlite3_close_v2(sqlite3 *db)
{
	int (*next)(sqlite3 * db);

	*(void **)&next = dlsym(RTLD_NEXT, "sqlite3_close_v2");
	copy(db);
	return next(db);
}
