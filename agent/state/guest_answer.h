/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_GUEST_ANSWER_H
#define VHCA_AGENT_STATE_GUEST_ANSWER_H
/* What a guest's agent has said of the VF that it was asked for. */
#include <stdbool.h>
#include <stdint.h>

/* Exit codes of the program that was started in the guest; 0 is success. */
enum vhca_qga_exit {
	VHCA_QGA_NO_SLOT = 11,
	VHCA_QGA_SLOT_SHARED = 12,
	VHCA_QGA_NO_POWER_OFF = 13,
	VHCA_QGA_NOT_EJECTED = 14,
};

struct vhca_qga_answer {
	uint64_t pid; /* of the program in the guest */
	bool exited;
	int exit_code; /* when exited; -1: killed by a signal */
};

/* What an exit code means, as the end of a sentence ("the guest agent says: ..."). */
const char *vhca_qga_outcome(int exit_code);

#endif
