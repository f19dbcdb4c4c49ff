#!/bin/sh
# Each header compiles alone: the public ones as strict C17 and as C++17, the internal ones as C17.
#
# usage: check_headers.sh [ROOT [CC [CXX]]]
# The compilers name file and line of what is wrong; ends with 1 when anything is.
set -eu
cd "${1:-.}"
cc=${2:-cc} cxx=${3:-c++}
warnings='-Wall -Wextra -Wconversion -Wshadow -Werror'
failed=0

# alone HEADER COMPILER FLAGS...: compiles a file that includes only HEADER, twice, so that its guard is tried too.
alone() {
    header=$1
    shift
    if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" | "$@" -fsyntax-only -I include -I src -; then
        echo "headers: $header does not compile alone with: $*" >&2
        failed=1
    fi
}

# shellcheck disable=SC2086 # lists of flags
for path in include/phloem/*.h; do
    [ -e "$path" ] || continue
    alone "${path#include/}" "$cc" -x c -std=c17 -Wpedantic -Wstrict-prototypes $warnings
    alone "${path#include/}" "$cxx" -x c++ -std=c++17 -Wpedantic $warnings
done
# shellcheck disable=SC2086
for path in $(find src -name '*.h' 2>/dev/null | sort); do
    alone "${path#src/}" "$cc" -x c -std=c17 -D_GNU_SOURCE -Wstrict-prototypes $warnings
done
[ "$failed" -eq 0 ] && echo 'headers: fine'
exit "$failed"
