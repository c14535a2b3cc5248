# SPDX-License-Identifier: GPL-2.0-only
# bash's completion of hyptrace, which itself knows the words.

_hyptrace()
{
	local line=${COMP_LINE:0:COMP_POINT} word break kept=""
	local -a words

	IFS=$' \t\n' read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=("")
	word=${words[-1]}
	mapfile -t COMPREPLY < <("${words[0]}" --complete "${words[@]:1}" 2>/dev/null)
	# bash keeps what stands before the last of these, and wants the rest
	for break in : = @; do
		[[ $COMP_WORDBREAKS != *"$break"* || $word != *"$break"* ]] || kept=${word%"$break"*}$break
		COMPREPLY=("${COMPREPLY[@]#"$kept"}")
		word=${word#"$kept"} kept=
	done
}
complete -o default -F _hyptrace hyptrace
