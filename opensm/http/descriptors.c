/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/descriptors.h"

#include <sys/resource.h>

#include "common/base/log.h"

unsigned int vhca_osm_descriptors_for(unsigned int connections)
{
	const rlim_t need = (rlim_t)connections + VHCA_OSM_DESCRIPTORS_OTHER;
	struct rlimit limit, wanted;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return connections;
	wanted = limit;
	wanted.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
	if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		limit = wanted;
	if (limit.rlim_cur >= need)
		return connections;
	vhca_log_warning(
		"the limit of %llu open files leaves room for fewer than %u agents at a time; "
		"see LimitNOFILE in systemd.exec(5)",
		(unsigned long long)limit.rlim_cur, connections);
	return limit.rlim_cur > VHCA_OSM_DESCRIPTORS_OTHER
		       ? (unsigned int)(limit.rlim_cur - VHCA_OSM_DESCRIPTORS_OTHER)
		       : 1;
}
