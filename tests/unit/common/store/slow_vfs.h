/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_COMMON_STORE_SLOW_VFS_H
#define VHCA_TESTS_UNIT_COMMON_STORE_SLOW_VFS_H
/* SQLite's default file layer with two changes: syncs of the write-ahead log are counted and can be
 * made slow, and its disk can be full: then a write answers SQLITE_FULL, as unixWrite() in SQLite's
 * os_unix.c does for ENOSPC. */

#include <stdbool.h>

/* Makes it the default of this process. */
void slow_vfs_install(void);
/* Every later sync of a log sleeps this long. */
void slow_vfs_delay_ms(unsigned int ms);
/* Syncs of logs, also those under way, wait until they are let go. */
void slow_vfs_hold(bool hold);
/* Syncs of logs begun so far. */
unsigned int slow_vfs_syncs(void);
/* No room any more for logs whose path begins with this, which must stay; NULL: room again. */
void slow_vfs_fill(const char *path);
/* The disk of these is full for so many writes, after so many syncs of any logs. */
void slow_vfs_fill_briefly(const char *path, unsigned int after, unsigned int writes);
/* Writes that were refused since either was called. */
unsigned int slow_vfs_refused(void);

#endif
