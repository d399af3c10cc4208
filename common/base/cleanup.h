/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_CLEANUP_H
#define VHCA_BASE_CLEANUP_H
/*
 * Scope-bound ownership: a local marked with one of these is released when it goes out of scope;
 * ownership leaves the scope through vhca_steal_ptr() / vhca_steal_fd().
 */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define VHCA_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Defines fn##p(T **), usable with VHCA_CLEANUP, from a destructor that accepts NULL. */
#define VHCA_DEFINE_CLEANUP(type, fn)      \
	static inline void fn##p(type **p) \
	{                                  \
		fn(*p);                    \
	}

static inline void vhca_free_cleanup(void *p)
{
	free(*(void **)p);
}

static inline void vhca_close_cleanup(const int *fd)
{
	/* nothing can be done about a failing close of a read-only or synced descriptor */
	if (*fd >= 0)
		(void)close(*fd);
}

#define VHCA_AUTO_FREE	VHCA_CLEANUP(vhca_free_cleanup)
#define VHCA_AUTO_CLOSE VHCA_CLEANUP(vhca_close_cleanup)

#define vhca_steal_ptr(pp)              \
	__extension__({                 \
		__auto_type _pp = (pp); \
		__auto_type _p = *_pp;  \
		*_pp = NULL;            \
		_p;                     \
	})

static inline int vhca_steal_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define VHCA_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
