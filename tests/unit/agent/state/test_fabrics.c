/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fabrics of a host's adapters, each once. */
#include <stdio.h>
#include <string.h>

#include "agent/state/model.h"
#include "tests/unit/unit.h"

static void add(struct vhca_model *m, uint8_t bus, const char *fabric, bool wanted)
{
	struct vhca_hca *hca = vhca_model_add_hca(m, (struct vhca_bdf){.bus = bus});

	assert_non_null(hca);
	hca->wanted = wanted;
	(void)snprintf(hca->fabric, sizeof(hca->fabric), "%s", fabric);
}

static void expect(const struct vhca_model *m, bool only_wanted, const char *want)
{
	const struct vhca_hca *hca = NULL;
	char found[64] = "";

	while ((hca = vhca_model_next_fabric(m, hca, only_wanted)))
		(void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s@%u ",
			       hca->fabric, hca->facts.bdf.bus);
	assert_string_equal(found, want);
}

static void each_comes_once(void **state)
{
	struct vhca_model m;

	(void)state;
	vhca_model_init(&m);
	expect(&m, false, "");
	add(&m, 1, "red", false);
	add(&m, 2, "blue", true);
	add(&m, 3, "red", true);
	add(&m, 4, "blue", true);
	add(&m, 5, "red", true);
	expect(&m, false, "red@1 blue@2 ");
	expect(&m, true, "blue@2 red@3 ");
	vhca_model_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_comes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
