/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When the host is scanned. The scan itself is a stand-in, and no timer waits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/host.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "tests/unit/unit.h"

#define ARMED_MAX 16
#define PAUSES	  2 /* after ports that could not be watched, after VFs that could not be made */

static struct {
	struct vhca_loop *loop;
	struct vhca_host *host;
	struct vhca_timer *timer;  /* of the next scan */
	uint64_t armed[ARMED_MAX]; /* the delays that it got */
	unsigned int n_armed, n_used;
	int scan_rc, submit_rc; /* of every scan; of every attempt to begin one */
	struct vhca_timer *pauses[PAUSES];
	uint64_t paused[PAUSES][ARMED_MAX]; /* the delays that they got */
	unsigned int n_paused[PAUSES];
	bool has_pf;
	struct vhca_model model; /* with that PF */
	vhca_port_fn port_fn;
	void *port_arg;
	unsigned int n_opened, n_made;
	bool opens; /* the RDMA device does */
} t;

static const char *const pause_names[PAUSES] = {"watch ports", "make VFs"};

int __wrap_vhca_inventory_scan(struct vhca_sysfs *sys, struct vhca_inventory **ret,
			       struct vhca_error *err);
int __wrap_vhca_inventory_scan(struct vhca_sysfs *sys, struct vhca_inventory **ret,
			       struct vhca_error *err)
{
	(void)sys;
	if (t.scan_rc < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "pci_unreadable", -t.scan_rc, "scan");
	*ret = calloc(1, sizeof(**ret));
	if (*ret && t.has_pf) {
		(*ret)->pfs = calloc(1, sizeof(*(*ret)->pfs));
		(*ret)->n_pfs = 1;
		(*ret)->pfs[0].ibdev[0] = 'x';
	}
	return *ret ? 0 : -ENOMEM;
}

static void on_gone(void *arg)
{
	(void)arg;
	t.port_fn(t.port_arg, t.opens ? VHCA_PORT_CHANGED : VHCA_PORT_GONE,
		  &(struct vhca_port_state){.port = 1});
}

int __wrap_vhca_ports_open(struct vhca_loop *loop, struct vhca_strand *strand,
			   struct vhca_sysfs *sys, struct vhca_bdf pf, uint32_t poll_ms,
			   vhca_port_fn fn, void *arg, struct vhca_ports **ret,
			   struct vhca_error *err);
int __wrap_vhca_ports_open(struct vhca_loop *loop, struct vhca_strand *strand,
			   struct vhca_sysfs *sys, struct vhca_bdf pf, uint32_t poll_ms,
			   vhca_port_fn fn, void *arg, struct vhca_ports **ret,
			   struct vhca_error *err)
{
	(void)strand;
	(void)sys;
	(void)pf;
	(void)poll_ms;
	(void)err;
	assert_true(t.n_opened++ < ARMED_MAX);
	t.port_fn = fn;
	t.port_arg = arg;
	*ret = (struct vhca_ports *)&t;
	return vhca_loop_post(loop, on_gone, NULL, NULL);
}

struct vhca_ports *__wrap_vhca_ports_close(struct vhca_ports *ports);
struct vhca_ports *__wrap_vhca_ports_close(struct vhca_ports *ports)
{
	(void)ports;
	return NULL;
}

void __wrap_vhca_engine_port(struct vhca_engine *e, struct vhca_bdf pf, enum vhca_port_event event,
			     const struct vhca_port_state *state);
void __wrap_vhca_engine_port(struct vhca_engine *e, struct vhca_bdf pf, enum vhca_port_event event,
			     const struct vhca_port_state *state)
{
	(void)e;
	(void)pf;
	(void)event;
	(void)state;
}

int __wrap_vhca_enable_vfs(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t count,
			   struct vhca_pf_facts *ret_pf, struct vhca_error *err);
int __wrap_vhca_enable_vfs(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t count,
			   struct vhca_pf_facts *ret_pf, struct vhca_error *err)
{
	(void)sys;
	(void)pf;
	(void)count;
	(void)ret_pf;
	t.n_made++;
	return vhca_error_set(err, VHCA_ERR_DEVICE, "firmware_timeout", ETIMEDOUT, "make VFs");
}

void __wrap_vhca_engine_hca_problem(struct vhca_engine *e, struct vhca_bdf pf,
				    const struct vhca_error *err);
void __wrap_vhca_engine_hca_problem(struct vhca_engine *e, struct vhca_bdf pf,
				    const struct vhca_error *err)
{
	(void)e;
	(void)pf;
	(void)err;
}

void __wrap_vhca_engine_inventory(struct vhca_engine *e, const struct vhca_inventory *inv);
void __wrap_vhca_engine_inventory(struct vhca_engine *e, const struct vhca_inventory *inv)
{
	(void)e;
	(void)inv;
	t.n_used++;
}

struct vhca_model *__wrap_vhca_engine_model(struct vhca_engine *e);
struct vhca_model *__wrap_vhca_engine_model(struct vhca_engine *e)
{
	(void)e;
	return t.has_pf ? &t.model : NULL; /* no PF, no question */
}

int __real_vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg);
int __wrap_vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg);
int __wrap_vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg)
{
	return t.submit_rc < 0 ? t.submit_rc : __real_vhca_strand_submit(strand, work, done, arg);
}

int __real_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret);
int __wrap_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret);
int __wrap_vhca_timer_new(struct vhca_loop *loop, const char *name, void (*fn)(void *arg),
			  void *arg, struct vhca_timer **ret)
{
	int r = __real_vhca_timer_new(loop, name, fn, arg, ret);

	if (!strcmp(name, "scan"))
		t.timer = *ret;
	for (unsigned int i = 0; i < PAUSES; i++)
		if (!strcmp(name, pause_names[i]))
			t.pauses[i] = *ret;
	return r;
}

void __real_vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms);
void __wrap_vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms);
void __wrap_vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms)
{
	for (unsigned int i = 0; i < PAUSES; i++) {
		if (timer != t.pauses[i])
			continue;
		assert_true(t.n_paused[i] < ARMED_MAX);
		t.paused[i][t.n_paused[i]++] = delay_ms;
		if (t.n_paused[i] < ARMED_MAX)
			__real_vhca_timer_arm_ms(timer, 0);
		return;
	}
	if (timer != t.timer)
		return; /* the scan that no event asks for */
	assert_true(t.has_pf || t.n_armed < ARMED_MAX);
	t.armed[t.n_armed++ % ARMED_MAX] = delay_ms;
	__real_vhca_timer_arm_ms(timer, 0);
}

static int setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	vhca_log_set_level(VHCA_LOG_ERROR);
	return vhca_loop_new(&t.loop);
}

static int teardown(void **state)
{
	(void)state;
	t.host = vhca_host_free(t.host);
	t.loop = vhca_loop_free(t.loop);
	if (t.has_pf)
		vhca_model_done(&t.model);
	return 0;
}

static void begin(void)
{
	const struct vhca_host_args args = {
		.loop = t.loop, .poll_ms = 5000, .watch = t.has_pf && !t.opens};
	struct vhca_error err;

	assert_int_equal(vhca_host_new(&args, &t.host, &err), 0);
}

static void until(const unsigned int *counter, unsigned int n)
{
	while (*counter < n)
		assert_true(vhca_loop_once(t.loop, 60000) > 0);
}

static void assert_armed(unsigned int i, uint64_t ms)
{
	if (t.armed[i] != ms)
		fail_msg("scan %u came after %llu ms, not %llu", i, (unsigned long long)t.armed[i],
			 (unsigned long long)ms);
}

static void failing_scan_backs_off(void **state)
{
	static const uint64_t want[] = {50, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000};

	(void)state;
	t.scan_rc = -EIO;
	begin();
	until(&t.n_armed, VHCA_ARRAY_SIZE(want));
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(want); i++)
		assert_armed(i, want[i]);
	t.scan_rc = 0;
	until(&t.n_used, 1);
}

/* What an event tells of may be what mends it. */
static void event_is_looked_at_all_the_same(void **state)
{
	(void)state;
	t.scan_rc = -EIO;
	begin();
	until(&t.n_armed, 3);
	vhca_host_rescan(t.host);
	assert_armed(3, 50);
	t.scan_rc = 0;
	until(&t.n_used, 1);
}

static void success_ends_the_patience(void **state)
{
	unsigned int n;

	(void)state;
	t.scan_rc = -EIO;
	begin();
	until(&t.n_armed, 4);
	t.scan_rc = 0;
	until(&t.n_used, 1);
	t.scan_rc = -EIO;
	n = t.n_armed;
	vhca_host_rescan(t.host);
	until(&t.n_armed, n + 2);
	assert_armed(n + 1, 500);
}

/* No thread for it, say: nothing else would ask for the next one. */
static void scan_that_cannot_begin_is_tried_again(void **state)
{
	(void)state;
	t.submit_rc = -EAGAIN;
	begin();
	until(&t.n_armed, 3);
	assert_armed(1, 500);
	assert_armed(2, 1000);
	t.submit_rc = 0;
	until(&t.n_used, 1);
}

static struct vhca_hca *add_pf(void)
{
	t.has_pf = true;
	vhca_model_init(&t.model);
	return vhca_model_add_hca(&t.model, (struct vhca_bdf){.bus = 0});
}

static void assert_paused(unsigned int pause, const uint64_t *want, unsigned int n)
{
	until(&t.n_paused[pause], n);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(t.paused[pause][i], want[i]);
}

/* So many scans a second were too many. */
static void device_that_does_not_open_is_tried_less_and_less(void **state)
{
	static const uint64_t want[] = {50,   100,  200,   400,	  800,	1600,
					3200, 6400, 12800, 25600, 30000};

	(void)state;
	(void)add_pf();
	begin();
	assert_paused(0, want, VHCA_ARRAY_SIZE(want));
	assert_int_equal(t.n_opened, VHCA_ARRAY_SIZE(want));
}

static void vfs_that_are_not_made_are_tried_again(void **state)
{
	static const uint64_t want[] = {500, 1000, 2000, 4000, 8000, 16000};
	struct vhca_hca *hca = add_pf();

	(void)state;
	hca->managed = true;
	hca->facts.ib_ports = VHCA_IB_PORTS_SOME;
	hca->want_vfs = 4;
	t.opens = true;
	begin();
	assert_paused(1, want, VHCA_ARRAY_SIZE(want));
	assert_int_equal(t.n_made, VHCA_ARRAY_SIZE(want));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(failing_scan_backs_off),
		TEST(event_is_looked_at_all_the_same),
		TEST(success_ends_the_patience),
		TEST(scan_that_cannot_begin_is_tried_again),
		TEST(device_that_does_not_open_is_tried_less_and_less),
		TEST(vfs_that_are_not_made_are_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
