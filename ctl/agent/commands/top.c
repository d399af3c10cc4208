/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/server.h"
#include "ctl/cli/view.h"

#define EVENTS_SHOWN 5
#define REFRESH_S    2 /* where nothing happens: ages go on */
#define RETRY_S	     1
#define PAUSE_NS     200000000L /* between two frames, whatever happens */

/* Of ECMA-48 and xterm: another screen, without a cursor, whose lines do not wrap, and back; home,
 * to the ends. */
#define ENTER	    "\033[?1049h\033[?25l\033[?7l"
#define LEAVE	    "\033[?7h\033[?25h\033[?1049l"
#define HOME	    "\033[H"
#define CLEAR_LINE  "\033[K"
#define CLEAR_BELOW "\033[J"

struct top {
	const struct vhca_ctl *ctl;
	char cursor[VHCA_CTL_CURSOR_MAX];
	struct json_object *events; /* borrowed: the newest, oldest first */
	bool is_screen;
	struct winsize size; /* 0: whatever is needed */
};

/* What is waited for is an answer: nothing else would end it at once. */
static void on_signal(int signo)
{
	(void)signal(SIGCONT, SIG_DFL); /* which would enter again */
	if (write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1) < 0)
		_exit(1); /* nobody looks any more */
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
}

static void on_stop(int signo);

static void enter(int signo)
{
	(void)signo;
	if (write(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1) < 0)
		_exit(1);
	(void)signal(SIGTSTP, on_stop);
	(void)signal(SIGCONT, enter); /* after a SIGSTOP, which nobody hears */
}

/* Where no shell of its session could go on with it, nothing stops it, and no SIGCONT comes. */
static void on_stop(int signo)
{
	int errnum = errno;
	sigset_t set;

	on_signal(signo);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signo);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* here it stops */
	enter(signo);
	errno = errnum;
}

static void format_since(struct vhca_strbuf *sb, struct json_object *row)
{
	vhca_view_time(sb, vhca_view_u64(row, "started_ms"));
}

static void format_port(struct vhca_strbuf *sb, struct json_object *row)
{
	vhca_strbuf_add(sb, "%.16s/%.8s", vhca_view_text(row, "bdf"), vhca_view_text(row, "port"));
}

static const struct vhca_column port_columns[] = {
	{"PORT", NULL, format_port},
	{"STATE", "state", NULL},
	{"FABRIC", "fabric", NULL, .may_cut = true},
	{"LID", "lid", NULL},
	{"SM", "sm_lid", NULL},
	{"VFS", "num_vfs", NULL},
};

static const struct vhca_column vf_columns[] = {
	{"VF", "bdf", NULL},
	{"STATE", "state", NULL},
	{"DOMAIN/NAME", NULL, vhca_view_owner, .may_cut = true},
	{"GUID", "guid", NULL, .wide = 1},
	{"GRANTED", "granted", NULL},
	{"REASON", "reason", NULL, .may_cut = true},
};

static const struct vhca_column move_columns[] = {
	{"DOMAIN", "domain_name", NULL, .may_cut = true},
	{"ROLE", "role", NULL},
	{"PEER", "peer", NULL, .may_cut = true},
	{"STATE", "state", NULL},
	{"SINCE", NULL, format_since, .wide = 1},
	{"REASON", "reason", NULL, .may_cut = true},
};

static void format_time(struct vhca_strbuf *sb, struct json_object *row)
{
	vhca_view_time(sb, vhca_view_u64(row, "time_ms"));
}

static const struct vhca_column event_columns[] = {
	{"TIME", NULL, format_time},
	{"ABOUT", "subject", NULL, .may_cut = true},
	{"EVENT", "text", NULL, .may_cut = true},
};

/* A row is a port, with what is shown of its adapter. */
static struct json_object *list_ports(struct json_object *hcas)
{
	static const char *const members[] = {"bdf", "fabric", "num_vfs"};
	struct json_object *rows = json_object_new_array();

	for (size_t i = 0; i < vhca_view_count(hcas); i++) {
		struct json_object *hca = json_object_array_get_idx(hcas, i);
		struct json_object *ports = vhca_view_array(hca, "ports");

		for (size_t p = 0; p < vhca_view_count(ports); p++) {
			struct json_object *row = vhca_ctl_copy_row(ports, p);

			for (size_t m = 0; m < VHCA_ARRAY_SIZE(members); m++)
				(void)json_object_object_add(
					row, members[m],
					json_object_get(vhca_view_member(hca, members[m])));
			(void)json_object_array_add(rows, row);
		}
	}
	return rows;
}

static void print_node(FILE *out, struct json_object *node)
{
	struct json_object *libvirt = vhca_view_member(node, "libvirt"),
			   *sm = vhca_view_member(node, "sm");
	const char *sm_word = vhca_view_is_true(sm, "reachable") ? "reachable" : "AWAY";
	char counts[160];
	struct vhca_strbuf sb;

	if (strcmp(vhca_view_text(sm, "backend"), "none") == 0)
		sm_word = "none";
	(void)fprintf(out, "%.30s: libvirt %s, SM %s%s\n", vhca_view_text(node, "node_name"),
		      vhca_view_is_true(libvirt, "connected") ? "connected" : "AWAY", sm_word,
		      vhca_view_is_true(node, "drained") ? ", DRAINED" : "");
	vhca_strbuf_init(&sb, counts, sizeof(counts));
	vhca_view_counts(&sb, vhca_view_member(node, "counts"));
	(void)fprintf(out, "VFs: %s\n", counts);
}

static void print_table(const struct top *t, FILE *out, const struct vhca_column *columns,
			unsigned int n, struct json_object *rows)
{
	if (vhca_view_count(rows) == 0)
		return;
	(void)fputc('\n', out);
	vhca_table_print(out, columns, n, rows, t->size.ws_col);
}

static int print_frame(const struct top *t, FILE *out, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *node = NULL, *hcas = NULL, *vfs = NULL, *moves = NULL,
					     *ports = NULL, *busy = NULL;
	struct json_object *all;
	int r = vhca_ctl_call(t->ctl, "GET", "/v1/node", NULL, VHCA_CTL_READ_MS, &node, err);

	if (r == 0)
		r = vhca_ctl_get_pages(t->ctl, "/v1/hcas?fields=bdf,fabric,num_vfs,ports", "hcas",
				       &hcas, err);
	if (r == 0)
		r = vhca_ctl_get_pages(t->ctl,
				       "/v1/vfs?fields=bdf,state,domain,name,guid,granted,reason",
				       "vfs", &vfs, err);
	if (r == 0)
		r = vhca_ctl_get_pages(t->ctl,
				       "/v1/migrations?final=false&fields=domain_name,role,peer,"
				       "state,started_ms,reason",
				       "migrations", &moves, err);
	if (r < 0)
		return r;
	ports = list_ports(vhca_view_array(hcas, "hcas"));
	busy = json_object_new_array();
	all = vhca_view_array(vfs, "vfs");
	for (size_t i = 0; i < vhca_view_count(all); i++) {
		struct json_object *vf = json_object_array_get_idx(all, i);

		if (strcmp(vhca_view_text(vf, "state"), "free") != 0)
			(void)json_object_array_add(busy, json_object_get(vf));
	}
	print_node(out, node);
	print_table(t, out, port_columns, VHCA_ARRAY_SIZE(port_columns), ports);
	print_table(t, out, move_columns, VHCA_ARRAY_SIZE(move_columns),
		    vhca_view_array(moves, "migrations"));
	print_table(t, out, event_columns, VHCA_ARRAY_SIZE(event_columns), t->events);
	/* The longest last: there may be no room for all of it. */
	print_table(t, out, vf_columns, VHCA_ARRAY_SIZE(vf_columns), busy);
	return 0;
}

/* Bytes of the line, n long, that the screen has columns for. */
static size_t cut(const struct top *t, const char *line, size_t n)
{
	unsigned int columns = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_begin = ((unsigned char)line[i] & 0xc0) != 0x80; /* of UTF-8 */

		columns += is_begin;
		if (columns > t->size.ws_col)
			return i;
	}
	return n;
}

/* As many lines as the screen has, the last of them counting the others. What was there before
 * goes first: behind a line that ends at the edge the cursor is on its last character still. */
static void show(const struct top *t, const char *text)
{
	unsigned int rows = t->size.ws_row > 1 ? t->size.ws_row - 1u : 1, lines = 0;

	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	(void)fputs(HOME, stdout);
	for (unsigned int i = 0; i < lines && i < rows - (lines > rows); i++) {
		size_t n = strcspn(text, "\n");

		(void)printf(CLEAR_LINE "%.*s\n", (int)cut(t, text, n), text);
		text += n + 1;
	}
	if (lines > rows)
		(void)printf(CLEAR_LINE "… %u more lines\n", lines - rows + 1);
	(void)fputs(CLEAR_BELOW, stdout);
	(void)fflush(stdout);
}

static int refresh(struct top *t, struct vhca_error *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out;
	int r;

	if (!t->is_screen)
		return print_frame(t, stdout, err);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &t->size) < 0 || !t->size.ws_col)
		t->size = (struct winsize){.ws_col = 80, .ws_row = 24};
	out = open_memstream(&text, &len);
	if (!out)
		return vhca_error_no_memory(err, "screen");
	r = print_frame(t, out, err);
	if (fclose(out) != 0 && r == 0)
		r = vhca_error_no_memory(err, "screen");
	if (r == 0)
		show(t, text);
	free(text);
	return r;
}

/* What has happened since; waits for it. */
static int take_events(struct top *t, unsigned int wait_s, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	struct json_object *events;
	size_t n;
	int r;

	r = vhca_ctl_get_events(t->ctl, t->cursor, wait_s, &doc, err);
	if (r < 0)
		return r;
	events = vhca_view_array(doc, "events");
	for (size_t i = 0; i < vhca_view_count(events); i++)
		(void)json_object_array_add(t->events,
					    json_object_get(json_object_array_get_idx(events, i)));
	n = vhca_view_count(t->events);
	if (n > EVENTS_SHOWN)
		(void)json_object_array_del_idx(t->events, 0, n - EVENTS_SHOWN);
	return vhca_ctl_take_cursor(doc, t->cursor, err);
}

/* An agent that is being restarted, perhaps, is waited for. */
static int outlive(struct top *t, int r, const struct vhca_error *err)
{
	if (vhca_error_is(err, VHCA_CODE_CURSOR_GONE))
		return vhca_strcpy(t->cursor, sizeof(t->cursor), "oldest");
	if (err->kind != VHCA_ERR_UNAVAILABLE)
		return r;
	(void)printf(HOME "%.*s; waiting" CLEAR_LINE, t->size.ws_col > 16 ? t->size.ws_col - 16 : 0,
		     err->msg);
	(void)fflush(stdout);
	(void)sleep(RETRY_S);
	return 0;
}

static int watch(struct top *t, struct vhca_error *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	unsigned int limit_s = t->ctl->timeout_ms / 1000,
		     wait_s = limit_s && limit_s <= REFRESH_S ? limit_s - 1 : REFRESH_S;
	const struct timespec pause = {.tv_sec = !wait_s, .tv_nsec = PAUSE_NS};
	int r = 0;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(signals); i++)
		(void)signal(signals[i], on_signal);
	enter(0);
	while (r == 0 && !ferror(stdout)) {
		r = refresh(t, err);
		if (r == 0) {
			(void)nanosleep(&pause, NULL); /* a signal may shorten it */
			r = take_events(t, wait_s, err);
		}
		if (r < 0)
			r = outlive(t, r, err);
	}
	(void)fputs(LEAVE, stdout);
	(void)fflush(stdout); /* before what main() says of an error */
	return r;
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *events = json_object_new_array();
	struct top t = {.ctl = ctl, .cursor = "oldest", .events = events};
	int r;

	if (ctl->opts[VHCA_OPT_JSON])
		return vhca_ctl_refuse(err, "top has no JSON",
				       "vhcactl watch --json, and the lists");
	t.is_screen = !ctl->opts[VHCA_OPT_ONCE] && isatty(STDOUT_FILENO);
	r = take_events(&t, 0, err);
	if (r < 0)
		return r;
	return t.is_screen ? watch(&t, err) : refresh(&t, err);
}

const struct vhca_ctl_command vhca_cmd_top = {
	.name = "top",
	.optional = VHCA_OPT_BIT(VHCA_OPT_ONCE),
	.summary = "show ports, VFs and migrations as they change, until interrupted",
	.help = "\nPorts, migrations under way, the last events and VFs that are not free; anew "
		"with each event, and every\n"
		"2 seconds. What has no room on the screen is counted in its last line, and lines "
		"end at its edge. With\n"
		"--once, or where the output is no terminal, one time and whole.\n",
	.run = run,
};
