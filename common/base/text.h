/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_TEXT_H
#define VHCA_BASE_TEXT_H
/*
 * The field's address types and their text forms. Parsers are strict: the whole string must match,
 * no blanks, no trailing text; they return 0 or -EINVAL (-ERANGE where a number is too large) and
 * leave the output alone on failure. Formatters write a NUL-terminated string into a caller buffer
 * of the stated size and return it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unsigned number in base 10 or 16 (base 16: with or without 0x; base 0: decimal, or hex with 0x;
 * never octal), no sign, at most max. */
int vhca_parse_u64(const char *s, unsigned int base, uint64_t max, uint64_t *ret);
int vhca_parse_u32(const char *s, unsigned int base, uint32_t max, uint32_t *ret);

/* "yes/no", "true/false", "on/off", "1/0". */
int vhca_parse_bool(const char *s, bool *ret);

/* ---- PCI address ---- */
struct vhca_bdf {
	uint16_t domain;
	uint8_t bus;
	uint8_t dev; /* 0..31 */
	uint8_t fn;  /* 0..7 */
};
#define VHCA_BDF_STRLEN 16
int vhca_bdf_parse(const char *s, struct vhca_bdf *ret); /* "0000:01:00.1", domain required */
char *vhca_bdf_format(char buf[static VHCA_BDF_STRLEN], struct vhca_bdf bdf);
int vhca_bdf_cmp(struct vhca_bdf a, struct vhca_bdf b); /* <0, 0, >0 as strcmp */
/* The first of n that is this one, or NULL. */
const struct vhca_bdf *vhca_bdf_find(const struct vhca_bdf *bdfs, size_t n, struct vhca_bdf bdf);
#define VHCA_BDF_STR(bdf) vhca_bdf_format((char[VHCA_BDF_STRLEN]){0}, (bdf))

/* ---- GUID: host order in memory ---- */
#define VHCA_GUID_STRLEN 19
#define VHCA_GUID_NONE	 UINT64_C(0)
#define VHCA_GUID_ALL1	 UINT64_MAX /* "deleted" in mlx4's admin_guids */
/* "0x0002c90300a1b2c3", 16 hex digits, "00:02:c9:03:00:a1:b2:c3" or "0002:c903:00a1:b2c3". */
int vhca_guid_parse(const char *s, uint64_t *ret);
char *vhca_guid_format(char buf[static VHCA_GUID_STRLEN], uint64_t guid); /* 0x%016 */
/* Low 64 bits of a GID in sysfs form: 8 groups of 4 hex digits joined by colons. */
int vhca_gid_parse(const char *s, uint64_t *ret_prefix, uint64_t *ret_guid);
/* A unicast GUID that a port may own: not 0, not all ones, multicast bit (0x01 of the first byte)
 * clear. */
bool vhca_guid_is_valid(uint64_t guid);
/* Not unicast: no adapter takes it, and it names nobody. */
#define VHCA_GUID_BY_SM UINT64_C(0xff00000000000000)
/*
 * What somebody wants: "auto" gives 0, "sm" VHCA_GUID_BY_SM, "mac:fa:16:3e:12:34:56" the GUID that
 * OpenStack derives from a port's MAC address (networking-mlnx, eswitchd: the first three octets,
 * 00:00, the last three), else a unicast GUID.
 */
int vhca_guid_wish_parse(const char *s, uint64_t *ret);
/* It could be "mac:" and an address. */
bool vhca_guid_is_of_mac(uint64_t guid);
#define VHCA_GUID_STR(guid) vhca_guid_format((char[VHCA_GUID_STRLEN]){0}, (guid))

/* ---- P_Key: 16 bits with the membership bit; pkey_base is the lower 15 ---- */
#define VHCA_PKEY_STRLEN  7
#define VHCA_PKEY_FULL	  0x8000
#define VHCA_PKEY_DEFAULT 0x7fff /* base of the default partition */
/* "0x8001", "32769". A base of 0 (invalid by the standard) is refused. */
int vhca_pkey_parse(const char *s, uint16_t *ret);
char *vhca_pkey_format(char buf[static VHCA_PKEY_STRLEN], uint16_t pkey);
static inline uint16_t vhca_pkey_base(uint16_t pkey)
{
	return pkey & 0x7fff;
}
static inline bool vhca_pkey_is_full(uint16_t pkey)
{
	return (pkey & VHCA_PKEY_FULL) != 0;
}
#define VHCA_PKEY_STR(pkey) vhca_pkey_format((char[VHCA_PKEY_STRLEN]){0}, (pkey))
/* Index of the 16-bit value (membership bit included) in a table of n, or -1. */
int vhca_pkey_find(const uint16_t *table, size_t n, uint16_t pkey);
/* A list of them, separated by blanks: "0x8001 0x0002". At most max <= 255 are read. */
#define VHCA_PKEYS_STRLEN(n) ((n)*VHCA_PKEY_STRLEN + 1)
int vhca_pkeys_parse(const char *text, uint16_t *ret, size_t max, uint8_t *ret_n);
char *vhca_pkeys_format(char *buf, size_t size, const uint16_t *pkeys, size_t n);

/* ---- UUID ---- */
struct vhca_uuid {
	uint8_t b[16];
};
#define VHCA_UUID_STRLEN 37
int vhca_uuid_parse(const char *s, struct vhca_uuid *ret); /* with hyphens, any case */
char *vhca_uuid_format(char buf[static VHCA_UUID_STRLEN], const struct vhca_uuid *u);
int vhca_uuid_random(struct vhca_uuid *ret); /* version 4 from getrandom(2) */
bool vhca_uuid_equal(const struct vhca_uuid *a, const struct vhca_uuid *b);
#define VHCA_UUID_STR(u) vhca_uuid_format((char[VHCA_UUID_STRLEN]){0}, (u))
/*
 * How a line to be pasted into a shell names a domain: by its name if nothing in that means more to
 * a shell or to a command, and nothing may have been cut off, else by its UUID.
 */
const char *vhca_domain_word(char buf[static VHCA_UUID_STRLEN], const char *name,
			     const struct vhca_uuid *uuid);
#define VHCA_DOMAIN_WORD(name, uuid) vhca_domain_word((char[VHCA_UUID_STRLEN]){0}, (name), (uuid))

/* Of "HOST", "HOST:PORT" or "[v6]:PORT", to its end or a "/": does nobody but this host get
 * there? */
bool vhca_is_loopback(const char *authority);

/* A name that may stand in an alias, a URL path and a key: [A-Za-z0-9_-]{1,31}. */
#define VHCA_NAME_MAX 32
bool vhca_name_is_valid(const char *s);

/* The value of a word in the table of an enum's n words, which is in the order of its values, or
 * -EINVAL. */
int vhca_word_find(const char *const *words, size_t n, const char *word);

/* Whether len bytes are a word of a list whose words sep parts: "bdf state", ' '. */
bool vhca_words_have(const char *words, char sep, const char *word, size_t len);

/* Copies with NUL; -ENAMETOOLONG (and an empty dst) when src does not fit. */
int vhca_strcpy(char *dst, size_t size, const char *src);

/*
 * Bytes of the control character at s, which a terminal would obey (ECMA-48): 1 for C0 and DEL, 2
 * for C1 in UTF-8, 0 = none.
 */
size_t vhca_control_len(const char *s);
/* A ? for each of their bytes. */
void vhca_blot_controls(char *s);

/* ---- bounded string builder: after an overflow everything is ignored and `truncated` is true ----
 */
struct vhca_strbuf {
	char *buf;
	size_t size, len;
	bool truncated;
};
void vhca_strbuf_init(struct vhca_strbuf *sb, char *buf, size_t size);
void vhca_strbuf_add(struct vhca_strbuf *sb, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
