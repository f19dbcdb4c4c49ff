#!/bin/sh
# The list of MPI's functions that preloaded libraries stand before is that of the MPI's header: none is missing, none is of
# another MPI, and those with a communicator are wrapped. The test of the library that reorders ranks calls each.
#
#     mpi_calls.sh openmpi|mpich INCLUDE FOLDER...    by pkg-config's folders
set -eu
sources=$(cd "$(dirname "$0")/../.." && pwd)
mpi=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "mpi_calls.$mpi: skipped: $1"
    exit 77
}

complain() {
    echo "mpi_calls.$mpi: $1" >&2
    sed 's/^/  /' "$2" >&2
    exit 1
}

command -v cc >/dev/null || skip 'there is no cc, whose preprocessor reads the header'
case $mpi in mpich) is_mpich=1 ;; *) is_mpich=0 ;; esac
for folder; do includes="${includes-} -I$folder"; done

# Functions of the header, one a line: NAME, and "communicator" when a parameter is one.
echo '#include <mpi.h>' >"$work/header.c"
[ "$mpi" = mpich ] || echo '#include <mpi-ext.h>' >>"$work/header.c"
# shellcheck disable=SC2086 # a list of words
cc -E -P $includes "$work/header.c" >"$work/header" || skip "the header of $mpi cannot be read"
tr '\n' ' ' <"$work/header" | tr ';' '\n' | sed 's/__attribute__ *(([^()]*\(([^()]*)[^()]*\)*))//g' |
    awk '!/typedef/ && match($0, /(^|[ *])MPIX?_[A-Za-z0-9_]+ *\(/) {
        name = substr($0, RSTART, RLENGTH)
        gsub(/[ *(]/, "", name)
        rest = substr($0, RSTART + RLENGTH)
        print name (rest ~ /MPI_Comm[ ,)]/ ? " communicator" : "")
    }' | sort -u >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 400 ] || complain 'the header has few functions' "$work/functions"

# The list, as the compiler reads it for this MPI.
cat >"$work/list.c" <<'END'
#define CALL(name, ...) @MPI_##name communicator@
#define EXTENSION(name, ...) @MPIX_##name communicator@
#define HAND(name) @MPI_##name communicator@
#define NAME(name) @MPI_##name@
#if PH_MPICH
#define LARGE(name, ...) @MPI_##name communicator@ @MPI_##name##_c communicator@
#endif
#include "preload/mpi_calls.def"
END
cc -E -P -DPH_MPICH=$is_mpich -I"$sources/src" "$work/list.c" | tr '@' '\n' | grep '^MPI' | sed 's/ *$//' | sort >"$work/list"
uniq -d "$work/list" >"$work/twice"
[ ! -s "$work/twice" ] || complain 'the list has these twice:' "$work/twice"

# These give communicators, and take none.
known='MPI_Comm_f2c|MPI_Comm_get_parent|MPI_Comm_join|MPI_Comm_create_from_group|MPI_Intercomm_create_from_groups'
sed -E "s/^($known) communicator/\\1/" "$work/functions" | grep -vE '^MPIX_[A-Za-z_]*$' >"$work/wanted"
diff "$work/wanted" "$work/list" >"$work/difference" ||
    complain 'the list differs from the header (<: the header has it):' "$work/difference"

# MPICH's extensions are for devices that it no longer has: they abort.
unused='MPIX_Comm_(agree|failure_ack|failure_get_acked|revoke|shrink)'
sed -n 's/ communicator//p' "$work/list" | grep -vE "^($unused|MPI_Comm_c2f)\$" | sed 's/^MPIX*_//' |
    while read -r function; do
        grep -qE "(MPI_|\\b)${function%_c}\\b" "$sources"/tests/mpi/reordered*.c || echo "$function"
    done >"$work/uncalled"
[ ! -s "$work/uncalled" ] || complain 'tests/mpi/reordered*.c do not call:' "$work/uncalled"
echo "mpi_calls.$mpi: $(wc -l <"$work/list") functions, $(grep -c communicator "$work/list") with a communicator"
