/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/fuzz/fuzz.h"

struct fuzz_verdicts fuzz_verdicts;
