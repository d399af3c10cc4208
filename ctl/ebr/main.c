/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ebrctl: what OpenStack's Nova runs, as root, to plug and unplug an InfiniBand port of an
 * instance. It asks vhcad, which decides. Nova ignores the exit status and repeats itself at any
 * time.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/file.h"
#include "common/base/text.h"
#include "ctl/ebr/http.h"

#define BOUND_MS 10000u /* for a whole call */
#define PAUSE_MS 100u

#define PATH_MAX_LEN 128
#define BODY_MAX_LEN 128

static int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int fail(const char *format, ...)
{
	char line[2048];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	vhca_blot_controls(line);
	(void)fprintf(stderr, "ebrctl: %s\n", line);
	return -1;
}

/* ---- what is said ---- */

static int check_port(const char *fabric, const char *mac)
{
	char wish[32];
	uint64_t guid;

	if (snprintf(wish, sizeof(wish), "mac:%s", mac) >= (int)sizeof(wish) ||
	    vhca_guid_wish_parse(wish, &guid) < 0)
		return fail("\"%.40s\" is no unicast MAC address", mac);
	if (!vhca_name_is_valid(fabric))
		return fail("\"%.40s\" is no fabric: want 1 to 31 of A-Z a-z 0-9 _ -", fabric);
	return 0;
}

static int check_place(const char *device_id, const char *vnic_type, const char *pci_slot)
{
	struct vhca_uuid uuid;
	struct vhca_bdf bdf;

	if (vhca_uuid_parse(device_id, &uuid) < 0)
		return fail("\"%.40s\" is no UUID of an instance", device_id);
	if (strcmp(vnic_type, "ib_hostdev") != 0)
		return fail("\"%.40s\" is no type of VIF that is served: ib_hostdev is", vnic_type);
	if (vhca_bdf_parse(pci_slot, &bdf) < 0)
		return fail("\"%.40s\" is no PCI address like 0000:03:00.1", pci_slot);
	return 0;
}

/* ---- what is answered ---- */

/* 0: answer has the agent's word. What it cannot do now it is asked again. */
static int ask(const struct ebr_request *req, struct ebr_answer *answer)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	uint64_t deadline = vhca_now_ms() + BOUND_MS;

	for (;;) {
		int r = ebr_ask(VHCA_EBR_SOCKET, req, deadline, answer);
		bool is_last = vhca_left_ms(deadline) <= PAUSE_MS;

		if (r == -ETIMEDOUT)
			return fail("vhcad has not answered in %u s; what it has begun goes on: "
				    "vhcactl claims",
				    BOUND_MS / 1000);
		/* None just now, or one that ended before it answered: another may be beginning. */
		if (r < 0 && (is_last || (r != -ENOENT && r != -ECONNREFUSED && r != -ECONNRESET &&
					  r != -EPIPE)))
			return fail("vhcad does not answer (%s: %s): systemctl status vhcad",
				    VHCA_EBR_SOCKET, strerror(-r));
		if (r == 0 && (is_last || answer->status != 503))
			return 0;
		(void)nanosleep(&pause, NULL); /* woken early: merely asks earlier */
	}
}

static int refuse(const struct ebr_answer *answer, const char *mac)
{
	char detail[1024], hint[512];

	if (!ebr_read_member(answer, "detail", detail, sizeof(detail)))
		return fail("port %s: vhcad answers %u", mac, answer->status);
	(void)ebr_read_member(answer, "hint", hint, sizeof(hint));
	return fail("port %s: %s%s%s", mac, detail, hint[0] ? "; " : "", hint);
}

/* ---- the commands ---- */

static int add_port(char **arg, struct ebr_answer *answer)
{
	const char *mac = arg[0], *device_id = arg[1], *fabric = arg[2], *pci_slot = arg[4];
	char path[PATH_MAX_LEN], body[BODY_MAX_LEN], device[64];

	if (check_port(fabric, mac) < 0 || check_place(device_id, arg[3], pci_slot) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/v1/fabrics/%s/ports/%s", fabric, mac);
	(void)snprintf(body, sizeof(body), "{\"domain\": \"%s\", \"bdf\": \"%s\"}", device_id,
		       pci_slot);
	if (ask(&(struct ebr_request){"PUT", path, body}, answer) < 0)
		return -1;
	if (answer->status != 200 || !ebr_read_member(answer, "device", device, sizeof(device)))
		return refuse(answer, mac);
	(void)fputs(device, stdout);
	return fflush(stdout) == 0 ? 0 : fail("stdout: %s", strerror(errno));
}

/* A VF that is attached still is its guest's: the claim ends when the device leaves. */
static int del_port(char **arg, struct ebr_answer *answer)
{
	const char *fabric = arg[0], *mac = arg[1];
	char path[PATH_MAX_LEN], code[64];

	if (check_port(fabric, mac) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/v1/fabrics/%s/ports/%s", fabric, mac);
	if (ask(&(struct ebr_request){"DELETE", path, ""}, answer) < 0)
		return -1;
	if (answer->status == 200 || (ebr_read_member(answer, "code", code, sizeof(code)) &&
				      strcmp(code, "no_such_claim") == 0))
		return 0;
	return refuse(answer, mac);
}

int main(int argc, char **argv)
{
	static struct ebr_answer answer;
	int r;

	if (argc == 7 && strcmp(argv[1], "add-port") == 0)
		r = add_port(argv + 2, &answer);
	else if (argc == 4 && strcmp(argv[1], "del-port") == 0)
		r = del_port(argv + 2, &answer);
	else
		r = fail("usage: ebrctl add-port MAC DEVICE_ID FABRIC VNIC_TYPE PCI_SLOT, or "
			 "ebrctl del-port FABRIC MAC; see ebrctl(8)");
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
