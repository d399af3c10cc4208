/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_TRUTH_INT_H
#define VHCA_TESTS_SIM_HOST_TRUTH_INT_H
/* Between truth.c and what it must know of each card. */
#include <stddef.h>

#include "tests/sim/host/truth.h"

struct truth_card {
	/* Appends what there is to see of VF v; returns the new end. */
	size_t (*describe)(const struct truth *t, unsigned int v, char *buf, size_t size,
			   size_t at);
	bool (*clean)(const struct truth *t, unsigned int v);
	/* What is wrong with a VF that its own guest has; NULL = nothing. */
	const char *(*wrong)(const struct truth *t, unsigned int v);
	/* Its guest holds something that will be wrong as soon as the SM acts. */
	bool (*is_loose)(const struct truth *t, unsigned int v);
	bool (*matches_claim)(const struct truth *t, unsigned int v);
	/* The addresses that it has or asks for; returns how many. */
	unsigned int (*addresses)(const struct truth *t, unsigned int v, uint64_t ret[HW_PORTS]);
};
extern const struct truth_card truth_mlx4, truth_mlx5;

size_t truth_add(char *buf, size_t size, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The first violation of a run, of VF v, is kept. */
void truth_violate(struct truth *t, unsigned int v, const char *what);
bool truth_in_state(const struct truth *t, unsigned int v, const char *state);
/*
 * May the user of VF v talk with this key? Who had a VF before the agent came keeps what the driver
 * gave it.
 */
bool truth_may(const struct truth *t, unsigned int v, uint16_t key);
/* Its guest ignores unplug requests, or cannot be asked. */
bool truth_is_deaf(const struct truth *t, unsigned int v);
/* Its guest has what it was given, as far as is known: nobody may take it. */
bool truth_is_settled(const struct truth *t, unsigned int v);

#endif
