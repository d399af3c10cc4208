# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for vhcactl: words, and names of domains, VFs and states where they stand.

_vhcactl_domains()
{
	vhcactl domains 2>/dev/null | awk 'NR > 1 { print $1 }' | sort -u
}

_vhcactl_names()
{
	vhcactl domains 2>/dev/null | awk -v d="$1" 'NR > 1 && $1 == d { print $2 }'
}

_vhcactl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word command='' args=() words='' i
	local commands='node hcas vfs domains claims explain adopt takeover attach detach migrate park unpark drain undrain migrations outbox watch help'
	local common='--json --socket --timeout --help --version'

	case $prev in
	--socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--state)
		words='unmanaged preparing free claimed programmed attached detaching scrubbing quarantined'
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
		;;
	--timeout | --partition | --guid | --fabric | --since | --lease)
		return
		;;
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--socket | --timeout | --state | --partition | --guid | --fabric | --since | --lease) ((i++)) ;;
		-*) ;;
		*) if [[ $command ]]; then args+=("$word"); else command=$word; fi ;;
		esac
	done
	case $command in
	'') words="$commands $common" ;;
	help) words=$commands ;;
	vfs) words="--state $common" ;;
	watch) words="--since $common" ;;
	park) words="$(_vhcactl_domains) --no-wait --lease $common" ;;
	drain) words="--no-wait $common" ;;
	unpark) words="$(_vhcactl_domains) --no-wait $common" ;;
	explain | adopt) words="$(_vhcactl_domains) $common" ;;
	takeover)
		words=$common
		((${#args[@]} == 0)) && words+=" $(_vhcactl_domains)"
		;;
	attach | detach)
		case ${#args[@]} in
		0) words=$(_vhcactl_domains) ;;
		1) words=$(_vhcactl_names "${args[0]}") ;;
		esac
		words+=" $common"
		[[ $command == attach ]] && words+=' --partition --guid --fabric'
		;;
	migrate)
		words="--cancel --no-wait --external --lease $common"
		((${#args[@]} == 0)) && words+=" $(_vhcactl_domains)"
		;;
	*) words=$common ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _vhcactl vhcactl
