/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a domain's XML says of its memory and its CPUs. */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "tests/unit/agent/libvirt/domxml_text.h"
#include "tests/unit/unit.h"

/* What stands after <memory> in the guest's XML. */
static struct vhca_guest_memory memory_of(const char *inner)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	char xml[1024];

	(void)snprintf(xml, sizeof(xml), DOM_HEAD "%s</domain>", inner);
	info = dom_parse(xml, 0);
	assert_int_equal(info->memory.kib, 1048576);
	return info->memory;
}

static void reads_what_pins_the_memory(void **state)
{
	struct vhca_guest_memory m = memory_of("");

	(void)state;
	assert_int_equal(m.pages, VHCA_PAGES_ORDINARY);
	assert_int_equal(m.hard_limit_kib, 0);
	m = memory_of("<memtune><soft_limit unit='KiB'>7</soft_limit>"
		      "<hard_limit unit='KiB'>2097152</hard_limit></memtune>");
	assert_int_equal(m.hard_limit_kib, 2097152);
	assert_false(m.is_pinned);
	m = memory_of("<numatune><memory mode='strict' nodeset='1'/></numatune>");
	assert_true(m.is_pinned);
	assert_int_equal(m.node, 1);
	assert_false(
		memory_of("<numatune><memory mode='strict' nodeset='0-1'/></numatune>").is_pinned);
	/* A limit that cannot be read hides nothing of the domain. */
	m = memory_of("<memtune><hard_limit unit='KiB'>much</hard_limit></memtune>");
	assert_int_equal(m.hard_limit_kib, 0);
	m = memory_of("<memoryBacking><locked/></memoryBacking>");
	assert_int_equal(m.pages, VHCA_PAGES_ORDINARY);
}

static void reads_what_pins_the_cpus(void **state)
{
	static const struct {
		const char *xml, *cpus;
	} rows[] = {
		{"", ""},
		{"<vcpu placement='static'>2</vcpu>", ""},
		{"<vcpu>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4-7,^5'/>"
		 "<vcpupin vcpu='1' cpuset='8'/></cputune>",
		 "4,6-8"},
		{"<vcpu>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4'/></cputune>", ""},
		{"<vcpu cpuset='1,3'>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4'/></cputune>",
		 "1,3-4"},
		{"<vcpu cpuset='1,3'>2</vcpu>", "1,3"},
		{"<vcpu>1</vcpu><cputune><vcpupin vcpu='0' cpuset='x'/></cputune>", ""},
		{"<vcpu>1</vcpu><cputune><vcpupin vcpu='0'/></cputune>", ""},
		{"<vcpu cpuset='1'>many</vcpu>", ""},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
		struct vhca_cpus want;
		char xml[1024];

		(void)snprintf(xml, sizeof(xml), DOM_HEAD "%s</domain>", rows[i].xml);
		info = dom_parse(xml, 0);
		assert_int_equal(vhca_cpus_parse(rows[i].cpus, &want), 0);
		assert_memory_equal(&info->cpus, &want, sizeof(want));
	}
}

#define HUGE(inner) "<memoryBacking><hugepages>" inner "</hugepages></memoryBacking>"
#define CELLS(n)    "<cpu><numa>" n "</numa></cpu>"

static void reads_the_size_of_huge_pages(void **state)
{
	static const struct {
		const char *xml;
		enum vhca_pages pages;
		uint64_t page_kib;
	} cases[] = {
		{"<memoryBacking><hugepages/></memoryBacking>", VHCA_PAGES_HUGE, 0},
		{HUGE("<page size='2048' unit='KiB'/>"), VHCA_PAGES_HUGE, 2048},
		/* as Nova writes it: one for each node of the guest */
		{HUGE("<page size='1048576' unit='KiB' nodeset='0'/>") CELLS("<cell id='0'/>"),
		 VHCA_PAGES_HUGE, 1048576},
		{HUGE("<page size='2048' unit='KiB' nodeset='0'/><page size='2048' unit='KiB' "
		      "nodeset='1'/>") CELLS("<cell id='0'/><cell id='1'/>"),
		 VHCA_PAGES_HUGE, 2048},
		/* the other node has ordinary pages */
		{HUGE("<page size='2048' unit='KiB' nodeset='0'/>")
			 CELLS("<cell id='0'/><cell id='1'/>"),
		 VHCA_PAGES_MIXED, 0},
		{HUGE("<page size='2048' unit='KiB' nodeset='0'/><page size='1048576' unit='KiB' "
		      "nodeset='1'/>") CELLS("<cell id='0'/><cell id='1'/>"),
		 VHCA_PAGES_MIXED, 0},
		{HUGE("<page size='2' unit='M'/>"), VHCA_PAGES_MIXED, 0},
		{HUGE("<page/>"), VHCA_PAGES_MIXED, 0},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_guest_memory m = memory_of(cases[i].xml);

		assert_int_equal(m.pages, cases[i].pages);
		assert_int_equal(m.page_kib, cases[i].page_kib);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_pins_the_memory),
		cmocka_unit_test(reads_what_pins_the_cpus),
		cmocka_unit_test(reads_the_size_of_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
