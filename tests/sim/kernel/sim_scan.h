/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SIM_SCAN_H
#define VHCA_TESTS_SIM_KERNEL_SIM_SCAN_H
/*
 * The two conversions of the kernel's sscanf() that mlx4 uses (lib/vsprintf.c, vsscanf): they are
 * not those of C. No plus sign, no saturation: what is too long loses its upper bits.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline unsigned int sim_digit(char c)
{
	if (isdigit((unsigned char)c))
		return (unsigned int)(c - '0');
	return isxdigit((unsigned char)c) ? (unsigned int)(tolower(c) - 'a') + 10 : 16;
}

/* simple_strntoull(); base 0 as in C */
static inline uint64_t sim_digits(const char *text, unsigned int base)
{
	bool hex = text[0] == '0' && tolower(text[1]) == 'x' && sim_digit(text[2]) < 16;
	uint64_t ret = 0;

	if (base == 0)
		base = hex ? 16 : text[0] == '0' ? 8 : 10;
	for (text += hex && base == 16 ? 2 : 0; sim_digit(*text) < base; text++)
		ret = ret * base + sim_digit(*text);
	return ret;
}

/* "%i" into an int */
static inline bool sim_scan_int(const char *text, int *ret)
{
	bool minus;

	text += strspn(text, " \t\n");
	minus = *text == '-';
	text += minus;
	if (!isdigit((unsigned char)*text))
		return false;
	*ret = (int)(uint32_t)(minus ? -sim_digits(text, 0) : sim_digits(text, 0));
	return true;
}

/* "%llx" */
static inline bool sim_scan_hex(const char *text, uint64_t *ret)
{
	text += strspn(text, " \t\n");
	if (!isxdigit((unsigned char)*text))
		return false;
	*ret = sim_digits(text, 16);
	return true;
}

#endif
