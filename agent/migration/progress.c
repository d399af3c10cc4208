/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/migration/progress.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/migration/list.h"
#include "common/base/file.h"

void mig_again(struct vhca_mig *m, uint64_t ms)
{
	/* This timer tells them, and whatever else is heard meanwhile does not put that off. */
	vhca_timer_arm_ms(m->timer, mig_owes_answer(m) ? 0 : ms);
}

void mig_cancel(struct vhca_mig *m)
{
	if (m->cancel == VHCA_MIG_CANCEL_NONE)
		m->cancel = VHCA_MIG_CANCEL_WANTED;
	mig_again(m, 0);
}

void mig_reason(struct vhca_mig *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(m->reason, sizeof(m->reason), fmt, ap);
	va_end(ap);
}

void mig_fail(struct vhca_mig *m, const struct vhca_error *err)
{
	if (!m->failure.kind)
		m->failure = *err;
	mig_reason(m, "%s", m->failure.msg);
}

void mig_fail_with(struct vhca_mig *m, enum vhca_err kind, const char *code, const char *text)
{
	struct vhca_error err;

	vhca_error_set(&err, kind, code, 0, "%s", text);
	mig_fail(m, &err);
}

void mig_retry(struct vhca_mig *m, const struct vhca_error *err)
{
	uint32_t ms = vhca_backoff_next(&m->backoff);

	mig_reason(m, "%s", err->msg);
	m->not_before_ms = vhca_now_ms() + ms;
	mig_again(m, ms);
}
