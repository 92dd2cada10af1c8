# Completion of pausebed for bash 4 and later; `pausebed completions bash` prints it.
_pausebed() {
    # Bash divides words at ":" and "=". Ports and keys contain both, so their parts are joined.
    local words=() number part joins=0 before=""
    for ((number = 0; number <= COMP_CWORD; number++)); do
        part="${COMP_WORDS[number]}"
        if ((number == COMP_CWORD)) && [[ ! $part =~ ^[:=]+$ ]]; then
            part="$2"
        fi
        if ((number > 0)) && { ((joins)) || [[ $part =~ ^[:=]+$ ]]; }; then
            before="${words[-1]}"
            words[-1]+="$part"
        else
            before=""
            words+=("$part")
        fi
        if [[ $part =~ ^[:=]+$ ]]; then joins=1; else joins=0; fi
    done
    ((joins)) && before="${words[-1]}"
    local IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) VARIABLE=bash \
        pausebed -- "${words[@]}" 2>/dev/null))
    # The reply replaces the last part alone.
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    if [[ ${COMPREPLY[0]-} =~ [=/:]$ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _pausebed pausebed
