#!/bin/sh
# The front door's own manners, with stand-ins for the package tools and CMake: what it asks of them, and when.
# Environment: PH_SOURCE_DIR.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$PH_SOURCE_DIR/run" "$work/run"
mkdir "$work/bin"
for tool in sh dirname sed cat mkdir nproc env find rm; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done

# stub NAME: the script on standard input becomes the command NAME of the runs below.
stub() {
    rm -f "$work/bin/$1" # perhaps a link to the real command, which must not be written through
    { echo '#!/bin/sh' && cat; } >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# front ARGUMENTS...: ./run with the stand-ins only; leaves status, and what was printed in $work/output.
front() {
    : >"$work/calls"
    status=0
    (cd / && CALLS=$work/calls PATH=$work/bin sh "$work/run" "$@") >"$work/output" 2>&1 || status=$?
}

# expect STATUS TEXT: of the last front; TEXT is in its output.
expect() {
    if [ "$status" -ne "$1" ] || ! grep -qF -- "$2" "$work/output"; then
        echo "test_run: line of \"$2\": ended with $status; wanted $1 and that text in:" >&2
        cat "$work/output" "$work/calls" >&2
        exit 1
    fi
}

# expect_last STATUS TEXT: the last line of the last front's output is TEXT; expect_line: that is all of the output.
expect_last() {
    expect "$1" "$2"
    [ "$(tail -n 1 "$work/output")" = "$2" ] || { echo "test_run: the last line is not: $2" && cat "$work/output" && exit 1; } >&2
}
expect_line() {
    expect_last "$1" "$2"
    [ "$(wc -l <"$work/output")" -eq 1 ] || { echo 'test_run: wanted one line:' && cat "$work/output" && exit 1; } >&2
}

# expect_call TEXT / expect_no_call TEXT: among the commands that the last front gave to the stand-ins.
expect_call() {
    grep -qF -- "$1" "$work/calls" || { echo "test_run: no call of $1:" >&2 && cat "$work/calls" >&2 && exit 1; }
}
expect_no_call() {
    ! grep -qF -- "$1" "$work/calls" || { echo "test_run: a call of $1" >&2 && exit 1; }
}

stub cmake <<'END'
case $1 in --version) echo 'cmake version 3.25.1' && exit ;; esac
echo "cmake $*" >>"$CALLS"
END
stub ctest <<'END'
echo "ctest $*" >>"$CALLS"
echo '100% tests passed'
END
stub apt-get <<'END'
echo "apt-get $*" >>"$CALLS"
END
stub id <<'END'
echo 1000
END
stub dpkg-query <<'END'
echo 'installed '
END

front
expect 0 'usage: ./run COMMAND'
front sing
expect 2 'unknown command: sing'

# Each command has a list of packages; that of the build knows neither tests nor MPI.
front packages
expect 0 libyaml-dev
! grep -E 'cmocka|mpi' "$work/output" || exit 1
front packages test
expect 0 libcmocka-dev
expect 0 libopenmpi-dev
expect 0 libmpich-dev
front packages wheel
expect 0 dpkg-dev
! grep -qx libdnnl-dev "$work/output" || { echo "test_run: the wheel wants Debian's oneDNN" >&2 && exit 1; }
front packages sing
expect_line 2 "run: packages: no such command: 'sing' (build, demo, test, test-all, bench, wheel, deb or fuzz)"

# Everything is there: no apt-get, hence no network. Neither tests nor benchmarks are configured, and one line says how to
# add MPI, unless a plugin was built.
front build
expect 0 'built build/release/phloem'
expect_last 0 'run: without MPI; for many ranks: apt-get install libopenmpi-dev or libmpich-dev, then ./run build again'
expect_no_call apt-get
expect_call 'cmake --preset release'
expect_call 'cmake --build build/release'
expect_no_call PH_
mkdir -p "$work/build/release"
: >"$work/build/release/libphloem_mpich.so"
front build
expect_last 0 'run: built build/release/phloem and the libraries'

# A tree that was moved is built anew, one that is where it was is not.
cache=$work/build/release/CMakeCache.txt
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$work" >"$cache"
front build
[ -e "$cache" ] || { echo 'test_run: built anew' >&2 && exit 1; }
echo 'CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere' >"$cache"
front build
expect 0 'run: build/release was built in /elsewhere; building it anew'
[ ! -e "$cache" ] || { echo 'test_run: not built anew' >&2 && exit 1; }

# Files of another user, often root's, are named before anything is installed or built.
stub find <<'END'
echo build/release
END
front build
expect_line 2 'run: cannot write build/release, which another user left: remove build and runs, or give them to 1000'
rm "$work/bin/find"
ln -s "$(command -v find)" "$work/bin/find"

# What is fuzzed, and for how long, is the script's business.
mkdir "$work/tools"
echo 'echo "fuzz.sh $*"' >"$work/tools/fuzz.sh"
echo 'echo "bench.sh $*"' >"$work/tools/bench.sh"
front fuzz csv --seconds 5
expect 0 'fuzz.sh csv --seconds 5'
expect_call 'cmake --preset fuzz'
expect_call 'cmake --build build/fuzz'

front bench kernel
expect 0 'bench.sh kernel'
expect_call 'cmake --preset release -DPH_BENCH=ON'
expect_no_call PH_TESTS

# One CTest run covers every build, and none of the long tests.
front test
expect 0 '100% tests passed'
expect_call 'cmake --preset release -DPH_TESTS=ON'
expect_call '-LE ^long$'
grep -q 'subdirs(".*/build/release")' "$work/build/all/CTestTestfile.cmake"
grep -q 'subdirs(".*/build/asan")' "$work/build/all/CTestTestfile.cmake"
grep -q 'add_test("build.asan" ' "$work/build/all/CTestTestfile.cmake"

# A build that fails still lets the tests run; a test that fails fails the command.
stub ctest <<'END'
echo "ctest $*" >>"$CALLS"
exit 8
END
stub cmake <<'END'
case $1 in --version) echo 'cmake version 3.25.1' && exit ;; --build) exit 1 ;; esac
END
front test
expect 8 'building build/asan failed'
expect_call ctest

# A configuration that fails says what CMake said.
stub cmake <<'END'
case $1 in --version) echo 'cmake version 3.25.1' && exit ;; esac
echo 'no such compiler'
exit 1
END
front build
expect 1 'no such compiler'
expect 1 'configuring build/release failed'

# Something is missing: without root and sudo one line says what to do; with sudo, apt-get gets just that.
stub dpkg-query <<'END'
case $* in *libyaml-dev*) exit 1 ;; esac
echo 'installed '
END
front build
expect_line 2 'run: packages are missing; as root: apt-get install libyaml-dev'
expect_no_call apt-get

stub sudo <<'END'
echo "sudo $*" >>"$CALLS"
"$@"
END
stub cmake <<'END'
case $1 in --version) echo 'cmake version 3.25.1' && exit ;; esac
END
front build
expect 0 'installing libyaml-dev'
expect_call 'sudo apt-get -q update'
expect_call 'install --yes --no-install-recommends libyaml-dev'

# An update that fails does not keep packages from being installed; what cannot be installed ends with one line.
stub apt-get <<'END'
echo "apt-get $*" >>"$CALLS"
case $* in *update*) exit 100 ;; esac
END
front build
expect 0 'apt-get update failed; trying with the package lists that are here'
expect_call 'install --yes --no-install-recommends libyaml-dev'

stub apt-get <<'END'
echo 'E: Failed to fetch: Temporary failure in name resolution'
exit 100
END
front build
expect_last 2 'run: packages could not be installed; as root, with a network: apt-get install libyaml-dev'

rm "$work/bin/apt-get"
front build
expect_line 2 'run: packages are missing, and there is no apt-get to install them: libyaml-dev'
echo 'test_run: fine'
