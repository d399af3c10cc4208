// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sim_host CONFIGURATION: the whole agent, on a simulated /sys with one ConnectX-3 and a VF, whose
 * port is in the partition 0x8001. libibverbs sees nothing of that: the port, ACTIVE, is described
 * by SIM_PORT_GUID in the environment, and its LID by the file that SIM_LID names, which is read
 * again and again. Ends on SIGTERM as vhcad does; exit status 77 where there is no FUSE.
 *
 * SIM_VFS says how many VFs it has. With SIM_PID, a file for its process id, the agent is a child
 * that may be killed and is started again on the same adapter; what it has written to /sys stands
 * in the file SIM_WRITES then, a line a write. (That child is this program again, with SIM_ROOT and
 * SIM_DEV.)
 *
 * SIM_BEFORE is what another driver has done to /sys before the agent begins, "path=text" a line.
 *
 * SIM_NUMA is the adapter's NUMA node, if the kernel is to know it.
 * SIM_PF is the adapter's address, if it is not to be 0000:01:00.0. SIM_HELD names a file with the
 * addresses of the VFs that guests have: their VFIO groups are open, and the drivers in the guests
 * run. The simulated /sys is what the link SIM_SYS leads to. All three need SIM_PID. The file
 * SIM_BOOT_ID has the host's boot id.
 *
 * SIM_STEPS names a file. While it has a number, the agent counts that down with each transaction
 * that it is about to submit and each that is durable, and is killed instead of counting below 0.
 *
 * With SIM_FIRMWARE, a unix socket, it is a ConnectX-5 with the files of MLNX_OFED: each port GUID
 * that is written for the VF goes there as a line, and takes effect with the answer.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/store/store_private.h"
#include "common/sysfs/sysfs.h"
#include "pkey/ports.h"
#include "tests/sim/kernel/sysfs_sim.h"

#define SKIPPED	 77
#define VFS_MAX	 64
#define HELD_MAX 7 /* of the VFs on the PF's own device */
#define KEYS	 4 /* every entry is a file that is read a few times, and the machine may be busy */
#define KEY	 0x8001
#define POLL_MS	 100

/* ---- instead of pkey/ports.c ---- */

struct vhca_ports {
	struct vhca_timer *timer;
	vhca_port_fn fn;
	void *arg;
	uint16_t lid; /* as it was said; 0 = not yet */
};

static uint16_t read_lid(void)
{
	FILE *f = fopen(getenv("SIM_LID"), "re");
	char text[16];
	uint32_t lid;

	if (!f || !fgets(text, sizeof(text), f) || vhca_parse_u32(text, 10, UINT16_MAX, &lid) < 0)
		abort();
	(void)fclose(f);
	return (uint16_t)lid;
}

static void say(void *arg)
{
	struct vhca_ports *p = arg;
	struct vhca_port_state state = {.port = 1,
					.state = VHCA_PORT_ACTIVE,
					.phys_state = 5,
					.is_ib = true,
					.sm_lid = 1,
					.gid_prefix = UINT64_C(0xfe80000000000000),
					.n_pkeys = KEYS,
					.pkeys = {0xffff, KEY}};

	if (vhca_guid_parse(getenv("SIM_PORT_GUID"), &state.port_guid) < 0)
		abort();
	vhca_timer_arm_ms(p->timer, POLL_MS);
	state.lid = read_lid();
	if (state.lid == p->lid)
		return;
	p->lid = state.lid;
	p->fn(p->arg, VHCA_PORT_CHANGED, &state);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in */
struct vhca_ports *__wrap_vhca_ports_close(struct vhca_ports *ports);
void __wrap_vhca_ports_poll(struct vhca_ports *ports);
int __wrap_vhca_ports_open(struct vhca_loop *loop, struct vhca_strand *strand,
			   struct vhca_sysfs *sys, struct vhca_bdf pf, uint32_t poll_ms,
			   vhca_port_fn fn, void *arg, struct vhca_ports **ret,
			   struct vhca_error *err);

struct vhca_ports *__wrap_vhca_ports_close(struct vhca_ports *ports)
{
	if (ports)
		vhca_timer_free(ports->timer);
	free(ports);
	return NULL;
}

void __wrap_vhca_ports_poll(struct vhca_ports *ports)
{
	vhca_timer_arm_ms(ports->timer, 0);
}

int __wrap_vhca_ports_open(struct vhca_loop *loop, struct vhca_strand *strand,
			   struct vhca_sysfs *sys, struct vhca_bdf pf, uint32_t poll_ms,
			   vhca_port_fn fn, void *arg, struct vhca_ports **ret,
			   struct vhca_error *err)
{
	struct vhca_ports *p = calloc(1, sizeof(*p));

	(void)strand, (void)sys, (void)pf, (void)poll_ms, (void)err;
	if (!p)
		return -ENOMEM;
	*p = (struct vhca_ports){.fn = fn, .arg = arg};
	if (vhca_timer_new(loop, "port", say, p, &p->timer) < 0) {
		free(p);
		return -ENOMEM;
	}
	vhca_timer_arm_ms(p->timer, 0);
	*ret = p;
	return 0;
}

/* ---- on top of common/sysfs ---- */

int __real_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value);
int __wrap_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value);

static int tell_firmware(const char *path, const char *guid)
{
	VHCA_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char line[64];

	(void)vhca_strcpy(addr.sun_path, sizeof(addr.sun_path), path);
	(void)snprintf(line, sizeof(line), "%s\n", guid);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    write(fd, line, strlen(line)) < 0 || read(fd, line, sizeof(line)) <= 0)
		return -EIO;
	return 0;
}

int __wrap_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value)
{
	const char *firmware = getenv("SIM_FIRMWARE");

	if (firmware && strcmp(attr, "port") == 0 && tell_firmware(firmware, value) < 0)
		return -EIO;
	return __real_vhca_sysfs_write(dir, attr, value);
}

/* ---- on top of common/store ---- */

void __real_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void __real_vhca_txn_finish(struct vhca_txn *txn);
void __wrap_vhca_txn_finish(struct vhca_txn *txn);

/* One of both threads at a time. */
static void count_step(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *path = getenv("SIM_STEPS");
	FILE *f = path ? fopen(path, "r+e") : NULL;
	unsigned int left;

	if (!f)
		return;
	(void)pthread_mutex_lock(&lock);
	if (fscanf(f, "%u", &left) == 1) {
		rewind(f);
		/* Once a test has removed it, nobody is killed any more. */
		if (left == 0 && unlink(path) == 0)
			(void)kill(getpid(), SIGKILL);
		(void)fprintf(f, "%u \n", left - 1);
	}
	(void)fclose(f);
	(void)pthread_mutex_unlock(&lock);
}

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg)
{
	count_step();
	__real_vhca_txn_commit(txn, done, arg);
}

void __wrap_vhca_txn_finish(struct vhca_txn *txn)
{
	count_step();
	__real_vhca_txn_finish(txn);
}

/* ---- on top of common/base ---- */

int __real_vhca_read_file(const char *path, size_t max, char **ret, size_t *ret_len);
int __wrap_vhca_read_file(const char *path, size_t max, char **ret, size_t *ret_len);

int __wrap_vhca_read_file(const char *path, size_t max, char **ret, size_t *ret_len)
{
	const char *boot_id = getenv("SIM_BOOT_ID");

	if (boot_id && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
		path = boot_id;
	return __real_vhca_read_file(path, max, ret, ret_len);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- the agent ---- */

static uint16_t count_vfs(void)
{
	const char *text = getenv("SIM_VFS");
	uint32_t n = 1;

	if (text && (vhca_parse_u32(text, 10, VFS_MAX, &n) < 0 || n == 0))
		abort();
	return (uint16_t)n;
}

static const char *pf_address(void)
{
	const char *text = getenv("SIM_PF");

	return text ? text : "0000:01:00.0";
}

static struct sim_pf connectx3(void)
{
	return (struct sim_pf){pf_address(), "mlx4_core", "mlx4_0", 0x1003,
			       count_vfs(),  1,		  1,	    KEYS};
}

static void add_adapter(struct sysfs_sim *sim)
{
	const struct sim_pf cx3 = connectx3();
	const struct sim_pf cx5 = {"0000:01:00.0", "mlx5_core", "mlx5_0", 0x1017,
				   cx3.total_vfs,  1,		1,	  KEYS};

	if (getenv("SIM_FIRMWARE")) {
		sysfs_sim_add_mlx5(sim, &cx5);
		sim_add_ofed_vf(sysfs_sim_tree(sim), cx5.bdf, 0);
		return;
	}
	sysfs_sim_add_mlx4(sim, &cx3, cx3.total_vfs);
	if (getenv("SIM_NUMA"))
		sim_put(sysfs_sim_tree(sim), SIM_PATH(SIM_PCI "/%s/numa_node", cx3.bdf), "%s",
			getenv("SIM_NUMA"));
	sim_add_netdev(sysfs_sim_tree(sim), cx3.bdf, "ib0", 32, 7);
	sysfs_sim_set_pkey(sim, &cx3, 1, 1, KEY);
}

static void put_line(const char *path, const char *mode, const char *line)
{
	FILE *f = fopen(path, mode);

	if (!f || fprintf(f, "%s\n", line) < 0 || fclose(f) != 0)
		abort();
}

static void write_before(struct sysfs_sim *sim)
{
	VHCA_AUTO_FREE char *lines = strdup(getenv("SIM_BEFORE") ? getenv("SIM_BEFORE") : "");
	char path[512], *rest = NULL;

	if (!lines)
		abort();
	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *text = strchr(line, '=');

		if (!text)
			abort();
		*text++ = '\0';
		(void)snprintf(path, sizeof(path), "%s/%s", sysfs_sim_root(sim), line);
		put_line(path, "we", text);
	}
	sysfs_sim_clear_log(sim);
}

static int run(const char *sysfs, const char *dev, const char *conf)
{
	const struct vhca_agent_args args = {
		.conf_path = conf, .sysfs_root = sysfs, .dev_root = dev, .watch_hardware = true};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_agent *agent = NULL;
	int status;

	if (vhca_agent_new(&args, &agent, &err) < 0) {
		vhca_log_error("cannot start: %s", err.msg);
		return vhca_err_to_exit(err.kind);
	}
	status = vhca_agent_run(agent);
	vhca_agent_free(agent);
	return status;
}

static void tell_writes(struct sysfs_sim *sim)
{
	static size_t told;
	char line[256];

	while (sysfs_sim_log(sim, told, line, sizeof(line))) {
		put_line(getenv("SIM_WRITES"), "ae", line);
		told++;
	}
}

/* ---- guests ---- */

static int group_of(struct sysfs_sim *sim, const char *vf)
{
	char path[128], target[256];

	(void)snprintf(path, sizeof(path), SIM_PCI "/%s/iommu_group", vf);
	if (!sim_readlink(sysfs_sim_tree(sim), path, target, sizeof(target)))
		abort();
	return atoi(strrchr(target, '/') + 1);
}

/* A guest has VF `index` (from 1) now, or no guest any more. */
static void hold_vf(struct sysfs_sim *sim, unsigned int index, bool held)
{
	const struct sim_pf cx3 = connectx3();
	char vf[VHCA_BDF_STRLEN];

	sysfs_sim_hold_group(sim, group_of(sim, sim_vf_bdf(vf, cx3.bdf, index - 1)), held);
	sysfs_sim_slave(sim, &cx3, index, held);
}

static void follow_guests(struct sysfs_sim *sim)
{
	static bool held[HELD_MAX + 1];
	const char *path = getenv("SIM_HELD");
	VHCA_AUTO_FREE char *text = NULL;
	bool now[HELD_MAX + 1] = {false};
	size_t len;

	if (!path || vhca_read_file(path, 4096, &text, &len) < 0)
		return;
	for (const char *at = text; (at = strchr(at, '.')); at++)
		if (at[1] > '0' && at[1] <= '0' + HELD_MAX)
			now[at[1] - '0'] = true;
	for (unsigned int i = 1; i <= count_vfs() && i <= HELD_MAX; i++)
		if (held[i] != now[i]) {
			held[i] = now[i];
			hold_vf(sim, i, now[i]);
		}
}

/*
 * The file system's threads stay here, so that the adapter outlives its agent. One of them may hold
 * a lock, of malloc() for example, that nobody gives back behind a fork: the agent is this program
 * anew.
 */
static pid_t start_child(const char *conf)
{
	pid_t pid = fork();
	char text[16];

	if (pid < 0)
		abort();
	if (pid == 0) {
		(void)execl("/proc/self/exe", "sim_host", conf, NULL);
		_exit(127);
	}
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	put_line(getenv("SIM_PID"), "we", text);
	return pid;
}

static int run_children(struct sysfs_sim *sim, const char *conf)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	pid_t pid;
	int status;

	if (setenv("SIM_ROOT", sysfs_sim_root(sim), 1) < 0 ||
	    setenv("SIM_DEV", sysfs_sim_dev(sim), 1) < 0)
		abort();
	if (getenv("SIM_SYS") && symlink(sysfs_sim_root(sim), getenv("SIM_SYS")) < 0)
		abort();
	follow_guests(sim); /* who has begun before the agent */
	pid = start_child(conf);
	for (;;) {
		(void)nanosleep(&pause, NULL);
		tell_writes(sim);
		follow_guests(sim);
		if (waitpid(pid, &status, WNOHANG) == 0)
			continue;
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		pid = start_child(conf);
	}
}

int main(int argc, char *argv[])
{
	struct sysfs_sim *sim;
	const char *reason;
	int status;

	if (argc != 2)
		return 2;
	if (getenv("SIM_ROOT"))
		return run(getenv("SIM_ROOT"), getenv("SIM_DEV"), argv[1]);
	if (!sysfs_sim_available(&reason)) {
		(void)fprintf(stderr, "%s\n", reason);
		return SKIPPED;
	}
	if (vhca_agent_block_signals() < 0)
		return 1;
	sim = sysfs_sim_start();
	add_adapter(sim);
	write_before(sim);
	status = getenv("SIM_PID") ? run_children(sim, argv[1])
				   : run(sysfs_sim_root(sim), sysfs_sim_dev(sim), argv[1]);
	sysfs_sim_stop(sim);
	return status;
}
