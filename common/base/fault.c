/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Built only with -Dfault-points=true: see role.h for the syntax of VHCA_FAULT. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/role.h"
#include "common/base/text.h"

#define POINTS_MAX 16

enum action { ACTION_KILL, ACTION_STOP, ACTION_ERRNO, ACTION_DELAY };

struct point {
	char name[64];
	enum action action;
	uint32_t value; /* errno, or ms */
	uint32_t at;	/* the errno is returned at this time of passing */
	atomic_uint passed;
};

static struct point points[POINTS_MAX];
static unsigned int n_points;

/* "kill", "stop", "errno:N", "errno:N:K", "delay:MS". */
static int parse_action(char *text, struct point *p)
{
	char *save = NULL;
	const char *verb = strtok_r(text, ":", &save);
	const char *value = strtok_r(NULL, ":", &save);
	const char *at = strtok_r(NULL, ":", &save);

	if (!verb)
		return -1;
	p->at = 1;
	if ((strcmp(verb, "kill") == 0 || strcmp(verb, "stop") == 0) && !value) {
		p->action = *verb == 'k' ? ACTION_KILL : ACTION_STOP;
		return 0;
	}
	if (!value || vhca_parse_u32(value, 10, 600000, &p->value) < 0)
		return -1;
	if (strcmp(verb, "delay") == 0 && !at) {
		p->action = ACTION_DELAY;
		return 0;
	}
	p->action = ACTION_ERRNO;
	if (strcmp(verb, "errno") != 0 || p->value == 0)
		return -1;
	return at ? vhca_parse_u32(at, 10, UINT32_MAX, &p->at) : 0;
}

static int parse_item(char *item, struct point *p)
{
	char *eq = strchr(item, '=');

	if (!eq)
		return -1;
	*eq = '\0';
	return vhca_strcpy(p->name, sizeof(p->name), item) < 0 ? -1 : parse_action(eq + 1, p);
}

/* A test that arms nothing by a slip of the pen would pass for the wrong reason: stop instead. */
static void arm(void)
{
	const char *env = getenv("VHCA_FAULT");
	char text[1024], *save = NULL;

	if (!env)
		return;
	if (vhca_strcpy(text, sizeof(text), env) < 0)
		abort();
	for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		if (n_points == POINTS_MAX || parse_item(item, &points[n_points]) < 0) {
			(void)fprintf(stderr, "VHCA_FAULT: \"%s\" is not a fault point\n", item);
			abort();
		}
		n_points++;
	}
}

static int act(struct point *p)
{
	const struct timespec delay = {.tv_sec = p->value / 1000,
				       .tv_nsec = (long)(p->value % 1000) * 1000000};

	switch (p->action) {
	case ACTION_KILL:
		(void)raise(SIGKILL); /* does not return */
		return 0;
	case ACTION_STOP:
		(void)raise(SIGSTOP);
		return 0;
	case ACTION_DELAY:
		(void)nanosleep(&delay, NULL); /* a signal may shorten it; tests allow for that */
		return 0;
	case ACTION_ERRNO:
		return atomic_fetch_add(&p->passed, 1) + 1 == p->at ? -(int)p->value : 0;
	}
	return 0;
}

static bool is_at(const struct point *p, const char *point, const char *what)
{
	size_t len = strlen(point);

	if (strncmp(p->name, point, len) != 0)
		return false;
	return !p->name[len] ||
	       (what && p->name[len] == '/' && strcmp(p->name + len + 1, what) == 0);
}

/* What the file arms now; false: nothing. */
static bool read_file(const char *path, struct point *p)
{
	VHCA_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (parse_item(text, p) < 0)
		abort();
	return true;
}

static int pass_file(const char *point, const char *what)
{
	const char *path = getenv("VHCA_FAULT_FILE");
	struct point p = {0};

	if (!path || !read_file(path, &p) || !is_at(&p, point, what))
		return 0;
	if (unlink(path) < 0)
		return 0; /* another thread was there first */
	return act(&p);
}

int vhca_fault_in(const char *point, const char *what)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int r;

	(void)pthread_once(&once, arm); /* cannot fail with a valid control */
	r = pass_file(point, what);
	for (unsigned int i = 0; i < n_points && r == 0; i++)
		if (is_at(&points[i], point, what))
			r = act(&points[i]);
	return r;
}
