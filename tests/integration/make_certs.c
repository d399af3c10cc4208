// SPDX-License-Identifier: LGPL-2.1-or-later
/* make_certs [--matrix] DIRECTORY: those of tests/unit/common/http/certs.h, for tests in Python. */
#include <string.h>

#include "tests/unit/common/http/certs.h"

int main(int argc, char *argv[])
{
	if (argc == 3 && strcmp(argv[1], "--matrix") == 0)
		return certs_make_matrix(argv[2]) == 0 ? 0 : 1;
	return argc == 2 && certs_make(argv[1]) == 0 ? 0 : 1;
}
