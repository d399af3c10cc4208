/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into OpenSM: counts the subnet management packets that it hands to umad_send(),
 * independently of OpenSM's own counters and of the plugin's. The counters are 64-bit words in the
 * file that $VHCA_SMPCOUNT names: Set() of each attribute below, in that order, all requests, for
 * each LID how many Set(PortInfo) gave it with the bit ClientReregister, for each LinearFDBTop how
 * many Set(SwitchInfo) had it, and the time of the last request, in ms of CLOCK_MONOTONIC. They
 * start at zero with the process, the last one with its start.
 *
 * It also changes what OpenSM gets by umad_recv(), where ibsim's hardware is all alike: ibsim's
 * ports do not say that they know this bit, and nobody sets it for such. With
 * $VHCA_CLIENT_REREGISTER all say so, as adapters do. All its adapters have P_Key tables of 64
 * entries, and more than one block of GUIDs. Those whose SystemImageGUID is in $VHCA_SMALL_TABLES,
 * separated by commas, say that theirs have 32, and 8: ibsim's Guid command leaves that GUID as it
 * is, so it names the place, whoever is there. A PortInfo has not got it, but comes by the same
 * way.
 */
#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CLASS_LID_ROUTED 0x01
#define CLASS_DIRECTED	 0x81
#define METHOD_SET	 0x02
#define METHOD_RESPONSE	 0x80

#define NODE_INFO   0x11
#define SWITCH_INFO 0x12
#define PORT_INFO   0x15

#define SMALL_TABLES_MAX 16
#define SMALL_TABLE	 32
#define SMALL_GUID_CAP	 8

/*
 * Offsets in a datagram: NodeInfo and PortInfo as struct ib_node_info and ib_port_info in
 * <rdma/ib_smi.h> of the kernel have them, at the 64 bytes of data.
 */
#define METHOD		       3
#define HOPS		       7 /* and the way, of directed ones */
#define WAY		       128
#define WAY_SIZE	       64
#define ATTRIBUTE	       16
#define NODE_INFO_SYSTEM       (64 + 4)
#define NODE_INFO_PARTITIONS   (64 + 28)
#define PORT_INFO_LID	       (64 + 16)
#define PORT_INFO_CAPABILITIES (64 + 20)
#define PORT_INFO_GUID_CAP     (64 + 50)
#define PORT_INFO_REREGISTER   (64 + 51)
/* bit 25 of 32: IB_PORT_CAP_HAS_CLIENT_REREG in OpenSM's ib_types.h */
#define CAN_REREGISTER	  0x02
#define CLIENT_REREGISTER 0x80
#define SWITCH_INFO_TOP	  (64 + 6) /* ib_switch_info_t, lin_top, in OpenSM's ib_types.h */

#define LIDS (UINT16_MAX + 1)

static const uint16_t attributes[] = {
	0x19,	   /* LinearForwardingTable */
	PORT_INFO, /* PortInfo */
	0x14,	   /* GUIDInfo */
	0x16,	   /* P_KeyTable */
};
#define ATTRIBUTES (sizeof(attributes) / sizeof(*attributes))

int umad_send(int fd, int agent, void *umad, int length, int timeout, int retries);
int umad_recv(int fd, void *umad, int *length, int timeout);

static struct {
	uint64_t set[ATTRIBUTES], all, reregister[LIDS], top[LIDS], last_ms;
} * counts;

static const char *can_reregister;
static uint64_t small_tables[SMALL_TABLES_MAX];		   /* 0 = no more of them */
static uint8_t small_ways[SMALL_TABLES_MAX][1 + WAY_SIZE]; /* to these: hops and way */
static size_t n_small_ways;
static int (*next_send)(int fd, int agent, void *umad, int length, int timeout, int retries);
static int (*next_recv)(int fd, void *umad, int *length, int timeout);
static void *(*get_mad)(void *umad);

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void read_small_tables(void)
{
	const char *list = getenv("VHCA_SMALL_TABLES");

	for (size_t i = 0; list && *list && i < SMALL_TABLES_MAX; i++) {
		char *end;

		small_tables[i] = strtoull(list, &end, 0);
		list = *end ? end + 1 : end;
	}
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("VHCA_SMPCOUNT");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	void *map;

	*(void **)&next_send = dlsym(RTLD_NEXT, "umad_send");
	*(void **)&next_recv = dlsym(RTLD_NEXT, "umad_recv");
	*(void **)&get_mad = dlsym(RTLD_DEFAULT, "umad_get_mad");
	can_reregister = getenv("VHCA_CLIENT_REREGISTER");
	read_small_tables();
	if (fd < 0 || ftruncate(fd, sizeof(*counts)) < 0)
		return;
	map = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (map == MAP_FAILED)
		return;
	counts = map;
	counts->last_ms = now_ms();
}

static uint16_t word(const uint8_t *mad, size_t offset)
{
	uint16_t value;

	(void)memcpy(&value, mad + offset, sizeof(value));
	return be16toh(value);
}

static int is_smp(const uint8_t *mad)
{
	return mad[1] == CLASS_DIRECTED || mad[1] == CLASS_LID_ROUTED;
}

static void add_one(uint64_t *counter)
{
	(void)__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static void count(const uint8_t *mad)
{
	uint16_t attribute = word(mad, ATTRIBUTE);

	if (!is_smp(mad) || (mad[METHOD] & METHOD_RESPONSE))
		return;
	add_one(&counts->all);
	__atomic_store_n(&counts->last_ms, now_ms(), __ATOMIC_SEQ_CST);
	if (mad[METHOD] != METHOD_SET)
		return;
	for (size_t i = 0; i < ATTRIBUTES; i++)
		if (attribute == attributes[i])
			add_one(&counts->set[i]);
	if (attribute == SWITCH_INFO)
		add_one(&counts->top[word(mad, SWITCH_INFO_TOP)]);
	if (attribute == PORT_INFO && (mad[PORT_INFO_REREGISTER] & CLIENT_REREGISTER))
		add_one(&counts->reregister[word(mad, PORT_INFO_LID)]);
}

int umad_send(int fd, int agent, void *umad, int length, int timeout, int retries)
{
	if (counts && get_mad)
		count(get_mad(umad));
	return next_send(fd, agent, umad, length, timeout, retries);
}

static int has_small_table(const uint8_t *node_info)
{
	uint64_t system;

	(void)memcpy(&system, node_info + NODE_INFO_SYSTEM, sizeof(system));
	for (size_t i = 0; i < SMALL_TABLES_MAX && small_tables[i]; i++)
		if (small_tables[i] == be64toh(system))
			return 1;
	return 0;
}

static int is_small_way(const uint8_t *mad)
{
	for (size_t i = 0; i < n_small_ways; i++)
		if (small_ways[i][0] == mad[HOPS] &&
		    memcmp(small_ways[i] + 1, mad + WAY, WAY_SIZE) == 0)
			return 1;
	return 0;
}

static void remember_small_way(const uint8_t *mad)
{
	if (mad[1] != CLASS_DIRECTED || is_small_way(mad) || n_small_ways == SMALL_TABLES_MAX)
		return;
	small_ways[n_small_ways][0] = mad[HOPS];
	(void)memcpy(small_ways[n_small_ways++] + 1, mad + WAY, WAY_SIZE);
}

static void show(uint8_t *mad)
{
	uint16_t attribute = word(mad, ATTRIBUTE);

	if (!is_smp(mad) || !(mad[METHOD] & METHOD_RESPONSE))
		return;
	if (attribute == PORT_INFO && can_reregister)
		mad[PORT_INFO_CAPABILITIES] |= CAN_REREGISTER;
	if (attribute == PORT_INFO && mad[1] == CLASS_DIRECTED && is_small_way(mad))
		mad[PORT_INFO_GUID_CAP] = SMALL_GUID_CAP;
	if (attribute == NODE_INFO && has_small_table(mad)) {
		mad[NODE_INFO_PARTITIONS + 1] = SMALL_TABLE;
		remember_small_way(mad);
	}
}

int umad_recv(int fd, void *umad, int *length, int timeout)
{
	int agent = next_recv(fd, umad, length, timeout);

	if (agent >= 0 && get_mad)
		show(get_mad(umad));
	return agent;
}
