/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SLOW_VFS_H
#define VHCA_TESTS_SLOW_VFS_H
/* SQLite's default file layer with one change: syncs of the write-ahead log are counted and can be
 * made slow. */

/* Makes it the default of this process. */
void slow_vfs_install(void);
/* Every later sync of a log sleeps this long. */
void slow_vfs_delay_ms(unsigned int ms);
/* Syncs of logs begun so far. */
unsigned int slow_vfs_syncs(void);

#endif
