#!/bin/sh
# ./run build configures with nothing but what its own package list brings. The test copies the files of those packages,
# of what they depend on and of Debian's essential ones into a root folder of their own, and configures there; nothing is
# compiled. It ends by taking a package away and by asking for the tests, which must both fail.
# Skips where this is no Debian, and where namespaces are not allowed. Environment: PH_SOURCE_DIR.
set -eu
PATH=$PATH:/usr/sbin:/sbin # of chroot, for a user

name=test_front_door
skip() {
    echo "$name: skipped: $1"
    exit 77
}
complain() {
    echo "$name: $1; the last output:" >&2
    cat "$work/output" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
: >"$work/output"
command -v dpkg-query >/dev/null || skip 'there is no dpkg-query'
for namespaces in --mount '--mount --user --map-root-user'; do
    # shellcheck disable=SC2086 # a list of words
    unshare $namespaces mount --rbind /proc /proc 2>/dev/null && break
    namespaces=''
done
[ -n "$namespaces" ] || skip 'this machine allows no mount namespaces'

# closure: the installed packages that those on standard input and the essential ones stand on, with themselves.
dpkg-query -W -f '${db:Status-Status}\t${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n' |
    sed -n 's/^installed\t//p' >"$work/installed"
closure() {
    awk -F '\t' '
    function plain(package) {gsub(/[ ]|\(.*|:.*/, "", package); return package}
    function take(package) {
        package = plain(package)
        if (!(package in needs) && (package in provider)) package = provider[package]
        if (!(package in needs)) return 0
        if (!(package in taken)) {taken[package] = 1; waiting[++last] = package}
        return 1
    }
    FNR == NR {
        needs[$1] = $3
        if ($2 == "yes") essential[$1]
        num = split($4, virtual, ",")
        for (i = 1; i <= num; i++) provider[plain(virtual[i])] = $1
        next
    }
    {if (!take($1)) {print "not installed: " $1 >"/dev/stderr"; exit 1}}
    END {
        for (package in essential) take(package)
        for (first = 1; first <= last; first++) {
            print waiting[first]
            num = split(needs[waiting[first]], clauses, ",")
            for (i = 1; i <= num; i++) {
                others = split(clauses[i], choices, "|")
                for (j = 1; j <= others && !take(choices[j]);) j++
            }
        }
    }' "$work/installed" -
}

# files: the names that the packages on standard input brought, but large ones that no configuration reads; /bin and its
# like are links into /usr.
files() {
    xargs dpkg-query -L | grep '^/.' | grep -Ev '/(doc|man|info|locale|perl[^/]*)/|lto1|lto-dump' |
        sed -E 's#^/(bin|sbin|lib|lib32|lib64|libx32)(/|$)#/usr/\1\2#' | sort -u
}

# build_there: ./run build in the root folder. A stand-in for cmake --build leaves out what takes long.
build_there() {
    status=0
    # shellcheck disable=SC2016,SC2086 # the inner shell expands them; a list of words
    unshare $namespaces sh -c '
        mount --rbind /proc "$1/proc" && mount --bind /dev/null "$1/dev/null" &&
            exec chroot "$1" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin sh /phloem/run build' sh "$root" \
        >"$work/output" 2>&1 </dev/null || status=$?
}

# build_anew: the same, with nothing left of an earlier build.
build_anew() {
    rm -rf "$root/phloem/build"
    build_there
}

# The root folder, with the sources. Without dpkg-query ./run asks for no package.
sh "$PH_SOURCE_DIR/run" packages build >"$work/packages"
closure <"$work/packages" >"$work/closure" || skip 'a package of ./run build is not installed'
files <"$work/closure" >"$work/files"
mkdir -p "$root/usr/local/bin" "$root/dev" "$root/proc" "$root/tmp" "$root/phloem/tests"
for folder in bin sbin lib lib32 lib64 libx32; do
    ln -s "usr/$folder" "$root/$folder"
done
tar --create --no-recursion --ignore-failed-read --directory=/ --files-from="$work/files" 2>"$work/output" |
    tar --extract --no-same-owner --directory="$root" 2>>"$work/output" || complain 'the files of packages could not be copied'
rm -f "$root/usr/bin/dpkg-query"
: >"$root/dev/null"
cat >"$root/usr/local/bin/cmake" <<'STUB'
#!/bin/sh
[ "$1" = --build ] || exec /usr/bin/cmake "$@"
STUB
chmod +x "$root/usr/local/bin/cmake"
for part in run CMakeLists.txt CMakePresets.json cmake include src; do
    cp -R "$PH_SOURCE_DIR/$part" "$root/phloem/"
done
cp "$PH_SOURCE_DIR/tests/CMakeLists.txt" "$root/phloem/tests/"

# MPI and the packages of the tests are hidden.
for hidden in usr/include/cmocka.h usr/bin/chromium usr/bin/mpicc usr/bin/python3 usr/bin/g++ usr/bin/clang; do
    [ ! -e "$root/$hidden" ] || complain "/$hidden is there"
done
build_anew
[ "$status" -eq 0 ] || complain "./run build ended with $status"
grep -q 'built build/release/phloem' "$work/output" || complain 'the build does not say what it built'
grep -q 'apt-get install libopenmpi-dev or libmpich-dev' "$work/output" || complain 'the build does not say how to add MPI'
# mpi_is LIBRARY TEXT: the last configuration said so.
mpi_is() {
    grep -q "Ranks over $1: $2" "$root/phloem/build/release.log" || complain "$1 is not: $2"
}
mpi_is 'Open MPI' no
mpi_is MPICH no

# An MPI that is installed later is found by the next build, and one that was removed is not missed.
printf 'Name: ompi-c\nDescription: a stand-in\nVersion: 9.9\n' >"$root/usr/share/pkgconfig/ompi-c.pc"
build_there
mpi_is 'Open MPI' 9.9
: >"$root/phloem/build/release/libphloem_openmpi.so"
build_there
! grep -q 'without MPI' "$work/output" || complain 'the build says that it has no MPI'
rm "$root/usr/share/pkgconfig/ompi-c.pc"
build_there
mpi_is 'Open MPI' no
grep -q 'without MPI' "$work/output" || complain 'a plugin for a library that was removed stayed'

# A build that wants the tests fails for the lack of cmocka, and one that lacks a package for that.
sed -i 's/"PH_TESTS": "OFF"/"PH_TESTS": "ON"/' "$root/phloem/CMakePresets.json"
build_anew
[ "$status" -eq 1 ] && grep -q cmocka "$work/output" || complain "a build with tests ended with $status"
cp "$PH_SOURCE_DIR/CMakePresets.json" "$root/phloem/"

# without PACKAGE: a build whose list lacks it.
without() {
    grep -vx "$1" "$work/packages" | closure | files >"$work/fewer"
    comm -23 "$work/files" "$work/fewer" >"$work/gone"
    [ -s "$work/gone" ] || complain "$1 comes with another package"
    while IFS= read -r file; do
        [ -d "$root$file" ] || rm -f "$root$file"
    done <"$work/gone"
    build_anew
    [ "$status" -ne 0 ] || complain "./run build does without $1"
}
without libxxhash-dev
grep -q libxxhash "$work/output" || complain 'the build does not say that libxxhash is missing'
echo "$name: fine"
