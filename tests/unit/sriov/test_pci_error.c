/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "sriov/pci_error.h"
#include "tests/unit/unit.h"

/* The kernel's words: Linux 6.1, pci_uevent_ers() in drivers/pci/pci-driver.c. */
static const struct {
	const char *event, *word;
	enum vhca_pci_error error;
} known[] = {
	{"BEGIN_RECOVERY", "reported", VHCA_PCI_ERROR_REPORTED},
	{"SUCCESSFUL_RECOVERY", "recovered", VHCA_PCI_ERROR_RECOVERED},
	{"FAILED_RECOVERY", "failed", VHCA_PCI_ERROR_FAILED},
};

static void kernels_words(void **state)
{
	enum vhca_pci_error error;
	struct vhca_bdf bdf;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(vhca_pci_error_parse("0000:01:00.1", known[i].event, &bdf, &error),
				 0);
		assert_string_equal(VHCA_BDF_STR(bdf), "0000:01:00.1");
		assert_int_equal(error, known[i].error);
		assert_string_equal(vhca_pci_error_to_string(error), known[i].word);
	}
	assert_null(vhca_pci_error_to_string(VHCA_PCI_ERROR_NONE));
}

static void others_are_refused(void **state)
{
	static const char *const events[][2] = {
		{"0000:01:00.1", NULL},	      {"0000:01:00.1", ""},
		{"0000:01:00.1", "reported"}, {"mlx4_0", "BEGIN_RECOVERY"},
		{NULL, "BEGIN_RECOVERY"},
	};
	enum vhca_pci_error error = VHCA_PCI_ERROR_FAILED;
	struct vhca_bdf bdf;

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(vhca_pci_error_parse(events[i][0], events[i][1], &bdf, &error),
				 -EINVAL);
	assert_int_equal(error, VHCA_PCI_ERROR_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_words),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
