/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When the host is scanned. The scan itself is a stand-in, and no timer waits. */
#include "agent/host.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"

#define ARMED_MAX 16

static struct {
	struct vhca_loop *loop;
	struct vhca_host *host;
	struct vhca_timer *timer;  /* of the next scan */
	uint64_t armed[ARMED_MAX]; /* the delays that it got */
	unsigned int n_armed, n_used;
	int scan_rc, submit_rc; /* of every scan; of every attempt to begin one */
} t;

int __wrap_vhca_inventory_scan(struct vhca_sysfs *sys, struct vhca_inventory **ret,
			       struct vhca_error *err);
int __wrap_vhca_inventory_scan(struct vhca_sysfs *sys, struct vhca_inventory **ret,
			       struct vhca_error *err)
{
	(void)sys;
	if (t.scan_rc < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "pci_unreadable", -t.scan_rc, "scan");
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
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
	return NULL; /* no PF, no question */
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
	return r;
}

void __real_vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms);
void __wrap_vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms);
void __wrap_vhca_timer_arm_ms(struct vhca_timer *timer, uint64_t delay_ms)
{
	if (timer != t.timer)
		return; /* the scan that no event asks for */
	assert_true(t.n_armed < ARMED_MAX);
	t.armed[t.n_armed++] = delay_ms;
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
	return 0;
}

static void begin(void)
{
	const struct vhca_host_args args = {.loop = t.loop, .poll_ms = 5000};
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(failing_scan_backs_off),
		TEST(event_is_looked_at_all_the_same),
		TEST(success_ends_the_patience),
		TEST(scan_that_cannot_begin_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
