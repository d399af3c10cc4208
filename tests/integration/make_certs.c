// SPDX-License-Identifier: LGPL-2.1-or-later
/* make_certs DIRECTORY: the certificates of tests/unit/common/http/certs.h, for tests in Python. */
#include "tests/unit/common/http/certs.h"

int main(int argc, char *argv[])
{
	return argc == 2 && certs_make(argv[1]) == 0 ? 0 : 1;
}
