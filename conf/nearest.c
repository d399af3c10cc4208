/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conf/nearest.h"

#include <limits.h>
#include <string.h>

#define WORD_MAX 32 /* what is longer is compared by its beginning: known words are short */

/* Levenshtein distance with one row of memory. */
static unsigned int edit_distance(const char *a, const char *b)
{
	size_t len_a = strnlen(a, WORD_MAX), len_b = strnlen(b, WORD_MAX);
	unsigned int row[WORD_MAX + 1];

	for (size_t j = 0; j <= len_b; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= len_a; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= len_b; j++) {
			unsigned int above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

			if (best > above + 1)
				best = above + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			row[j] = best;
			diagonal = above;
		}
	}
	return row[len_b];
}

struct vhca_nearest vhca_nearest_init(const char *word)
{
	return (struct vhca_nearest){.word = word, .best = "", .distance = UINT_MAX};
}

void vhca_nearest_offer(struct vhca_nearest *n, const char *known)
{
	unsigned int distance = edit_distance(n->word, known);

	if (distance < n->distance) {
		n->distance = distance;
		n->best = known;
	}
}
