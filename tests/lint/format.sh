#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Does clang-format 14 (Debian 12's; others format differently) agree with every C file? tests/lint/format.sh [ROOT]
# Exit 77: skipped. To format: clang-format -i FILE
set -eu
cd "${1:-$(dirname "$0")/../..}"

if ! version=$(clang-format --version 2>/dev/null); then
	echo "skipped: no clang-format on this machine"
	exit 77
fi
case $version in
*" version 14."*) ;;
*)
	echo "skipped: this is $version, the project's format is version 14's"
	exit 77
	;;
esac
sources() {
	find . -path ./.git -prune -o -path './build*' -prune -o -name '*.mod.c' -prune -o -name '*.[ch]' -print0
}
# One process for all is fast; one a file says which.
sources | xargs -0 clang-format --dry-run -Werror 2>/dev/null && exit 0
# shellcheck disable=SC2016 # the inner shell expands it
sources | sort -z | xargs -0 -n 1 sh -c 'clang-format --dry-run -Werror "$0" 2>/dev/null || echo "$0: not formatted"'
exit 1
