/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CONF_NEAREST_H
#define VHCA_CONF_NEAREST_H
/* The known word nearest to a misspelt one, by edit distance. Inside conf/ only. */

struct vhca_nearest {
	const char *word; /* the misspelt one, borrowed */
	const char *best; /* borrowed from an offer; "" before the first */
	unsigned int distance;
};

/* Starts a search; word is borrowed while it lasts. */
struct vhca_nearest vhca_nearest_init(const char *word);
/* Considers one known word; of equally near ones the first stays. */
void vhca_nearest_offer(struct vhca_nearest *n, const char *known);

#endif
