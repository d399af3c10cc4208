# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for vhcasmctl: commands, options, files, and the words that an option takes.
_vhcasmctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word command='' words='' i
	local commands='status fabric bindings members lids plan move pause resume rebalance gc forget unpin owner help'
	local common='--json --socket --timeout --wide --fields --help --version --url --ca --cert --key --token-file --config'

	case $prev in
	--socket | --ca | --cert | --key | --token-file | --config)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--mode)
		mapfile -t COMPREPLY < <(compgen -W 'auto deterministic skyline' -- "$cur")
		return
		;;
	--timeout | --url | --port | --fields | -o)
		return
		;;
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--socket | --ca | --cert | --key | --token-file | --config | --mode | --timeout | --url | --port | --fields | -o) ((i++)) ;;
		-*) ;;
		*) [[ $command ]] || command=$word ;;
		esac
	done
	case $command in
	'') words="$commands $common" ;;
	help) words=$commands ;;
	bindings | members) words="--port $common" ;;
	plan | move) words="--mode $common" ;;
	*) words=$common ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _vhcasmctl vhcasmctl
