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

# alone HEADER LANGUAGE COMPILER FLAGS...: compiles a file that includes only HEADER, twice, to try its guard too.
alone() {
    header=$1 language=$2
    shift 2
    if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" | "$@" -fsyntax-only -I include -I src -; then
        echo "headers: $header does not compile alone as $language" >&2
        failed=1
    fi
}

# shellcheck disable=SC2086 # lists of flags
for path in include/phloem/*.h; do
    [ -e "$path" ] || continue
    alone "${path#include/}" C17 "$cc" -x c -std=c17 -Wpedantic -Wstrict-prototypes $warnings
    alone "${path#include/}" C++17 "$cxx" -x c++ -std=c++17 -Wpedantic $warnings
done
# The headers of kernel/simd are what a file for one ISA consists of; they mean nothing without its flags, nor do those of
# preload without an MPI.
# shellcheck disable=SC2086
for path in $(find src -name '*.h' ! -path 'src/kernel/simd/*' ! -path 'src/preload/*' 2>/dev/null | sort); do
    alone "${path#src/}" C17 "$cc" -x c -std=c17 -D_GNU_SOURCE -Wstrict-prototypes $warnings
done
[ "$failed" -eq 0 ] && echo 'headers: fine'
exit "$failed"
