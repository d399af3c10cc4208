/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_MLX4_SCRIPT_H
#define VHCA_TESTS_SIM_HOST_MLX4_SCRIPT_H
/* Plays tests/data/mlx4.script, which says what each line means, on one of our models of mlx4. */
#include <stddef.h>
#include <stdint.h>

#define MLX4_SCRIPT_PF	  "0000:03:00.0"
#define MLX4_SCRIPT_WORDS 8

struct mlx4_identity {
	unsigned int fn, port;
	uint64_t guid;
	uint16_t keys[MLX4_SCRIPT_WORDS];
	unsigned int n_keys;
};

struct mlx4_model {
	const char *name;	  /* as in the script's `not` */
	void (*begin)(void *ctx); /* a section: fresh drivers */
	/* Path below iov/; text without its newline. 0 or a negative errno. */
	int (*read)(void *ctx, const char *path, char *buf, size_t size);
	int (*write)(void *ctx, const char *path, const char *text);
	/* The words behind "event", which end with NULL; -EINVAL if it knows no such event. */
	int (*event)(void *ctx, char *const words[]);
	/* A whole identity (take: GUID all ones, no keys), or NULL: by files. */
	int (*give)(void *ctx, const struct mlx4_identity *id);
	void *ctx;
};

struct mlx4_played {
	unsigned int lines, skipped; /* skipped: lines of sections that the model cannot play */
	char problem[256];	     /* "" = none; the first one ends the play */
};

void mlx4_script_play(const struct mlx4_model *model, const char *file, struct mlx4_played *ret);

#endif
