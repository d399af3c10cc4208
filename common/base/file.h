/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_FILE_H
#define VHCA_BASE_FILE_H
/* Files and descriptors. All return 0 / a count, or a negative errno. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Reads a whole file into a malloc'ed, NUL-terminated buffer that the caller frees.
 * -EFBIG when it is longer than max. */
int vhca_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len);
/* The same of what is open: to its end. */
int vhca_read_fd(int fd, size_t max, char **ret_data, size_t *ret_len);

/* The same of a text that one of our programs keeps; what a NUL byte cuts short is damaged. -ENOENT
 * sets no err. */
int vhca_read_state(const char *path, size_t max, char **ret, struct vhca_error *err);

/* Replaces path atomically: temporary file in the same directory, fsync, rename, fsync of the
 * directory. */
int vhca_write_file_atomic(const char *path, const void *data, size_t len, mode_t mode);

/*
 * Removes what killed writers of path have left beside it, and have not touched for age_s seconds;
 * returns how many. 0 is for whoever is path's only writer, before it writes.
 */
int vhca_sweep_leftovers(const char *path, time_t age_s);

/*
 * Who does what waits for a disk, as the two above: in another thread, while the caller's does
 * something else, and with fn's return value. NULL: the caller itself. For a program of which one
 * thread writes files.
 */
typedef int (*vhca_disk_fn)(void *arg);
void vhca_set_disk(int (*run)(void *ctx, vhca_disk_fn fn, void *arg), void *ctx);
/* Has fn called there. fn itself must not, and must call none of the two above. */
int vhca_run_at_disk(vhca_disk_fn fn, void *arg);

/* Whether a file is what it was, as far as stat(2) tells. */
bool vhca_same_file(const struct stat *a, const struct stat *b);

/* mkdir -p of path with the given mode for what is created; success if it exists as a directory. */
int vhca_mkdir_p(const char *path, mode_t mode);

/* Monotonic clock in ms (CLOCK_BOOTTIME: goes on during suspend). */
uint64_t vhca_now_ms(void);
/* CLOCK_MONOTONIC in us, for measuring. */
uint64_t vhca_now_us(void);
/* Wall clock in ms since 1970, for records that people read. */
uint64_t vhca_wall_ms(void);

/* Until a deadline (vhca_now_ms() scale); 0 if it is over. At most INT_MAX. */
uint32_t vhca_left_ms(uint64_t deadline);

/* Read/write exactly len bytes on a socket before `deadline` (vhca_now_ms() scale): -ETIMEDOUT,
 * -ECONNRESET on early end of file, or the errno. The descriptor may be blocking or not. */
int vhca_read_deadline(int fd, void *buf, size_t len, uint64_t deadline);
int vhca_write_deadline(int fd, const void *buf, size_t len, uint64_t deadline);

/* Connects a SOCK_STREAM unix socket, non-blocking, before the deadline; returns the fd (CLOEXEC).
 */
int vhca_connect_unix(const char *path, uint64_t deadline);

#endif
