/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/kernel/sim_fault.h"

#include <assert.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAULTS_MAX 32

struct armed {
	struct sim_fault fault;
	char pattern[SIM_PATH_MAX];
	unsigned int seen;
};

struct sim_faults {
	pthread_mutex_t lock;
	pthread_cond_t released;
	unsigned int releases; /* number of sim_faults_release() so far */
	bool no_hangs;
	unsigned int hits, n;
	struct armed armed[FAULTS_MAX];
};

struct sim_faults *sim_faults_new(void)
{
	struct sim_faults *faults = calloc(1, sizeof(*faults));

	assert(faults != NULL);
	assert(pthread_mutex_init(&faults->lock, NULL) == 0);
	assert(pthread_cond_init(&faults->released, NULL) == 0);
	return faults;
}

struct sim_faults *sim_faults_free(struct sim_faults *faults)
{
	(void)pthread_cond_destroy(&faults->released);
	(void)pthread_mutex_destroy(&faults->lock);
	free(faults);
	return NULL;
}

void sim_faults_add(struct sim_faults *faults, const struct sim_fault *fault)
{
	struct armed *a;

	pthread_mutex_lock(&faults->lock);
	assert(faults->n < FAULTS_MAX);
	a = &faults->armed[faults->n++];
	*a = (struct armed){.fault = *fault};
	assert(vhca_strcpy(a->pattern, sizeof(a->pattern), fault->pattern) == 0);
	a->fault.pattern = NULL; /* the caller's text may go */
	pthread_mutex_unlock(&faults->lock);
}

void sim_faults_clear(struct sim_faults *faults)
{
	pthread_mutex_lock(&faults->lock);
	faults->n = 0;
	faults->hits = 0;
	pthread_mutex_unlock(&faults->lock);
}

void sim_faults_release(struct sim_faults *faults, bool for_ever)
{
	pthread_mutex_lock(&faults->lock);
	faults->releases++;
	faults->no_hangs |= for_ever;
	pthread_cond_broadcast(&faults->released);
	pthread_mutex_unlock(&faults->lock);
}

unsigned int sim_faults_hits(struct sim_faults *faults)
{
	unsigned int hits;

	pthread_mutex_lock(&faults->lock);
	hits = faults->hits;
	pthread_mutex_unlock(&faults->lock);
	return hits;
}

/* Every armed fault counts the access; the first whose turn it is strikes. */
static struct armed *find_locked(struct sim_faults *faults, bool on_read, const char *path)
{
	struct armed *found = NULL;

	for (unsigned int i = 0; i < faults->n; i++) {
		struct armed *a = &faults->armed[i];

		if (a->fault.on_read != on_read || fnmatch(a->pattern, path, 0) != 0)
			continue;
		a->seen++;
		if (found == NULL && (a->fault.nth == 0 || a->fault.nth == a->seen))
			found = a;
	}
	return found;
}

static void hang_locked(struct sim_faults *faults)
{
	unsigned int before = faults->releases;

	while (faults->releases == before && !faults->no_hangs)
		pthread_cond_wait(&faults->released, &faults->lock);
}

bool sim_faults_strike(struct sim_faults *faults, bool on_read, const char *path,
		       struct sim_fault *ret)
{
	const struct armed *a;
	bool struck;

	pthread_mutex_lock(&faults->lock);
	a = find_locked(faults, on_read, path);
	struck = a != NULL;
	if (struck) {
		*ret = a->fault;
		faults->hits++;
		if (ret->hang)
			hang_locked(faults);
	}
	pthread_mutex_unlock(&faults->lock);
	if (struck && ret->delay_ms > 0)
		usleep(ret->delay_ms * 1000);
	return struck;
}
