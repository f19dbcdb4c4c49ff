#!/bin/sh
# Installs into a fresh prefix and builds every program of examples/ outside the tree against it: with the CMake
# package and with pkg-config (that of hub/ is built by test_install_hub.sh). Environment: PH_SOURCE_DIR, PH_BINARY_DIR, PH_CMAKE, PH_CC.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
    echo "test_install: $1" >&2
    exit 1
}

"$PH_CMAKE" --install "$PH_BINARY_DIR" --prefix "$prefix" >"$work/install.log" || fail 'cmake --install failed'
library=$(find "$prefix" -name 'libphloem.so')
[ -n "$library" ] || fail 'no libphloem.so was installed'
library_folder=$(dirname "$library")

# The name that programs record is libphloem.so.<major>, and a library of that name is there.
major=$(sed -n 's/^#define PH_VERSION_MAJOR //p' "$PH_SOURCE_DIR/include/phloem/version.h")
soname=$(LC_ALL=C readelf -d "$library" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
[ "$soname" = "libphloem.so.$major" ] || fail "the soname is '$soname'; wanted libphloem.so.$major"
[ -e "$library_folder/$soname" ] || fail "$soname was not installed beside libphloem.so"

# Nothing internal is visible from outside.
hidden=$(LC_ALL=C readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $8 ~ /^ph__/ { print $8; exit }')
[ -z "$hidden" ] || fail "an internal symbol is exported: $hidden"

# The installed program, if this build has one, says the version.
if [ -x "$prefix/bin/phloem" ]; then
    "$prefix/bin/phloem" --version >/dev/null || fail 'the installed phloem --version failed'
    for page in phloem phloem-train phloem-hub-status; do
        [ -s "$prefix/share/man/man1/$page.1" ] || fail "the manual page $page.1 is not installed"
    done
    [ -s "$prefix/share/bash-completion/completions/phloem" ] || fail 'the completion of bash is not installed'
fi

# The plugins for MPI that this build has lie below the library, and are found from there, also when all of it has moved: no
# variable names them, and a plugin that is not there is missed in that folder.
cat >"$work/rank.c" <<'END'
#include <phloem/comm.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct ph_comm *comm;
    if (argc != 2 || ph_comm_create(&(struct ph_comm_options){.size = sizeof(struct ph_comm_options), .transport = argv[1]}, &comm) != PH_OK)
        return printf("%s\n", ph_error_text()), 1;
    printf("%s\n", ph_comm_describe(comm));
    ph_comm_destroy(comm);
    return 0;
}
END
moved=$work/moved
cp -R "$prefix" "$moved"
moved_folder=$moved${library_folder#"$prefix"}
"$PH_CC" -std=c17 "$work/rank.c" -I"$moved/include" -L"$moved_folder" -lphloem -o "$work/rank" || fail 'no rank was built'
for mpi in self openmpi mpich; do
    wanted="^\(self\|Open MPI [0-9.]*\|MPICH [0-9.]*\), rank 0 of 1, host"
    if [ "$mpi" != self ] && [ ! -e "$PH_BINARY_DIR/libphloem_$mpi.so" ]; then
        wanted="cannot find libphloem_$mpi.so in .*$moved_folder/phloem"
    fi
    LD_LIBRARY_PATH=$moved_folder "$work/rank" "$mpi" >"$work/log" 2>&1 || true
    grep -q "$wanted" "$work/log" || { cat "$work/log" >&2; fail "over $mpi: wanted '$wanted'"; }
done

# Something to score: a small model, rows without labels, and what phloem predict says of them.
cat >"$work/job.yaml" <<'END'
data: {train: data/train.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 4, bottom_units: [8], top_units: [8]}
train: {epochs: 1, batch_size: 200}
synth: {train_rows: 2000, valid_rows: 0, test_rows: 300, table_rows: 100, format: criteo}
END
(
    cd "$work"
    "$PH_BINARY_DIR/phloem" synth job.yaml --out data
    "$PH_BINARY_DIR/phloem" train job.yaml --out model --quiet
    "$PH_BINARY_DIR/phloem" predict model data/test.tsv --out predictions.csv
) >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'no model to score with'; }
cut -f 2- "$work/data/test.tsv" >"$work/rows.tsv"
tail -n +2 "$work/predictions.csv" >"$work/wanted"

# The batches of examples/arrow: its six rows by four, with the ids of its users.
cat >"$work/batches" <<'END'
dense (4,1), labels (4,1), lengths (2,4), ids (8): 1 2 1 3
dense (2,1), labels (2,1), lengths (2,2), ids (4): 2 1
END

# Line by line, every digit as phloem predict wrote it; and one row by the names of its columns.
run_score() {
    (cd "$work" && "$1" model <rows.tsv >scores && cmp wanted scores && "$1" model I1=3 C2=05db9164) || return 1
    ! "$1" "$work/model" I1=many 2>"$work/log" || return 1
    grep -q "row 0: field 'I1': 'many' is not a finite number" "$work/log"
}

# Trained by the same config, the model says of the first row what that of phloem train says.
run_train() {
    rm -rf "$work/trained"
    (cd "$work" && "$1" job.yaml trained threads=1 <rows.tsv >scores 2>log) || { cat "$work/log" >&2; return 1; }
    head -n 1 "$work/wanted" | cmp - "$work/scores" || return 1
    ! "$1" "$work/job.yaml" "$work/trained" train.epoch=2 <"$work/rows.tsv" 2>"$work/log" || return 1
    grep -q "did you mean 'train.epochs'" "$work/log"
}

run_arrow() {
    "$1" "$work/arrow/job.yaml" >"$work/scores" && cmp "$work/batches" "$work/scores"
}

# run_example NAME PROGRAM
run_example() {
    case $1 in
    score | train | arrow) "run_$1" "$2" ;;
    *) (cd "$work" && "$2") ;;
    esac
}

for example in "$PH_SOURCE_DIR"/examples/*/; do
    name=$(basename "$example")
    case $name in hub | python | serve) continue ;; esac # with tests of their own, or no program
    # Copied, so that nothing of the source tree is beside it.
    cp -R "$example" "$work/$name"

    "$PH_CMAKE" -G Ninja -S "$work/$name" -B "$work/$name/build" -DCMAKE_C_COMPILER="$PH_CC" \
        -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$name: find_package failed"; }
    "$PH_CMAKE" --build "$work/$name/build" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$name: no build"; }
    run_example "$name" "$work/$name/build/$name" || fail "$name, built by the CMake package, failed"

    flags=$(PKG_CONFIG_PATH=$library_folder/pkgconfig pkg-config --cflags --libs phloem) || fail 'pkg-config failed'
    # shellcheck disable=SC2086 # a list of flags
    "$PH_CC" -std=c17 -Wall -Wextra -Wpedantic -Werror "$work/$name"/*.c $flags -o "$work/$name/by_pkg_config" ||
        fail "$name: no build by pkg-config"
    LD_LIBRARY_PATH=$library_folder run_example "$name" "$work/$name/by_pkg_config" ||
        fail "$name, built by pkg-config, failed"
    echo "test_install: $name builds and runs"
done
