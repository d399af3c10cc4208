/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/explain/finding.h"

#include <stdarg.h>
#include <stdio.h>

const char *vhca_finding_status_to_string(enum vhca_finding_status status)
{
	static const char *const words[] = {"ok", "unknown", "warning", "wrong"};

	return words[status];
}

void explain_say(struct vhca_finding *f, enum vhca_finding_status status, const char *fmt, ...)
{
	va_list ap;

	f->status = status;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void explain_fix(struct vhca_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

bool explain_is_mlx4(const struct explain_look *l)
{
	return l->hca->facts.family == VHCA_FAMILY_MLX4;
}

const struct vhca_finding *vhca_explain_verdict(const struct vhca_finding *findings, unsigned int n)
{
	const struct vhca_finding *worst = NULL;

	for (unsigned int i = 0; i < n; i++)
		if (findings[i].status > (worst ? worst->status : VHCA_FINDING_OK))
			worst = &findings[i];
	return worst;
}
