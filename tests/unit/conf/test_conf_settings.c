/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration as text again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "conf/settings.h"
#include "tests/unit/unit.h"

#define TEXT_MAX 65536

/* The settings as a file, and those that are not as usual as "[section] key = value (usual)". */
struct listing {
	char file[TEXT_MAX], unusual[TEXT_MAX];
	struct vhca_strbuf text, other;
	char section[64];
	unsigned int n;
};

static void add_setting(void *ctx, const struct vhca_conf_setting *s)
{
	struct listing *l = ctx;

	if (strcmp(l->section, s->section) != 0)
		vhca_strbuf_add(&l->text, "[%s]\n", s->section);
	(void)snprintf(l->section, sizeof(l->section), "%s", s->section);
	/* Which cannot be said to be nothing. */
	if (s->value[0] || strcmp(s->key, "migration") != 0)
		vhca_strbuf_add(&l->text, "%s = %s\n", s->key, s->value);
	if (!s->usual || strcmp(s->value, s->usual) != 0)
		vhca_strbuf_add(&l->other, "[%s] %s = %s (%s)\n", s->section, s->key, s->value,
				s->usual ? s->usual : "-");
	l->n++;
}

static void list_text(struct listing *l, const char *text)
{
	VHCA_AUTO_FREE struct vhca_conf *conf = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	*l = (struct listing){.n = 0};
	vhca_strbuf_init(&l->text, l->file, sizeof(l->file));
	vhca_strbuf_init(&l->other, l->unusual, sizeof(l->unusual));
	if (vhca_conf_parse("a.conf", text, strlen(text), &conf, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(vhca_conf_each_setting(conf, add_setting, l, &err), 0);
	assert_false(l->text.truncated || l->other.truncated);
}

static const char every_kind[] =
	"[agent]\nlog_level = debug\n"
	"[api]\ngroup = wheel\nroles = *:read\npeer_listen = 127.0.0.1:8514\nlisten = [::1]:8516\n"
	"listen_roles = cert:a:metrics address:::1:read token:operate *:read\ntoken_file = "
	"/t/tokens\n"
	"[tls]\ncertificate = /t/own.pem\nkey = /t/own.key\nca = /t/ca.pem\n"
	"[libvirt]\ndetach_timeout = 2min\ndetach_retry = 1500ms\ndetach_escalation = guest-agent\n"
	"[guid]\nprefix = 0x02c9ab0000000000\nprefix_bits = 32\n"
	"[sm]\nbackend = vhcasm\nurl = https://a:1 https://b:1\ntoken_file = /t/token\n"
	"lid_policy = dynamic\n"
	"[migration]\nbandwidth = 100\nauto_converge = yes\n"
	"[policy]\nport_lease = 0s\n"
	"[partition storage]\npkey = 0x0001\n"
	"[hca default]\nmanage = yes\n"
	"[hca 0000:0A:00.0]\nvfs = 4\nfabric = other\nport = 2\n"
	"exclude = 0000:0a:00.1 0000:0a:00.2\nreserve = 0000:0a:00.3\n"
	"[peer hvb]\nagent = https://HVB.example.org:8514\nlibvirt = "
	"qemu+ssh://root@hvb:22/system?x=a:b@c\n"
	"[peer hvc]\nagent = http://hvc:8514\nlibvirt = qemu+ssh://hvc/system\n"
	"certificate = cert:other\ninsecure = yes\n";

static void each_kind_reads_as_it_was_said(void **state)
{
	static struct listing first, again;

	(void)state;
	list_text(&first, every_kind);
	assert_string_equal(first.unusual,
			    "[agent] log_level = debug (info)\n"
			    "[api] group = wheel ()\n"
			    "[api] roles = *:read ()\n"
			    "[api] peer_listen = 127.0.0.1:8514 ()\n"
			    "[api] listen = [::1]:8516 ()\n"
			    "[api] listen_roles = cert:a:metrics address:::1:read "
			    "token:operate *:read ()\n"
			    "[api] token_file = /t/tokens ()\n"
			    "[tls] certificate = /t/own.pem ()\n"
			    "[tls] key = /t/own.key ()\n"
			    "[tls] ca = /t/ca.pem ()\n"
			    "[libvirt] detach_timeout = 120s (60s)\n"
			    "[libvirt] detach_retry = 1500ms (5s)\n"
			    "[libvirt] detach_escalation = guest-agent (none)\n"
			    "[guid] prefix_bits = 32 (24)\n"
			    "[sm] backend = vhcasm (none)\n"
			    "[sm] url = https://a:1 https://b:1 ()\n"
			    "[sm] token_file = /t/token ()\n"
			    "[sm] lid_policy = dynamic (host)\n"
			    "[migration] bandwidth = 100 (0)\n"
			    "[migration] auto_converge = yes (no)\n"
			    "[policy] port_lease = 0s (3600s)\n"
			    "[partition storage] pkey = 0x0001 (-)\n"
			    "[hca default] manage = yes (no)\n"
			    "[hca 0000:0a:00.0] vfs = 4 (keep)\n"
			    "[hca 0000:0a:00.0] fabric = other (default)\n"
			    "[hca 0000:0a:00.0] port = 2 (1)\n"
			    "[hca 0000:0a:00.0] exclude = 0000:0a:00.1 0000:0a:00.2 ()\n"
			    "[hca 0000:0a:00.0] reserve = 0000:0a:00.3 ()\n"
			    "[peer hvb] agent = https://HVB.example.org:8514 ()\n"
			    "[peer hvb] libvirt = qemu+ssh://root@hvb:22/system?x=a:b@c ()\n"
			    "[peer hvc] agent = http://hvc:8514 ()\n"
			    "[peer hvc] libvirt = qemu+ssh://hvc/system ()\n"
			    "[peer hvc] certificate = cert:other (cert:hvc)\n"
			    "[peer hvc] insecure = yes (no)\n");
	list_text(&again, first.file);
	assert_string_equal(again.file, first.file);
}

/* By the names that the file has: a directory that is asked again may not answer. */
static void users_and_groups_are_names(void **state)
{
	static struct listing l;

	(void)state;
	list_text(&l, "[api]\ngroup = root\nroles = root:admin @root:operate\n");
	assert_non_null(strstr(l.file, "\nroles = root:admin @root:operate\n"));
}

static void every_key_is_listed(void **state)
{
	static struct listing l;
	const char *section, *key;
	unsigned int n = 0;

	(void)state;
	/* one section of each kind, once */
	list_text(&l, "[partition x]\npkey = 0x8001\n[hca default]\nmanage = yes\n"
		      "[peer hvb]\nagent = https://b:1\nlibvirt = qemu:///system\n"
		      "migration = tcp://b\n");
	for (; vhca_conf_nth_key(n, &section, &key); n++) {
		char line[80];

		(void)snprintf(line, sizeof(line), "\n%s = ", key);
		assert_non_null(strstr(l.file, line));
	}
	assert_int_equal(l.n, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_reads_as_it_was_said),
		cmocka_unit_test(users_and_groups_are_names),
		cmocka_unit_test(every_key_is_listed),
	};

	return cmocka_run_group_tests_name("conf_settings", tests, NULL, NULL);
}
