#!/bin/sh
# The front door's own manners, with stand-ins for the package tools and CMake: what it asks of them, and when.
# Environment: PH_SOURCE_DIR.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$PH_SOURCE_DIR/run" "$work/run"
mkdir "$work/bin"
for tool in sh dirname sed cat mkdir nproc env; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done

# stub NAME: the script on standard input becomes the command NAME of the runs below.
stub() {
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

# Everything is there: no apt-get, hence no network.
front build
expect 0 'built build/release/phloem'
expect_no_call apt-get
expect_call 'cmake --preset release'
expect_call 'cmake --build build/release'

# What is fuzzed, and for how long, is the script's business.
mkdir "$work/tools"
echo 'echo "fuzz.sh $*"' >"$work/tools/fuzz.sh"
front fuzz csv --seconds 5
expect 0 'fuzz.sh csv --seconds 5'
expect_call 'cmake --preset fuzz'
expect_call 'cmake --build build/fuzz'

# One CTest run covers every build, and none of the long tests.
front test
expect 0 '100% tests passed'
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
expect 2 'as root: apt-get install libyaml-dev'
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
expect_call 'apt-get -q install --yes --no-install-recommends libyaml-dev'

stub apt-get <<'END'
exit 100
END
front build
expect 2 'as root: apt-get install libyaml-dev'
echo 'test_run: fine'
