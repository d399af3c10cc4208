/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/ini/ini_file.h"
#include "conf/conf.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

static struct vhca_error err;
static struct vhca_conf *conf;

static int setup(void **state)
{
	(void)state;
	err = (struct vhca_error)VHCA_ERROR_INIT;
	conf = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(conf);
	return 0;
}

static int parse(const char *text)
{
	free(conf);
	conf = NULL;
	return vhca_conf_parse("f.conf", text, strlen(text), &conf, &err);
}

static void assert_equals_defaults(const struct vhca_conf *got)
{
	struct vhca_conf want;

	vhca_conf_set_defaults(&want);
	assert_string_equal(want.node_name, "");
	assert_int_equal(gethostname(want.node_name, sizeof(want.node_name) - 1), 0);
	assert_memory_equal(got, &want, sizeof(want));
}

static void empty_file_gives_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_equals_defaults(conf);
}

static char *read_shipped(void)
{
	const char *dir = getenv("VHCA_SOURCE_DIR");
	char path[TREE_PATH_MAX], *text;
	size_t len;

	assert_non_null(dir);
	assert_true(snprintf(path, sizeof(path), "%s/conf/vhcad.conf", dir) < TREE_PATH_MAX);
	assert_int_equal(vhca_read_file(path, VHCA_INI_FILE_MAX, &text, &len), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static void shipped_file_changes_nothing(void **state)
{
	VHCA_AUTO_FREE char *text = read_shipped();

	(void)state;
	assert_int_equal(parse(text), 0);
	assert_equals_defaults(conf);
}

/* "#key = value" and "#[section]" lose their mark; "# prose" stays a comment. */
static void uncomment(char *text)
{
	for (char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (p[0] == '#' && p[1] != ' ' && p[1] != '\n')
			p[0] = ' ';
}

static void shipped_values_are_the_defaults(void **state)
{
	VHCA_AUTO_FREE char *text = read_shipped();
	static const struct vhca_conf_hca hca = {
		.is_default = true, .vfs = VHCA_CONF_VFS_KEEP, .fabric = "default", .port = 1};

	(void)state;
	uncomment(text);
	assert_int_equal(parse(text), 0);
	assert_int_equal(conf->n_hcas, 1); /* the three example sections, then nothing is left */
	assert_memory_equal(&conf->hcas[0], &hca, sizeof(hca));
	assert_int_equal(conf->n_partitions, 1);
	memset(conf->hcas, 0, sizeof(conf->hcas));
	memset(conf->partitions, 0, sizeof(conf->partitions));
	assert_int_equal(conf->n_peers, 1);
	memset(conf->peers, 0, sizeof(conf->peers));
	conf->n_hcas = conf->n_partitions = conf->n_peers = 0;
	assert_equals_defaults(conf);
}

static void shipped_file_documents_every_key(void **state)
{
	VHCA_AUTO_FREE char *text = read_shipped();
	const char *section, *key;
	unsigned int n;

	(void)state;
	for (n = 0; vhca_conf_nth_key(n, &section, &key); n++) {
		char header[64], line[64];
		const char *at;

		(void)snprintf(header, sizeof(header), "[%s", section);
		(void)snprintf(line, sizeof(line), "\n#%s =", key);
		at = strstr(text, header);
		if (!at || !strstr(at, line))
			fail_msg("[%s] %s is not documented", section, key);
	}
	assert_true(n > 20);
}

static void every_kind_of_value_is_read(void **state)
{
	(void)state;
	assert_int_equal(
		parse("[agent]\nnode_name = hv1\nlog_level = debug\nrun_dir = /tmp/run\n"
		      "[api]\ngroup = infra\npeer_listen = 192.168.77.1:8514\ninsecure = yes\n"
		      "[migration]\nlease = 3min\nexternal_lease = 2h\n"
		      "copy_timeout = 10min\ncopy_expected_max = 90s\nbandwidth = 500\nconnections "
		      "= 8\n"
		      "auto_converge = yes\ntls = yes\n"
		      "[libvirt]\ndetach_timeout = 2min\ndetach_retry = 500ms\n"
		      "detach_escalation = guest-agent\n"
		      "[guid]\nprefix = 0x0200000000000000\nprefix_bits = 8\n"
		      "[sm]\nbackend = vhcasm\nurl = http://a:1  https://b/x\n"
		      "insecure = yes\n"
		      "pkeys = static\nrequire = attach\nlid_policy = dynamic\n"
		      "[policy]\nallow_default_partition = no\npkey_index_changed = alarm\n"
		      "port_lease = 30min\n"
		      "[partition storage]\npkey = 0x8001\n"
		      "[hca 0000:3b:00.0]\nmanage = yes\nvfs = 8\nfabric = blue\nport = 2\n"
		      "exclude = 0000:3b:00.5  0000:3b:01.0\n"
		      "reserve = 0000:3b:00.6\n"),
		0);
	assert_string_equal(conf->node_name, "hv1");
	assert_int_equal(conf->log_level, VHCA_LOG_DEBUG);
	assert_string_equal(conf->run_dir, "/tmp/run");
	assert_string_equal(conf->api_group, "infra");
	assert_string_equal(conf->peer_listen, "192.168.77.1:8514");
	assert_int_equal(conf->lease_ms, 180000);
	assert_int_equal(conf->external_lease_ms, 7200000);
	assert_int_equal(conf->port_lease_ms, 1800000);
	assert_int_equal(conf->copy.timeout_ms, 600000);
	assert_int_equal(conf->copy.expected_max_ms, 90000);
	assert_int_equal(conf->copy.bandwidth_mib, 500);
	assert_int_equal(conf->copy.connections, 8);
	assert_true(conf->copy.auto_converge && conf->copy.tls);
	assert_int_equal(conf->detach_timeout_ms, 120000);
	assert_int_equal(conf->detach_retry_ms, 500);
	assert_int_equal(conf->detach_escalation, VHCA_ESCALATION_GUEST_AGENT);
	assert_true(conf->guid_prefix == UINT64_C(0x0200000000000000));
	assert_int_equal(conf->guid_prefix_bits, 8);
	assert_string_equal(conf->sm_backend, "vhcasm");
	assert_int_equal(conf->n_sm_urls, 2);
	assert_string_equal(conf->sm_urls[0], "http://a:1");
	assert_string_equal(conf->sm_urls[1], "https://b/x");
	assert_int_equal(conf->sm_pkeys, VHCA_SM_PKEYS_STATIC);
	assert_int_equal(conf->sm_require, VHCA_SM_REQUIRE_ATTACH);
	assert_int_equal(conf->lid_policy, VHCA_LID_DYNAMIC);
	assert_false(conf->allow_default_partition);
	assert_int_equal(conf->index_policy, VHCA_INDEX_ALARM);
	assert_int_equal(conf->partitions[0].pkey, 0x8001);
	assert_true(conf->hcas[0].manage);
	assert_int_equal(conf->hcas[0].vfs, 8);
	assert_string_equal(conf->hcas[0].fabric, "blue");
	assert_int_equal(conf->hcas[0].port, 2);
	assert_int_equal(conf->hcas[0].n_exclude, 2);
	assert_int_equal(conf->hcas[0].n_reserve, 1);
}

static const struct {
	const char *text, *message;
} refusals[] = {
	{"[hca default]\nexclude = 0000:3b:00.5 3b:00.6\n",
	 "f.conf:2: exclude: \"3b:00.6\" is not a VF's PCI address like 0000:03:00.1"},
	{"[hca default]\nreserve = 1\n",
	 "f.conf:2: reserve: \"1\" is not a VF's PCI address like 0000:03:00.1"},
	{"[hca default]\nexclude = 0000:3b:00.5\nreserve = 0000:3b:00.4 0000:3b:00.5\n",
	 "f.conf: [hca default] reserve: 0000:3b:00.5 stands in exclude, too"},
	{"[agent]\nlog_levl = info\n", "f.conf:2: log_levl: unknown key in [agent]; the "
				       "nearest known one is \"log_level\""},
	{"[agent]\nbackend = none\n",
	 "f.conf:2: backend: unknown key in [agent]; it belongs to [sm]"},
	{"\n[agnt]\n", "f.conf:2: [agnt]: unknown section; the nearest known one is [agent]"},
	{"[libvrt]\n", "f.conf:1: [libvrt]: unknown section; the nearest known one is [libvirt]"},
	{"[]\n", "f.conf:1: []: unknown section; the nearest known one is [sm]"},
	{"[hca]\n", "f.conf:1: [hca]: [hca] needs a name: [hca NAME]"},
	{"[sm x]\n", "f.conf:1: [sm x]: [sm] takes no name"},
	{"poll = 5s\n", "f.conf:1: poll: stands before the first [section]"},
	{"[agent]\nlog_level = loud\n", "f.conf:2: log_level: \"loud\" is not one of error "
					"| warning | notice | info | debug"},
	{"[agent]\nstate_dir = var\n", "f.conf:2: state_dir: \"var\" is not an absolute path"},
	{"[sm]\npoll = 5\n",
	 "f.conf:2: poll: \"5\" is not a time with its unit (500ms, 5s, 2min, 1h)"},
	{"[sm]\npoll = 50ms\n", "f.conf:2: poll: \"50ms\" is not between 100ms and 600000ms"},
	{"[sm]\npoll = 99999999999999h\n",
	 "f.conf:2: poll: \"99999999999999h\" is not between 100ms and 600000ms"},
	{"[sm]\nurl = ftp://x\n", "f.conf:2: url: \"ftp://x\" is not an http:// or https:// URL"},
	{"[sm]\nurl = http://a http://\n",
	 "f.conf:2: url: \"http://\" is not an http:// or https:// URL"},
	{"[sm]\nurl = https://sm1:1/a@b https://me:s3cret@sm2:1\n",
	 "f.conf:2: url: a URL with a user, which whoever looks at vhcad would see; token_file has "
	 "what is sent"},
	{"[libvirt]\nuri = qemu+tcp://me:s3cret@h/system\n",
	 "f.conf:2: uri: a password, which whoever looks at vhcad would see; libvirt has auth.conf "
	 "for it, and an @ behind a port is written %40"},
	{"[sm]\nurl = http://1 http://2 http://3 http://4 http://5 http://6 http://7 "
	 "http://8 http://9\n",
	 "f.conf:2: url: more than 8 URLs, or one of more than 255 characters"},
	{"[libvirt]\nuri = qemu+tcp://me:s3/cr?e#t@h/system\n",
	 "f.conf:2: uri: a password, which whoever looks at vhcad would see; libvirt has auth.conf "
	 "for it, and an @ behind a port is written %40"},
	{"[sm]\nurl = https://me:s3/cr?e#t@sm2:1\n",
	 "f.conf:2: url: a URL with a user, which whoever looks at vhcad would see; token_file has "
	 "what is sent"},
	{"[guid]\nprefix_bits = 7\n", "f.conf:2: prefix_bits: \"7\" is not between 8 and 48"},
	{"[guid]\nprefix_bits = x\n", "f.conf:2: prefix_bits: \"x\" is not a number"},
	{"[guid]\nprefix = 12\n", "f.conf:2: prefix: \"12\" is not a GUID (0x and 16 hex digits)"},
	{"[policy]\nallow_default_partition = maybe\n",
	 "f.conf:2: allow_default_partition: \"maybe\" is not yes or no"},
	{"[partition a]\npkey = 0x8000\n",
	 "f.conf:2: pkey: \"0x8000\" is not a P_Key (0x0001..0x7fff limited, "
	 "0x8001..0xffff full)"},
	{"[partition 0x8001]\n",
	 "f.conf:1: [partition 0x8001]: a partition's name must not be a number"},
	{"[partition a b]\n", "f.conf:1: [partition a b]: a partition's name is up to 31 "
			      "letters, digits, \"_\" and \"-\""},
	{"[partition a]\n", "f.conf: [partition a] pkey: missing"},
	{"[hca 3b:00.0]\n",
	 "f.conf:1: [hca 3b:00.0]: \"3b:00.0\" is neither a PCI address with domain "
	 "(0000:03:00.0) nor \"default\""},
	{"[hca default]\nport = 3\n", "f.conf:2: port: \"3\" is not between 1 and 2"},
	{"[hca default]\nvfs = all\n", "f.conf:2: vfs: \"all\" is not a number"},
	{"[hca default]\nvfs = 65535\n", "f.conf:2: vfs: \"65535\" is not between 0 and 65534"},
	{"[hca default]\nfabric = a/b\n",
	 "f.conf:2: fabric: \"a/b\" is not a name of up to 31 letters, digits, \"_\" and "
	 "\"-\""},
	{"[api]\npeer_listen = hv1:8514\n", "f.conf:2: peer_listen: \"hv1:8514\" is not a numeric "
					    "ADDRESS:PORT or [IPV6-ADDRESS]:PORT"},
	{"[api]\nroles = root\n", "f.conf:2: roles: \"root\" is not WHO:ROLE"},
	{"[api]\nroles = root:boss\n", "f.conf:2: roles: \"boss\" is not one of metrics | read | "
				       "operate | admin | agent | agent+read"},
	{"[api]\nroles = nobody-of-that-name:read\n",
	 "f.conf:2: roles: there is no user \"nobody-of-that-name\""},
	{"[api]\nroles = root:read @nobody-of-that-name:read\n",
	 "f.conf:2: roles: there is no group \"nobody-of-that-name\""},
	{"[api]\nroles = root:read\n",
	 "f.conf: [api] group: missing: without it only root can open the socket, and no role "
	 "counts"},
	{"[migration]\ncopy_timeout = 9s\n",
	 "f.conf: [migration] copy_timeout: 9000ms is less than 10000ms; 0s is no limit"},
	{"[migration]\ncopy_expected_max = 999ms\nbandwidth = 1\n",
	 "f.conf: [migration] copy_expected_max: 999ms is less than 1000ms; 0s is no limit"},
	{"[migration]\ncopy_expected_max = 60s\n",
	 "f.conf: [migration] bandwidth: missing; without it nobody knows how long a copy takes, "
	 "and copy_expected_max limits nothing"},
	{"[migration]\nconnections = 256\n",
	 "f.conf:2: connections: \"256\" is not between 0 and 255"},
	{"[migration]\nbandwidth = 1000001\n",
	 "f.conf:2: bandwidth: \"1000001\" is not between 0 and 1000000"},
	{"[migration]\nlease = 9s\n",
	 "f.conf:2: lease: \"9s\" is not between 10000ms and 3600000ms"},
	{"[peer]\n", "f.conf:1: [peer]: [peer] needs a name: [peer NAME]"},
	{"[peer hv.2]\n",
	 "f.conf:1: [peer hv.2]: a peer's name is up to 31 letters, digits, \"_\" and "
	 "\"-\""},
	{"[peer hv2]\nagnet = http://hv2:1\n",
	 "f.conf:2: agnet: unknown key in [peer]; the nearest "
	 "known one is \"agent\""},
	{"[peer hv2]\nagent = ftp://hv2:8514\n",
	 "f.conf:2: agent: \"ftp://hv2:8514\" is not http://HOST:PORT or https://HOST:PORT"},
	{"[peer hv2]\nlibvirt = hv2\n", "f.conf:2: libvirt: \"hv2\" is not a URI"},
	{"[peer hv2]\nmigration = hv2\n", "f.conf:2: migration: \"hv2\" is not a URI"},
	{"[peer hv2]\ncertificate = hv2\n",
	 "f.conf:2: certificate: \"hv2\" is not cert:NAME or cert-sha256:HEX"},
	{"[peer hv2]\nlibvirt = qemu+ssh://hv2/system\n", "f.conf: [peer hv2] agent: missing"},
	{"[peer hv2]\nagent = http://hv2:8514\n", "f.conf: [peer hv2] libvirt: missing"},
	{"[peer a]\n[peer b]\n[peer a]\n", "f.conf:3: [peer a]: section stands twice in this file"},
	{"[hca 0000:0a:00.0]\n[sm]\n[hca 0000:0A:00.0]\n",
	 "f.conf:3: [hca 0000:0A:00.0]: section stands twice in this file"},
	{"[partition a]\npkey = 1\n[partition a]\n",
	 "f.conf:3: [partition a]: section stands twice in this file"},
	{"[sm]\nbackend = vhcasm\n", "f.conf: [sm] url: needed with backend = vhcasm"},
	{"[sm]\nrequire = attach\n",
	 "f.conf: [sm] require: attach cannot be fulfilled with backend = none"},
	{"[sm]\nlid_policy = follow\n",
	 "f.conf: [sm] lid_policy: follow cannot be fulfilled with backend = none"},
	{"[sm]\nurl = https://a http://b\ntoken_file = /t\n",
	 "f.conf: [sm] token_file: http://b is no https:// URL"},
	{"[sm]\ntoken_file = t\n", "f.conf:2: token_file: \"t\" is not an absolute path"},
	{"[tls]\nkey = /k\n", "f.conf: [tls] certificate: missing"},
	{"[tls]\ncertificate = /c\n", "f.conf: [tls] key: missing"},
	{"[api]\npeer_listen = 10.0.0.1:1\n[tls]\ncertificate = /c\nkey = /k\n",
	 "f.conf: [tls] ca: missing: it says which agents may ask at [api] peer_listen"},
	{"[api]\nlisten = 10.0.0.1:1\n[tls]\ncertificate = /c\nkey = /k\n",
	 "f.conf: [tls] ca: missing: it, or [api] token_file, says who may ask at [api] listen"},
	{"[api]\nlisten = 127.0.0.1:1\nlisten_roles = *:read\npeer_listen = 127.0.0.1:1\n",
	 "f.conf: [api] listen: 127.0.0.1:1 and peer_listen = 127.0.0.1:1 are one address: each "
	 "needs a port of its own"},
	{"[api]\nlisten = [0::1]:1\nlisten_roles = *:read\npeer_listen = [::1]:01\n",
	 "f.conf: [api] listen: [0::1]:1 and peer_listen = [::1]:01 are one address: each needs a "
	 "port of its own"},
	{"[api]\nlisten = 127.0.0.1:1\ntoken_file = /t\n",
	 "f.conf: [tls] certificate: missing: tokens of [api] token_file go by https only"},
	{"[api]\nlisten = 127.0.0.1:1\n",
	 "f.conf: [api] listen_roles: missing: without it nobody has a role at [api] listen"},
	{"[api]\nlisten_roles = *:read\n",
	 "f.conf: [api] listen: missing: only there listen_roles counts"},
	{"[api]\ntoken_file = /t\n", "f.conf: [api] listen: missing: only there token_file counts"},
	{"[api]\nlisten_roles = root:read\n",
	 "f.conf:2: listen_roles: \"root\" is no name on the network: *, cert:NAME, "
	 "cert-sha256:HEX, token or address:ADDRESS"},
	{"[tls]\ncrl = /c\n",
	 "f.conf: [tls] ca: missing: crl says which of its certificates are revoked"},
	{"[libvirt]\ndetach_timeout = 2s\n",
	 "f.conf: [libvirt] detach_retry: longer than detach_timeout"},
	{"[guid]\nprefix = 0x0300000000000000\n",
	 "f.conf: [guid] prefix: 0x0300000000000000 is no unicast GUID"},
	{"[guid]\nprefix = 0x0200000100000000\n",
	 "f.conf: [guid] prefix: 0x0200000100000000 has bits below the first prefix_bits "
	 "= 24"},
};

static void errors_name_place_and_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(refusals); i++) {
		assert_true(parse(refusals[i].text) < 0);
		assert_null(conf);
		assert_string_equal(err.msg, refusals[i].message);
		assert_int_equal(err.kind, VHCA_ERR_INVALID);
	}
}

static void durations_know_four_units(void **state)
{
	static const struct {
		const char *text;
		uint32_t ms;
	} rows[] = {{"100ms", 100},
		    {"7s", 7000},
		    {"10min", 600000},
		    {"600s", 600000},
		    {"0600s", 600000}};
	static const char *const bad[] = {"",	 "s",	 "5 s",	  "5m",	 "5S",
					  "-5s", "5.5s", "5s ms", "0x5s"};
	char text[64];

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		(void)snprintf(text, sizeof(text), "[sm]\npoll = %s\n", rows[i].text);
		assert_int_equal(parse(text), 0);
		assert_int_equal(conf->poll_ms, rows[i].ms);
	}
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++) {
		(void)snprintf(text, sizeof(text), "[sm]\npoll = %s\n", bad[i]);
		assert_true(parse(text) < 0);
	}
}

/* A file of the three pieces is accepted, or not. */
static void assert_accepts(const char *before, const char *text, const char *after, bool good)
{
	char file[512];

	(void)snprintf(file, sizeof(file), "%s%s%s", before, text, after);
	if ((parse(file) == 0) != good)
		fail_msg("\"%s\" was %s", text, good ? "refused" : "accepted");
}

static void addresses_to_listen_on_are_numeric(void **state)
{
	static const char *const good[] = {"", "0.0.0.0:1", "10.0.0.1:65535", "[::]:8514",
					   "[fd00::1]:8514"};
	static const char *const bad[] = {"10.0.0.1",	    "10.0.0.1:",       "10.0.0.1:0",
					  "10.0.0.1:65536", ":8514",	       "10.0.1:8514",
					  "fd00::1:8514",   "[fd00::1]",       "[fd00::1",
					  "[fd00::1]8514",  "[10.0.0.1]:8514", "10.0.0.1:85 14",
					  "10.0.0.1:+1",    "localhost:8514",  "*:8514"};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(good); i++)
		assert_accepts("[api]\ninsecure = yes\npeer_listen = ", good[i], "\n", true);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_accepts("[api]\ninsecure = yes\npeer_listen = ", bad[i], "\n", false);
}

static void two_doors_need_two_addresses(void **state)
{
	static const char before[] = "[api]\nlisten_roles = *:read\ninsecure = yes\n"
				     "peer_listen = 127.0.0.1:1\nlisten = ";
	static const char *const good[] = {"127.0.0.1:2", "127.0.0.2:1", "[::1]:1", "[::]:1"};
	static const char *const bad[] = {"127.0.0.1:1", "127.0.0.1:01", "0.0.0.0:1"};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(good); i++)
		assert_accepts(before, good[i], "\n", true);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_accepts(before, bad[i], "\n", false);
}

static void agents_of_peers_are_urls_without_a_path(void **state)
{
	static const char before[] = "[peer p]\nlibvirt = qemu:///system\n"
				     "insecure = yes\nagent = ";
	static const char *const good[] = {
		"http://hv2:8514",	 "http://192.168.77.2:1", "http://hv-2.example.org:65535",
		"http://[fd00::2]:8514", "https://hv2:8514",	  "https://[fd00::2]:8514"};
	static const char *const bad[] = {"",
					  "hv2:8514",
					  "http://hv2",
					  "http://hv2:8514/",
					  "https://hv2:8514/",
					  "https://hv2",
					  "http:https://hv2:1",
					  "http://hv2:0",
					  "http://:8514",
					  "http://[hv2]:8514",
					  "http://me@hv2:8514",
					  "http://hv2:8514 http://hv3:8514",
					  "http://[fd00::2:8514"};
	char longest[300] = "http://";

	(void)state;
	memset(longest + 7, 'h', 254); /* a name of the DNS has 253 characters at most */
	memcpy(longest + 7 + 254, ":1", 3);
	assert_accepts(before, longest, "\n", false);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(good); i++)
		assert_accepts(before, good[i], "\n", true);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_accepts(before, bad[i], "\n", false);
}

static void peers_are_found_by_name(void **state)
{
	const struct vhca_conf_peer *peer;

	(void)state;
	assert_int_equal(parse("[peer hva]\nagent = https://a:1\nlibvirt = qemu+tcp://a/system\n"
			       "[peer hvb]\nagent = https://b:2\nlibvirt = qemu+tcp://b/system\n"
			       "migration = tcp://192.168.77.2\n"),
			 0);
	assert_int_equal(conf->n_peers, 2);
	assert_string_equal(vhca_conf_peer(conf, "hva")->migration, "");
	peer = vhca_conf_peer(conf, "hvb");
	assert_string_equal(peer->name, "hvb");
	assert_string_equal(peer->agent, "https://b:2");
	assert_string_equal(peer->libvirt, "qemu+tcp://b/system");
	assert_string_equal(peer->migration, "tcp://192.168.77.2");
	assert_null(vhca_conf_peer(conf, "hv"));
	assert_null(vhca_conf_peer(conf, ""));
}

static void plain_http_stays_on_this_host(void **state)
{
	static const char peer[] = "[peer b]\nlibvirt = qemu://b/\nagent = ";
	static const char sm[] = "[sm]\nbackend = vhcasm\nurl = ";
	static const char tls[] = "\n[tls]\ncertificate = /c\nkey = /k\nca = /a\n";
	static const struct {
		const char *before, *where, *way_out;
	} rows[] = {
		{"[api]\npeer_listen = ", "10.0.0.1:1", tls},
		{"[api]\npeer_listen = ", "[::]:1", "\ninsecure = yes\n"},
		{"[api]\nlisten_roles = cert:a:read\nlisten = ", "10.0.0.1:1", tls},
		{"[api]\nlisten_roles = *:read\nlisten = ", "0.0.0.0:1", "\ninsecure = yes\n"},
		{sm, "http://sm1:1", "\ninsecure = yes\n"},
		{sm, "https://sm1:1 http://sm2:1", "\ninsecure = yes\n"},
		{peer, "http://b:1", "\ninsecure = yes\n"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		assert_accepts(rows[i].before, rows[i].where, "\n", false);
		assert_string_equal(err.code, "insecure");
		assert_non_null(strstr(err.hint, "insecure = yes in ["));
		assert_accepts(rows[i].before, rows[i].where, rows[i].way_out, true);
	}
	assert_accepts("[api]\npeer_listen = ", "127.0.0.1:1", "\n", true);
	assert_accepts("[api]\nlisten_roles = *:metrics\nlisten = ", "[::1]:1", "\n", true);
	assert_accepts(sm, "http://[::1]:1/x https://sm1:1", "\n", true);
	assert_accepts(peer, "http://localhost:1", "\n", true);
	assert_accepts("[sm]\nurl = ", "http://sm1:1", "\n", true); /* nobody is told */
}

static void what_is_in_clear_is_named(void **state)
{
	(void)state;
	assert_true(parse("[sm]\nbackend = vhcasm\nurl = http://sm1:8515\n") < 0);
	assert_string_equal(err.msg,
			    "f.conf: [sm] url: http://sm1:8515 is plain HTTP beyond this host: "
			    "whoever is there may report and ask for VFs");
	assert_true(parse("[peer hv2]\nlibvirt = qemu://a/\nagent = http://hv2:1\n") < 0);
	assert_non_null(strstr(err.msg, "[peer hv2] agent: http://hv2:1 is plain HTTP"));
}

/* As the log says it of a caller: a certificate of another form would let nobody in. */
static void a_peer_has_the_certificate_of_its_host(void **state)
{
	static const struct {
		const char *lines, *certificate;
	} rows[] = {
		{"agent = https://HV2.Example.org:1\n", "cert:hv2.example.org"},
		{"agent = https://192.168.77.2:1\n", "cert:192.168.77.2"},
		{"agent = https://[FD00:0::0002]:1\n", "cert:fd00::2"},
		{"agent = https://a:1\ncertificate = cert:hv2\n", "cert:hv2"},
		{"agent = https://a:1\ncertificate = cert-sha256:00ff\n", "cert-sha256:00ff"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "[peer hv2]\nlibvirt = qemu://a/\n%s",
			       rows[i].lines);
		assert_int_equal(parse(text), 0);
		assert_string_equal(vhca_conf_peer(conf, "hv2")->certificate, rows[i].certificate);
	}
}

/* One that is cut would be another's. */
static void a_host_without_room_has_no_certificate(void **state)
{
	char text[400], host[200];

	(void)state;
	memset(host, 'a', sizeof(host));
	host[sizeof(host) - 1] = '\0';
	(void)snprintf(text, sizeof(text),
		       "[peer hv2]\nlibvirt = qemu://a/\nagent = https://%s:1\n", host);
	assert_int_equal(parse(text), 0);
	assert_string_equal(vhca_conf_peer(conf, "hv2")->certificate, "");
}

static void too_many_peers_are_an_error(void **state)
{
	static char text[96 * (VHCA_CONF_PEERS_MAX + 1)];
	struct vhca_strbuf sb;

	(void)state;
	vhca_strbuf_init(&sb, text, sizeof(text));
	for (int i = 0; i < VHCA_CONF_PEERS_MAX; i++)
		vhca_strbuf_add(&sb, "[peer p%d]\nagent = https://p%d:1\nlibvirt = qemu://p%d/\n",
				i, i, i);
	assert_int_equal(parse(text), 0);
	assert_string_equal(vhca_conf_peer(conf, "p255")->agent, "https://p255:1");
	vhca_strbuf_add(&sb, "[peer one-more]\n");
	assert_true(parse(text) < 0);
	assert_non_null(strstr(err.msg, "more than 256 peers"));
}

static void limits_on_entries_are_errors(void **state)
{
	static char text[64 * (VHCA_CONF_PARTITIONS_MAX + 1)];
	struct vhca_strbuf sb;

	(void)state;
	vhca_strbuf_init(&sb, text, sizeof(text));
	for (int i = 0; i < VHCA_CONF_PARTITIONS_MAX; i++)
		vhca_strbuf_add(&sb, "[partition p%d]\npkey = 1\n", i);
	assert_int_equal(parse(text), 0);
	assert_int_equal(conf->n_partitions, VHCA_CONF_PARTITIONS_MAX);
	vhca_strbuf_add(&sb, "[partition one-more]\n");
	assert_true(parse(text) < 0);
	assert_non_null(strstr(err.msg, "more than 128 partitions"));
	vhca_strbuf_init(&sb, text, sizeof(text));
	for (unsigned int i = 0; i <= VHCA_CONF_HCAS_MAX; i++)
		vhca_strbuf_add(&sb, "[hca 0000:%02x:00.0]\n", i);
	assert_true(parse(text) < 0);
	assert_non_null(strstr(err.msg, "f.conf:33: [hca 0000:20:00.0]: more than 32 [hca]"));
}

static void drop_ins_win_in_order_and_merge(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_put(&tree, "v.conf",
		 "[sm]\npoll = 1s\ntimeout = 1s\nurl = http://a\n"
		 "[hca default]\nmanage = yes\nvfs = 4\n"
		 "[peer b]\nagent = https://b:1\n");
	tree_put(&tree, "v.conf.d/20-b.conf", "[sm]\npoll = 3s\n");
	tree_put(&tree, "v.conf.d/10-a.conf",
		 "[sm]\npoll = 2s\nurl = http://b http://c\n"
		 "[hca default]\nvfs = 8\n[peer b]\nlibvirt = qemu://b/system\n");
	tree_put(&tree, "v.conf.d/30-c.conf.bak", "nonsense");
	tree_put(&tree, "v.conf.d/.hidden.conf", "nonsense");
	assert_int_equal(vhca_conf_load(TREE_PATH(&tree, "v.conf"), &conf, &err), 0);
	assert_int_equal(conf->poll_ms, 3000);
	assert_int_equal(conf->sm_timeout_ms, 1000);
	assert_int_equal(conf->n_sm_urls, 2); /* replaced, not added to */
	assert_string_equal(conf->sm_urls[0], "http://b");
	assert_int_equal(conf->n_hcas, 1);
	assert_true(conf->hcas[0].manage);
	assert_int_equal(conf->hcas[0].vfs, 8);
	assert_int_equal(conf->n_peers, 1);
	assert_string_equal(conf->peers[0].agent, "https://b:1");
	assert_string_equal(conf->peers[0].libvirt, "qemu://b/system");
	tree_done(&tree);
}

static void bad_drop_in_and_missing_file_are_errors(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	assert_int_equal(vhca_conf_load(TREE_PATH(&tree, "v.conf"), &conf, &err), -ENOENT);
	assert_int_equal(err.kind, VHCA_ERR_NOT_FOUND);
	tree_put(&tree, "v.conf", "");
	tree_put(&tree, "v.conf.d/x.conf", "[sm]\npol = 1s\n");
	assert_true(vhca_conf_load(TREE_PATH(&tree, "v.conf"), &conf, &err) < 0);
	assert_non_null(strstr(err.msg, "v.conf.d/x.conf:2: pol: unknown key in [sm]; the nearest "
					"known one is \"poll\""));
	tree_remove(&tree, "v.conf.d");
	tree_put(&tree, "v.conf.d", "a file");
	assert_true(vhca_conf_load(TREE_PATH(&tree, "v.conf"), &conf, &err) < 0);
	assert_non_null(strstr(err.msg, "Not a directory"));
	tree_done(&tree);
}

static void vfs_are_left_out_by_the_section_that_rules_the_pf(void **state)
{
	const struct vhca_bdf pf = {.bus = 3}, other = {.bus = 4}, vf = {.bus = 3, .fn = 5};

	(void)state;
	assert_int_equal(parse("[hca default]\nexclude = 0000:03:00.4\n"
			       "[hca 0000:03:00.0]\nexclude = 0000:03:00.6 0000:03:00.5\n"),
			 0);
	assert_true(vhca_conf_excludes(conf, pf, vf));
	assert_false(vhca_conf_excludes(conf, pf, (struct vhca_bdf){.bus = 3, .fn = 4}));
	assert_false(vhca_conf_excludes(conf, other, vf));
	assert_false(vhca_conf_reserves(conf, pf, vf));
	assert_int_equal(parse("[hca 0000:03:00.0]\nexclude = \n"), 0);
	assert_false(vhca_conf_excludes(conf, pf, vf));
}

static void vfs_are_reserved_by_the_section_that_rules_the_pf(void **state)
{
	const struct vhca_bdf pf = {.bus = 3}, other = {.bus = 4}, vf = {.bus = 3, .fn = 5};

	(void)state;
	assert_int_equal(parse("[hca default]\nreserve = 0000:03:00.4\n"
			       "[hca 0000:03:00.0]\nreserve = 0000:03:00.6 0000:03:00.5\n"),
			 0);
	assert_true(vhca_conf_reserves(conf, pf, vf));
	assert_false(vhca_conf_excludes(conf, pf, vf));
	assert_false(vhca_conf_reserves(conf, pf, (struct vhca_bdf){.bus = 3, .fn = 4}));
	assert_false(vhca_conf_reserves(conf, other, vf));
}

static void too_many_vfs_left_out_are_an_error(void **state)
{
	char text[1024];
	struct vhca_strbuf sb;

	(void)state;
	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "[hca default]\nexclude =");
	for (unsigned int i = 0; i <= VHCA_CONF_EXCLUDE_MAX; i++)
		vhca_strbuf_add(&sb, " 0000:01:%02x.%u", i / 8, i % 8);
	vhca_strbuf_add(&sb, "\n");
	assert_true(parse(text) < 0);
	assert_non_null(strstr(err.msg, "f.conf:2: exclude: more than 64 addresses"));
}

static void pf_is_ruled_by_its_own_section_first(void **state)
{
	const struct vhca_bdf pf = {.bus = 3}, other = {.bus = 4};

	(void)state;
	assert_int_equal(parse("[hca 0000:03:00.0]\nmanage = no\n"), 0);
	assert_null(vhca_conf_hca(conf, other));
	assert_int_equal(parse("[hca default]\nmanage = yes\n[hca 0000:03:00.0]\n"), 0);
	assert_false(vhca_conf_hca(conf, pf)->manage); /* an empty section means: leave it alone */
	assert_true(vhca_conf_hca(conf, other)->manage);
}

static void what_parts_are_made_with_does_not_change(void **state)
{
	static const struct {
		const char *text, *fixed;
	} table[] = {
		{"[sm]\nurl = http://a:1\n[partition x]\npkey = 0x8001\n", NULL},
		{"[sm]\nurl = http://a:1\npkeys = static\n[migration]\nlease = 1min\n", NULL},
		{"[sm]\nurl = http://b:1\n", "[sm] url"},
		{"[sm]\nurl = http://a:1 http://b:1\n", "[sm] url"},
		{"[sm]\nurl = http://a:1\npoll = 1s\n", "[sm] poll"},
		{"[sm]\nurl = http://a:1\n[tls]\nca = /ca\n", "[tls] ca"},
		{"[sm]\nurl = http://a:1\n[agent]\nnode_name = hv1\n", "[agent] node_name"},
	};
	struct vhca_conf *before;

	(void)state;
	assert_int_equal(parse("[sm]\nurl = http://a:1\n"), 0);
	before = vhca_steal_ptr(&conf);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		const char *found;

		assert_int_equal(parse(table[i].text), 0);
		found = vhca_conf_fixed_difference(before, conf);
		if (table[i].fixed)
			assert_string_equal(found, table[i].fixed);
		else
			assert_null(found);
	}
	free(before);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(empty_file_gives_defaults),
		T(shipped_file_changes_nothing),
		T(shipped_values_are_the_defaults),
		T(shipped_file_documents_every_key),
		T(every_kind_of_value_is_read),
		T(errors_name_place_and_reason),
		T(durations_know_four_units),
		T(addresses_to_listen_on_are_numeric),
		T(two_doors_need_two_addresses),
		T(agents_of_peers_are_urls_without_a_path),
		T(plain_http_stays_on_this_host),
		T(what_is_in_clear_is_named),
		T(peers_are_found_by_name),
		T(a_peer_has_the_certificate_of_its_host),
		T(a_host_without_room_has_no_certificate),
		T(too_many_peers_are_an_error),
		T(limits_on_entries_are_errors),
		T(drop_ins_win_in_order_and_merge),
		T(bad_drop_in_and_missing_file_are_errors),
		T(pf_is_ruled_by_its_own_section_first),
		T(vfs_are_left_out_by_the_section_that_rules_the_pf),
		T(vfs_are_reserved_by_the_section_that_rules_the_pf),
		T(too_many_vfs_left_out_are_an_error),
		T(what_parts_are_made_with_does_not_change),
	};

	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
