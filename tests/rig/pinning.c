/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pinning GROUP MIB: what it costs the kernel to give a VF the memory of its guest, and to take it
 * back: VFIO_IOMMU_MAP_DMA and VFIO_IOMMU_UNMAP_DMA, as QEMU calls them when a VF is plugged in and
 * out. GROUP is the IOMMU group of a VF on vfio-pci that nobody has open; MIB, a multiple of 2, is
 * how much memory. Huge pages come from the kernel's pool, which must have them. Prints "NAME PIN
 * UNPIN", microseconds, for
 *
 *   clear    memory that nobody has touched is written once; PIN is that time, UNPIN 0
 *   4k       pages of 4 KiB that the guest has never touched
 *   4k-used  the same, touched before
 *   2m       huge pages of 2 MiB, never touched
 *   2m-used  the same, touched before
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/vfio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"

#define IOVA	UINT64_C(0x100000000)
#define MIB_MAX 65536
#define MIB	((size_t)1 << 20)

static const struct kind {
	const char *name;
	bool huge, touched;
} kinds[] = {
	{"4k", false, false},
	{"4k-used", false, true},
	{"2m", true, false},
	{"2m-used", true, true},
};

static int complain(const char *what)
{
	int r = -errno;

	(void)fprintf(stderr, "%s: %s\n", what, strerror(-r));
	return r;
}

/*
 * The descriptors stay open until the end of the program: the container lives as long as they do.
 */
static int open_container(uint32_t group)
{
	char path[32];
	int container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC), fd;

	(void)snprintf(path, sizeof(path), "/dev/vfio/%" PRIu32, group);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (container < 0 || fd < 0)
		return complain(path);
	if (ioctl(fd, VFIO_GROUP_SET_CONTAINER, &container) < 0)
		return complain("VFIO_GROUP_SET_CONTAINER");
	if (ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) < 0)
		return complain("VFIO_SET_IOMMU");
	return container;
}

static void *get_memory(size_t size, bool huge)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Transparent huge pages would make a third kind of the first. */
	if (!huge)
		(void)madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static int measure(int container, size_t size, const struct kind *kind)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.iova = IOVA,
		.size = size,
	};
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap), .iova = IOVA, .size = size};
	void *memory = get_memory(size, kind->huge);
	uint64_t begin, mapped;

	if (!memory)
		return complain(kind->name);
	if (kind->touched)
		memset(memory, 1, size);
	map.vaddr = (uintptr_t)memory;
	begin = vhca_now_us();
	if (ioctl(container, VFIO_IOMMU_MAP_DMA, &map) < 0)
		return complain("VFIO_IOMMU_MAP_DMA");
	mapped = vhca_now_us();
	if (ioctl(container, VFIO_IOMMU_UNMAP_DMA, &unmap) < 0)
		return complain("VFIO_IOMMU_UNMAP_DMA");
	(void)printf("%s %" PRIu64 " %" PRIu64 "\n", kind->name, mapped - begin,
		     vhca_now_us() - mapped);
	(void)munmap(memory, size);
	return 0;
}

static int clear(size_t size)
{
	void *memory = get_memory(size, false);
	uint64_t begin = vhca_now_us();

	if (!memory)
		return complain("clear");
	memset(memory, 0, size);
	(void)printf("clear %" PRIu64 " 0\n", vhca_now_us() - begin);
	(void)munmap(memory, size);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t group, mib;
	int container, r;

	if (argc != 3 || vhca_parse_u32(argv[1], 10, UINT32_MAX, &group) < 0 ||
	    vhca_parse_u32(argv[2], 10, MIB_MAX, &mib) < 0 || mib == 0 || mib % 2) {
		(void)fprintf(stderr, "usage: pinning GROUP MIB\n");
		return 2;
	}
	container = open_container(group);
	r = container < 0 ? container : clear(mib * MIB);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(kinds) && r == 0; i++)
		r = measure(container, mib * MIB, &kinds[i]);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
