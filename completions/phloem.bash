# Bash completion of phloem, from the program's own tables: verbs, their flags, and config keys behind --set.
# shellcheck shell=bash
_phloem() {
    local program=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} known=''
    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = help ]; }; then
        known=$("$program" --help=words 2>/dev/null)
    elif [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = hub ] && [[ $word != -* ]]; then
        known='status bench destroy'
    elif [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = sim ] && [ -n "$word" ] && [[ run == "$word"* ]]; then
        known=run
    elif [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = topology ] && [[ $word != -* ]]; then
        known='probe agent order show'
    elif [ "$before" = --set ]; then
        compopt -o nospace
        known=$("$program" config --keys 2>/dev/null | sed -n 's/^  \([a-z][a-z0-9_.]*\)  (.*/\1=/p')
    elif [[ $word == -* ]]; then
        case $verb in hub | topology) [[ ${COMP_WORDS[2]} == -* ]] || verb="$verb ${COMP_WORDS[2]}" ;; esac
        [ "$verb ${COMP_WORDS[2]}" != 'sim run' ] || verb='sim run'
        # shellcheck disable=SC2086 # "hub status" is two words
        known=$("$program" $verb --help=words 2>/dev/null | cut -d ' ' -f 1)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$known" -- "$word")
}
complete -o default -F _phloem phloem
