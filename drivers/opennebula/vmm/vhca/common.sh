#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# For the scripts beside it, which have set here=${0%/*}; not run by itself.
# shellcheck shell=bash disable=SC2154

stock=${here%/*}/kvm/${0##*/}

# mark: stdin as it is behind a line that says whether it has the word at all. One program and no file: each program is some
# milliseconds for the VMs that are not ours. -z makes one line of all that XML can be. It writes to spool, beside the script and
# not before it: behind a pipe the rest of the script were a child, and went on where the script itself has been killed.
mark() {
	LC_ALL=C sed -z '1!b; /vhca/!s/^/other\n/; t; s/^/vhca\n/'
}

# spool ARGUMENTS: ends as the stock script where mark's line says so. Else what is behind it is kept, byte for byte, as
# descriptor 3 for whom it is read and 4 for the stock script.
spool() {
	exec < <(mark)
	read -r word || refuse 'there is no VM on stdin'
	[ "$word" = vhca ] || exec "$stock" "$@"
	file=$(mktemp) || exit 1
	exec 3<"$file"
	exec 4<"$file"
	exec 5>"$file"
	rm -f "$file"
	cat >&5 || exit 1
	exec 5>&-
}

# ours: does the VM of that stdin have a NIC of ours? A tenant's text may have the word, too: those are few, and Ruby reads what
# is really there. Ends the script where that cannot be told, and where the agent does not answer.
ours() {
	"$here/nics" any <&3
	case $? in
	0) return 0 ;;
	3) return 1 ;;
	*) exit 1 ;;
	esac
}

# pass ARGUMENTS: ends as the stock script, with the stdin that was kept.
pass() {
	exec "$stock" "$@" <&4 3<&- 4<&-
}

# ctl ARGUMENTS: what vhcactl prints goes to OpenNebula's log of the VM. This host's agent is asked, whatever the environment says.
ctl() {
	VHCACTL_URL='' vhcactl "$@" >&2
}

# undo_by ARGUMENTS: vhcactl's command that gives the VFs back. An agent that is being started again answers soon, and a vhcactl
# that a signal has ended may not have asked.
undo_by() {
	tries=30
	until ctl --timeout 60 "$@"; do
		case $? in
		7 | 129 | 130 | 143) [ $((tries -= 1)) -gt 0 ] || return 1 ;;
		*) return 1 ;;
		esac
		sleep 1
	done
}

# begin ARGUMENTS: vhcactl's command that takes the VFs out. After any status but that of a refusal (vhcactl(1)) the agent may
# have begun all the same, and the guest would be without them up to the lease: undo, of the script, takes that back. OpenNebula
# ends an action that lasts too long by TERM to all its programs, a terminal by INT or HUP: from here on this one stays, and sees
# how the others ended.
begin() {
	late=
	trap 'late=yes' HUP INT TERM
	ctl --timeout 900 "$@"
	case $? in
	0) [ "$late" ] || return 0 ;;
	[2-6] | 8) return 1 ;;
	esac
	undo
	return 1
}

# refuse LINE: what OpenNebula shows as the VM's error.
refuse() {
	printf 'vhca: %s\n' "$1" >&2
	exit 1
}
