/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

struct pair {
	int fd[2];
};

static int setup(void **state)
{
	static struct pair p;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.fd), 0);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	(void)close(p->fd[0]);
	if (p->fd[1] >= 0)
		(void)close(p->fd[1]);
	return 0;
}

static void exact_transfer(void **state)
{
	struct pair *p = *state;
	char buf[8] = {0};

	assert_int_equal(vhca_write_deadline(p->fd[0], "hello!!", 7, vhca_now_ms() + 20000), 0);
	assert_int_equal(vhca_read_deadline(p->fd[1], buf, 5, vhca_now_ms() + 20000), 0);
	assert_string_equal(buf, "hello");
	assert_int_equal(vhca_read_deadline(p->fd[1], buf, 2, vhca_now_ms() + 20000), 0);
	assert_memory_equal(buf, "!!llo", 5);
}

static void read_times_out_with_part_of_the_data(void **state)
{
	struct pair *p = *state;
	uint64_t start = vhca_now_ms();
	char buf[8];

	assert_int_equal(vhca_write_deadline(p->fd[0], "abc", 3, start + 20000), 0);
	assert_int_equal(vhca_read_deadline(p->fd[1], buf, 4, start + 50), -ETIMEDOUT);
	assert_true(vhca_now_ms() - start >= 50);
	assert_true(vhca_now_ms() - start < 10000);
	assert_int_equal(vhca_read_deadline(p->fd[1], buf, 1, start), -ETIMEDOUT); /* in the past */
}

static void early_end_of_file_is_connreset(void **state)
{
	struct pair *p = *state;
	char buf[8];

	assert_int_equal(vhca_write_deadline(p->fd[1], "abc", 3, vhca_now_ms() + 20000), 0);
	(void)close(vhca_steal_fd(&p->fd[1]));
	assert_int_equal(vhca_read_deadline(p->fd[0], buf, 4, vhca_now_ms() + 20000), -ECONNRESET);
}

static void write_to_a_closed_peer_is_epipe_without_signal(void **state)
{
	struct pair *p = *state;

	(void)close(vhca_steal_fd(&p->fd[1]));
	assert_int_equal(vhca_write_deadline(p->fd[0], "x", 1, vhca_now_ms() + 20000), -EPIPE);
}

static void write_times_out_when_nobody_reads(void **state)
{
	static const char big[4 << 20];
	struct pair *p = *state;
	uint64_t start = vhca_now_ms();

	assert_int_equal(vhca_write_deadline(p->fd[0], big, sizeof(big), start + 50), -ETIMEDOUT);
	assert_true(vhca_now_ms() - start < 10000);
}

static void *drain(void *arg)
{
	static char sink[3 << 20];
	const struct pair *p = arg;

	return vhca_read_deadline(p->fd[1], sink, sizeof(sink), vhca_now_ms() + 20000) == 0 ? NULL
											    : arg;
}

static void large_message_crosses_in_pieces(void **state)
{
	static const char big[3 << 20];
	pthread_t reader;
	void *failed;

	assert_int_equal(pthread_create(&reader, NULL, drain, *state), 0);
	assert_int_equal(vhca_write_deadline(((struct pair *)*state)->fd[0], big, sizeof(big),
					     vhca_now_ms() + 20000),
			 0);
	assert_int_equal(pthread_join(reader, &failed), 0);
	assert_null(failed);
}

static void listen_on(int fd, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	assert_int_equal(vhca_strcpy(addr.sun_path, sizeof(addr.sun_path), path), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 0), 0);
}

static void connect_reports_and_gives_up(void **state)
{
	VHCA_AUTO_CLOSE int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	VHCA_AUTO_CLOSE int first = -1;
	uint64_t start = vhca_now_ms();
	struct tree tree;
	char path[TREE_PATH_MAX], longpath[200];

	(void)state;
	tree_init(&tree);
	(void)tree_path(&tree, "sock", path);
	assert_int_equal(vhca_connect_unix(path, start + 20000), -ENOENT);
	listen_on(listener, path);
	first = vhca_connect_unix(path, start + 20000);
	assert_true(first >= 0);
	/* The backlog of one is full and nobody accepts: only the deadline ends this. */
	assert_int_equal(vhca_connect_unix(path, vhca_now_ms() + 50), -ETIMEDOUT);
	(void)close(vhca_steal_fd(&listener));
	assert_int_equal(vhca_connect_unix(path, start + 20000), -ECONNREFUSED);
	memset(longpath, 'x', sizeof(longpath) - 1);
	longpath[sizeof(longpath) - 1] = '\0';
	assert_int_equal(vhca_connect_unix(longpath, start + 20000), -ENAMETOOLONG);
	tree_done(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exact_transfer, setup, teardown),
		cmocka_unit_test_setup_teardown(read_times_out_with_part_of_the_data, setup,
						teardown),
		cmocka_unit_test_setup_teardown(early_end_of_file_is_connreset, setup, teardown),
		cmocka_unit_test_setup_teardown(write_to_a_closed_peer_is_epipe_without_signal,
						setup, teardown),
		cmocka_unit_test_setup_teardown(write_times_out_when_nobody_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(large_message_crosses_in_pieces, setup, teardown),
		cmocka_unit_test(connect_reports_and_gives_up),
	};

	return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
