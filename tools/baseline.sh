#!/bin/sh
# Builds two revisions on this machine and compares what they train, take, print, write, export and test. CONTRIBUTING.md
# ("Guarding a change") says what each part is.
#
# usage: baseline.sh OLD NEW [OPTIONS]      OLD, NEW: git revisions, or WORK, the working tree as it is
#   --only PART,...   these parts alone, of: sums ranks compat keys flags exits members symbols tests bench benches coverage
#   --coverage        also the line coverage of each room: builds and runs the unit tests of both
#   --expect FILE     differences that are meant (default: tools/baseline_expected.txt)
#   --jobs N          processes at a time (default: one a processor)
#   --keep            keep the folders that the programs worked in
# Builds and facts stay in build/baseline/<tree of the revision>. Ends with 0; 1: something differs that FILE does not list, or a
# revision was not built; 2: usage.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."

all_parts='sums ranks compat keys flags exits members symbols tests bench benches coverage'
parts='sums,ranks,compat,keys,flags,exits,members,symbols,tests,bench'
expect=tools/baseline_expected.txt
jobs=$(nproc)
keep=''

fail() {
    echo "baseline: $2" >&2
    exit "$1"
}

read_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --keep) keep=--keep ;;
        --coverage) parts=$parts,coverage ;;
        --only | --expect | --jobs)
            [ $# -gt 1 ] || fail 2 "$1 needs a value"
            case $1 in --only) parts=$2 ;; --expect) expect=$2 ;; --jobs) jobs=$2 ;; esac
            shift
            ;;
        *) fail 2 "unknown option '$1'; the head of tools/baseline.sh lists them" ;;
        esac
        shift
    done
    for part in $(echo "$parts" | tr ',' ' '); do
        case " $all_parts " in *" $part "*) ;; *) fail 2 "unknown part '$part'; there are: $all_parts" ;; esac
    done
    case $jobs in '' | *[!0-9]* | 0*) fail 2 "--jobs must be a number above 0, not '$jobs'" ;; esac
    [ -f "$expect" ] || fail 2 "--expect: '$expect' does not exist"
}

# has PART...: succeeds where one of them is asked for.
has() {
    for part; do
        case ",$parts," in *",$part,"*) return 0 ;; esac
    done
    return 1
}

# tree_of REVISION: prints the id of its tree. That of WORK is made from all files that git does not ignore.
tree_of() {
    if [ "$1" = WORK ]; then
        index=$(mktemp)
        cp "$(git rev-parse --git-path index)" "$index"
        GIT_INDEX_FILE=$index git add -A && GIT_INDEX_FILE=$index git write-tree
        rm -f "$index"
    else
        git rev-parse --quiet --verify "$1^{tree}" || fail 2 "'$1' is not a git revision, nor WORK"
    fi
}

# logged LOG COMMAND...: quietly; where it fails, shows the end of what it said, and ends.
logged() {
    log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        fail 1 "failed: $* (see $log)"
    }
}

# configure FOLDER BUILD PRESET ARGUMENTS...: build/BUILD in its sources, by the revision's own preset.
configure() {
    log=$1/$2.log sources=$1/source build=$2 preset=$3
    shift 3
    [ -e "$sources/build/$build/build.ninja" ] ||
        logged "$log" env -C "$sources" cmake --preset "$preset" -B "$sources/build/$build" "$@"
}

# targets FOLDER PATTERN: prints those of a configured build that match.
targets() {
    cmake --build "$1" --target help | sed -n "s/^\($2\): phony$/\1/p"
}

# build FOLDER: builds what the parts need of a revision.
build() {
    echo "baseline: building $1"
    if has sums ranks compat keys flags exits members symbols bench benches; then
        configure "$1" release release -DPH_TESTS=OFF -DPH_BENCH=ON
        wanted="phloem_cli libphloem.so phloem_hub $(targets "$1/source/build/release" 'phloem_openmpi\|phloem_mpich')"
        ! has bench benches || wanted="$wanted $(targets "$1/source/build/release" 'bench_.*' | sed '/^bench_support$/d')"
        # shellcheck disable=SC2086 # a list of words
        logged "$1/release.log" cmake --build "$1/source/build/release" -j "$jobs" --target $wanted
    fi
    if has tests; then
        configure "$1" tests.release release -DPH_TESTS=ON
        configure "$1" tests.asan asan -DPH_TESTS=ON
    fi
    if has coverage; then
        configure "$1" coverage release -DPH_TESTS=ON -DPH_WERROR=OFF -DCMAKE_BUILD_TYPE=Coverage \
            '-DCMAKE_C_FLAGS=--coverage -O1'
        logged "$1/coverage.log" cmake --build "$1/source/build/coverage" -j "$jobs"
    fi
}

# make_revision REVISION: leaves folder, with the revision's sources and builds.
make_revision() {
    tree=$(tree_of "$1")
    folder=$(pwd)/build/baseline/$(echo "$tree" | cut -c 1-16)
    if [ ! -d "$folder/source" ]; then
        rm -rf "$folder/unpacked"
        mkdir -p "$folder/unpacked"
        git archive "$tree" | tar -x -C "$folder/unpacked"
        mv "$folder/unpacked" "$folder/source"
    fi
    build "$folder"
}

[ $# -ge 2 ] || fail 2 'usage: tools/baseline.sh OLD NEW [OPTIONS]'
old=$1 new=$2
shift 2
read_options "$@"
if command -v ccache >/dev/null; then # two revisions share what is the same in both
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1
    export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$(pwd)/build/baseline}"
fi
make_revision "$old"
old_folder=$folder
make_revision "$new"
# shellcheck disable=SC2086 # $keep is a word or none
python3 tools/baseline_facts.py "$old_folder" "$folder" --parts "$parts" --jobs "$jobs" $keep
python3 tools/baseline_compare.py "$old_folder/facts" "$folder/facts" --parts "$parts" --expect "$expect"
