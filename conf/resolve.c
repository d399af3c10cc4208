/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Partition lists as domains and claims write them: "0x8001 storage". */
#include <errno.h>
#include <string.h>

#include "conf/conf.h"

#define WORD_MAX 64

struct list {
	uint16_t *pkeys;
	size_t n, max;
};

static int with_hint(int r, struct vhca_error *err, const char *hint)
{
	vhca_error_hint(err, "%s", hint);
	return r;
}

#define NUMBERS "0x0001 to 0x7fff for a limited member, 0x8001 to 0xffff for a full one"

static int resolve_word(const struct vhca_conf *conf, const char *word, uint16_t *ret,
			struct vhca_error *err)
{
	uint64_t number;

	if (vhca_pkey_parse(word, ret) == 0)
		return 0;
	if (vhca_parse_u64(word, 0, UINT64_MAX, &number) != -EINVAL)
		return with_hint(vhca_error_set(err, VHCA_ERR_INVALID, "bad_pkey", 0,
						"partition \"%s\": not a P_Key", word),
				 err, NUMBERS);
	for (unsigned int i = 0; i < conf->n_partitions; i++) {
		if (strcmp(conf->partitions[i].name, word) == 0) {
			*ret = conf->partitions[i].pkey;
			return 0;
		}
	}
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "no_such_partition", 0,
			     "partition \"%s\": no such name", word);
	vhca_error_hint(err, "define [partition %s] in the configuration, or use its number", word);
	return -EINVAL;
}

static int check_pkey(const struct vhca_conf *conf, const struct list *list, const char *word,
		      uint16_t pkey, struct vhca_error *err)
{
	if (vhca_pkey_base(pkey) == VHCA_PKEY_DEFAULT && !conf->allow_default_partition) {
		(void)vhca_error_set(err, VHCA_ERR_DENIED, "default_partition_denied", EACCES,
				     "partition \"%s\": the default partition", word);
		vhca_error_hint(err, "set allow_default_partition = yes in [policy]");
		return -EACCES;
	}
	for (size_t i = 0; i < list->n; i++)
		if (vhca_pkey_base(list->pkeys[i]) == vhca_pkey_base(pkey))
			return with_hint(vhca_error_set(err, VHCA_ERR_INVALID,
							"duplicate_partition", 0,
							"partition \"%s\": %s is already in the "
							"list as %s",
							word, VHCA_PKEY_STR(pkey),
							VHCA_PKEY_STR(list->pkeys[i])),
					 err, "name each partition once");
	if (list->n == list->max)
		return with_hint(vhca_error_set(err, VHCA_ERR_INVALID, "too_many_partitions", 0,
						"partition \"%s\": more than %zu partitions", word,
						list->max),
				 err, "name fewer, or ask for a second VF");
	return 0;
}

/* Cuts the next word off *text into word; 0 at the end, 1 for a word. */
static int next_word(const char **text, char word[static WORD_MAX], struct vhca_error *err)
{
	const char *start = *text + strspn(*text, " \t\r\n");
	size_t len = strcspn(start, " \t\r\n");

	if (len == 0)
		return 0;
	if (len >= WORD_MAX)
		return with_hint(vhca_error_set(err, VHCA_ERR_INVALID, "no_such_partition", 0,
						"partition \"%.16s...\": longer than any name",
						start),
				 err, "separate P_Keys and names by blanks");
	memcpy(word, start, len);
	word[len] = '\0';
	*text = start + len;
	return 1;
}

int vhca_conf_resolve_pkeys(const struct vhca_conf *conf, const char *text, uint16_t *ret,
			    size_t max, size_t *ret_n, struct vhca_error *err)
{
	struct list list = {.pkeys = ret, .max = max};
	char word[WORD_MAX];
	uint16_t pkey;
	int r;

	while ((r = next_word(&text, word, err)) > 0) {
		r = resolve_word(conf, word, &pkey, err);
		if (r == 0)
			r = check_pkey(conf, &list, word, pkey, err);
		if (r < 0)
			return r;
		ret[list.n++] = pkey;
	}
	if (r < 0)
		return r;
	if (list.n == 0)
		return with_hint(vhca_error_set(err, VHCA_ERR_INVALID, "no_partition", 0,
						"partition: the list is empty"),
				 err, NUMBERS ", or the name of a [partition]");
	*ret_n = list.n;
	return 0;
}
