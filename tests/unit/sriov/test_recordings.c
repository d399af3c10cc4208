/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings of real hosts (tests/data/sysfs), replayed; a skip while there is none. */
#include <glob.h>
#include <stdio.h>

#include "tests/unit/sriov/recording.h"
#include "tests/unit/unit.h"

static glob_t found;

static void recordings_of_real_hosts(void **state)
{
	(void)state;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct sim_tree tree;

		print_message("# %s\n", found.gl_pathv[i]);
		recording_unpack(found.gl_pathv[i], &tree);
		recording_replay(tree.root);
		sim_tree_done(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(recordings_of_real_hosts)};
	char pattern[512];
	int failed = 0;

	(void)snprintf(pattern, sizeof(pattern), "%s/tests/data/sysfs/*.tar.gz",
		       recording_source_dir());
	if (glob(pattern, 0, NULL, &found) == GLOB_NOMATCH)
		(void)printf("1..0 # SKIP no recording in tests/data/sysfs\n");
	else
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	globfree(&found);
	return failed;
}
