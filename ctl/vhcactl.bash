# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for vhcactl: words, and names of domains and VFs where they stand. Names come from domain XML: compgen -W, which
# expands its words as the shell does, never sees them.

# A line for each domain, or for each VF of the domain $1. Names may have any blanks: the heads of the table say where its columns are.
_vhcactl_names()
{
	local head before_name before_bdf line domain name

	vhcactl domains 2>/dev/null | {
		IFS= read -r head
		before_name=${head%%NAME *} before_bdf=${head%%BDF *}
		while IFS= read -r line; do
			domain=${line:0:${#before_name}}
			name=${line:${#before_name}:${#before_bdf}-${#before_name}}
			domain=${domain%"${domain##*[! ]}"} name=${name%"${name##*[! ]}"}
			if [[ ! ${1-} ]]; then
				printf '%s\n' "$domain"
			elif [[ $domain == "$1" && $name != - ]]; then
				printf '%s\n' "$name"
			fi
		done
	} | sort -u
}

# Adds the lines of its input that begin with the word $1, as they are typed: quoted, unless $1 begins with a quote.
_vhcactl_add()
{
	local name typed cur=$1

	while IFS= read -r name; do
		printf -v typed %q "$name"
		[[ $cur == [\"\']* ]] && typed=$name
		[[ $typed == "${cur#[\"\']}"* ]] && COMPREPLY+=("$typed")
	done
}

_vhcactl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word command='' args=() words='' i
	local commands='status node hcas vfs domains claims lease partitions explain adopt takeover plan attach detach migrate park unpark drain undrain migrations outbox watch top metrics config reload support-bundle forget help'
	local common='--json --socket --url --ca --cert --key --token-file --timeout --wide --fields --help --version' of_vfs='--domain --pf --fabric --numa --partition --limit'
	local valued=' --socket --url --ca --cert --key --token-file --output --timeout --fields -o --state --partition --guid --fabric --pf --numa --since --lease --copy-timeout --expected-max --bandwidth --connections --domain --peer --final --limit --xml '

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		-*) [[ $valued == *" $word "* ]] && ((i++)) ;;
		*) if [[ $command ]]; then args+=("${word//[\"\'\\]/}"); else command=$word; fi ;;
		esac
	done
	case $command:$prev in
	*:--socket | *:--ca | *:--cert | *:--key | *:--token-file | *:--output | *:--xml)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	migrations:--state)
		words='claiming detaching handing_over ready parked copying finishing aborting arbitrating restoring reserving reserved programming incoming attaching ending done failed ended'
		;;
	*:--state) words='unmanaged preparing free claimed programmed attached detaching scrubbing quarantined' ;;
	*:--final) words='true false' ;;
	*:--domain)
		_vhcactl_add "$cur" < <(_vhcactl_names)
		return
		;;
	*:--*) [[ $valued == *" $prev "* ]] && return ;;
	esac
	if [[ $words ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
	fi
	case $command in
	'') words="$commands $common" ;;
	help) words=$commands ;;
	vfs) words="--state $of_vfs $common" ;;
	claims) words="$of_vfs $common" ;;
	domains | partitions) words="--limit $common" ;;
	migrations) words="--state --domain --peer --final --limit $common" ;;
	watch) words="--since $common" ;;
	top) words="--once $common" ;;
	metrics | support-bundle) words="--output $common" ;;
	park) words="--no-wait --lease $common" ;;
	drain) words="--no-wait --park $common" ;;
	unpark) words="--no-wait $common" ;;
	explain) words="--check $common" ;;
	attach) words="--partition --guid --fabric --pf --numa $common" ;;
	plan) words="--partition --guid --fabric --pf --numa --xml $common" ;;
	migrate) words="--cancel --no-wait --external --lease --copy-timeout --expected-max --bandwidth --connections --auto-converge --tls $common" ;;
	*) words=$common ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	case $command:${#args[@]} in
	lease:0)
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(vhcactl claims 2>/dev/null | cut -d' ' -f1 | grep -x '[0-9a-f-]\{36\}')" -- "$cur")
		;;
	explain:0 | adopt:0 | takeover:0 | plan:0 | attach:0 | detach:0 | migrate:0 | park:0 | unpark:0)
		_vhcactl_add "$cur" < <(_vhcactl_names)
		;;
	plan:1 | attach:1 | detach:1)
		_vhcactl_add "$cur" < <(_vhcactl_names "${args[0]}")
		;;
	esac
}

complete -F _vhcactl vhcactl
