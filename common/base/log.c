/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

#define MSG_MAX 1024

/* Process-wide by nature: there is one stderr. All three may change while other threads log. */
static atomic_int max_level = VHCA_LOG_INFO;
static _Atomic(void (*)(enum vhca_log_level, const char *)) log_sink;
static atomic_int to_journal = -1; /* unknown until the first message */

static const struct {
	const char *word;
	int priority; /* syslog(3) */
} levels[] = {
	[VHCA_LOG_ERROR] = {"error", 3},   [VHCA_LOG_WARNING] = {"warning", 4},
	[VHCA_LOG_NOTICE] = {"notice", 5}, [VHCA_LOG_INFO] = {"info", 6},
	[VHCA_LOG_DEBUG] = {"debug", 7},
};

void vhca_log_set_level(enum vhca_log_level level)
{
	atomic_store(&max_level, (int)level);
}

void vhca_log_set_sink(void (*fn)(enum vhca_log_level level, const char *msg))
{
	atomic_store(&log_sink, fn);
}

/* JOURNAL_STREAM names the journal's end as "device:inode"; it is inherited, so stderr is compared
 * with it. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char mine[64] = ""; /* no stream is called so */
	struct stat st;

	if (atomic_load(&to_journal) >= 0)
		return atomic_load(&to_journal);
	if (stream && fstat(STDERR_FILENO, &st) == 0)
		(void)snprintf(mine, sizeof(mine), "%llu:%llu", (unsigned long long)st.st_dev,
			       (unsigned long long)st.st_ino);
	atomic_store(&to_journal, stream && strcmp(stream, mine) == 0);
	return atomic_load(&to_journal);
}

/* A line that an outsider's text (domain name, XML) can reach must stay one line and harmless on a
 * terminal. */
static size_t escape(char *dst, size_t size, const char *src)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = 0, controls = 0;

	for (; *src && len + 4 < size; src++) {
		unsigned char c = (unsigned char)*src;

		if (!controls)
			controls = vhca_control_len(src);
		if (!controls) {
			dst[len++] = *src;
			continue;
		}
		controls--;
		dst[len++] = '\\';
		dst[len++] = 'x';
		dst[len++] = hex[c >> 4];
		dst[len++] = hex[c & 0xf];
	}
	dst[len] = '\0';
	return len;
}

static int format_head(char *buf, size_t size, enum vhca_log_level level)
{
	struct timespec now;
	struct tm tm;
	char day[32];

	if (stderr_is_journal())
		return snprintf(buf, size, "<%d>", levels[level].priority);
	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	if (!gmtime_r(&now.tv_sec, &tm) || !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm))
		day[0] = '\0';
	return snprintf(buf, size, "%s.%03ldZ %s: ", day, now.tv_nsec / 1000000,
			levels[level].word);
}

static void write_line(enum vhca_log_level level, const char *msg)
{
	char line[MSG_MAX * 4 + 64];
	int head;
	size_t len;

	head = format_head(line, 64, level);
	len = (size_t)head + escape(line + head, sizeof(line) - (size_t)head - 1, msg);
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nowhere left to report it */
}

/* ---- the journal's own protocol: a datagram of lines, FIELD=value ---- */

#define FIELD_MAX 1024

static void add_field(struct vhca_strbuf *sb, const char *name, const char *value)
{
	char escaped[FIELD_MAX * 4];

	(void)escape(escaped, sizeof(escaped), value);
	if (strlen(value) <= FIELD_MAX)
		vhca_strbuf_add(sb, "%s=%s\n", name, escaped);
}

/* Never waits: of a journal that is behind, whoever reads the lines may be told. */
static bool send_entry(enum vhca_log_level level, const char *id,
		       const struct vhca_log_field *fields, const char *msg)
{
	static const struct sockaddr_un journal = {.sun_family = AF_UNIX,
						   .sun_path = "/run/systemd/journal/socket"};
	VHCA_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char buf[MSG_MAX * 16];
	struct vhca_strbuf entry;

	vhca_strbuf_init(&entry, buf, sizeof(buf));
	vhca_strbuf_add(&entry, "PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nMESSAGE_ID=%s\n",
			levels[level].priority, program_invocation_short_name, id);
	add_field(&entry, "MESSAGE", msg);
	for (; fields->name; fields++)
		add_field(&entry, fields->name, fields->value);
	return fd >= 0 && sendto(fd, entry.buf, entry.len, MSG_DONTWAIT | MSG_NOSIGNAL,
				 (const struct sockaddr *)&journal, sizeof(journal)) >= 0;
}

/* ---- messages ---- */

/* Whether the line itself is still to be written. */
static bool give_sink(enum vhca_log_level level, const char *msg)
{
	void (*sink)(enum vhca_log_level, const char *) = atomic_load(&log_sink);
	char escaped[MSG_MAX * 4];

	if (!sink)
		return true;
	(void)escape(escaped, sizeof(escaped), msg);
	sink(level, escaped);
	return false;
}

void vhca_log(enum vhca_log_level level, const char *fmt, ...)
{
	char msg[MSG_MAX];
	int saved_errno = errno;
	va_list ap;

	if ((int)level > atomic_load(&max_level))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap); /* a longer message is cut */
	va_end(ap);
	if (give_sink(level, msg))
		write_line(level, msg);
	errno = saved_errno;
}

void vhca_log_event(enum vhca_log_level level, const char *id, const struct vhca_log_field *fields,
		    const char *fmt, ...)
{
	char msg[MSG_MAX];
	int saved_errno = errno;
	va_list ap;
	bool sent;

	if ((int)level > atomic_load(&max_level))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	sent = stderr_is_journal() && send_entry(level, id, fields, msg);
	if (give_sink(level, msg) && !sent)
		write_line(level, msg);
	errno = saved_errno;
}
