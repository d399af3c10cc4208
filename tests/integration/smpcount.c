/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into OpenSM: counts the subnet management packets that it hands to umad_send(), independently of OpenSM's own counters and of
 * the plugin's. The counters are 64-bit words in the file that $VHCA_SMPCOUNT names: Set() of each attribute below, in that order, and all
 * requests. They start at zero with the process.
 */
#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLASS_LID_ROUTED 0x01
#define CLASS_DIRECTED	 0x81
#define METHOD_SET	 0x02
#define METHOD_RESPONSE	 0x80

static const uint16_t attributes[] = {
	0x19, /* LinearForwardingTable */
	0x15, /* PortInfo */
	0x14, /* GUIDInfo */
	0x16, /* P_KeyTable */
};
#define ATTRIBUTES (sizeof(attributes) / sizeof(*attributes))

int umad_send(int fd, int agent, void *umad, int length, int timeout, int retries);

static struct {
	uint64_t set[ATTRIBUTES], all;
} * counts;

static int (*next_send)(int fd, int agent, void *umad, int length, int timeout, int retries);
static void *(*get_mad)(void *umad);

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("VHCA_SMPCOUNT");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	void *map;

	*(void **)&next_send = dlsym(RTLD_NEXT, "umad_send");
	*(void **)&get_mad = dlsym(RTLD_DEFAULT, "umad_get_mad");
	if (fd < 0 || ftruncate(fd, sizeof(*counts)) < 0)
		return;
	map = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (map != MAP_FAILED)
		counts = map;
}

static void count(const uint8_t *mad)
{
	uint16_t attribute;

	if ((mad[1] != CLASS_DIRECTED && mad[1] != CLASS_LID_ROUTED) || (mad[3] & METHOD_RESPONSE))
		return;
	(void)memcpy(&attribute, mad + 16, sizeof(attribute));
	attribute = be16toh(attribute);
	(void)__atomic_add_fetch(&counts->all, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < ATTRIBUTES; i++)
		if (mad[3] == METHOD_SET && attribute == attributes[i])
			(void)__atomic_add_fetch(&counts->set[i], 1, __ATOMIC_SEQ_CST);
}

int umad_send(int fd, int agent, void *umad, int length, int timeout, int retries)
{
	if (counts && get_mad)
		count(get_mad(umad));
	return next_send(fd, agent, umad, length, timeout, retries);
}
