#!/bin/sh
# Builds Debian packages of the C side: installs a build of its own (build/debian) into a folder and sorts the files into packages.
# The program has the library inside; libphloem_hub is a package of its own because it needs no oneDNN.
# usage: tools/debs.sh CMAKE (./run deb): leaves build/deb/*.deb; an MPI that is not installed has no package
set -eu

cmake=$1
build=build/debian
rm -rf build/deb build/debian.staging
mkdir -p build/deb build/debian.staging/debian
trap 'rm -rf build/debian.staging' EXIT
staging=$(pwd)/build/debian.staging/debian # a package's files are where dpkg-shlibdeps expects them: debian/PACKAGE

fail() {
    echo "debs: $1" >&2
    exit 1
}

"$cmake" --preset release -B "$build" -DCMAKE_INSTALL_PREFIX=/usr >"$build.log" 2>&1 || { cat "$build.log" >&2; fail "configuring $build failed"; }
"$cmake" --build "$build"
DESTDIR=$staging/all "$cmake" --install "$build" --strip >"$build.log" || fail "installing $build failed"

version=$(sed -n 's/^project(phloem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)-1
architecture=$(dpkg --print-architecture)
maintainer='Phloem maintainers <maintainers@phloem.invalid>'
libraries=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)

# take PACKAGE PATH...: moves what was installed at the paths to the package.
take() {
    package=$1
    shift
    for path; do
        mkdir -p "$staging/$package/$(dirname "$path")"
        mv "$staging/all/$path" "$staging/$package/$path"
    done
}

# needs PACKAGE: what its programs and libraries are linked with, by package and version.
needs() {
    printf 'Source: phloem\n\nPackage: %s\nArchitecture: any\n' "$1" >"$staging/control"
    # shellcheck disable=SC2046 # names without spaces
    (cd "$staging/.." && dpkg-shlibdeps -O $(find "debian/$1" -type f \( -path '*/bin/*' -o -name '*.so*' \))) |
        sed -n 's/^shlibs:Depends=//p'
}

# make PACKAGE SECTION DEPENDS SHORT LONG [FIELD...]: DEPENDS beside what it is linked with, or empty; LONG: lines that begin with a space.
make() {
    package=$1 section=$2 depends=$3 short=$4 long=$5
    shift 5
    folder=$staging/$package
    mkdir -p "$folder/DEBIAN"
    linked=$(find "$folder" -path '*/bin/*' -o -name '*.so.*' -o -path '*/phloem/*.so' | grep -q . && needs "$package" || true)
    doc=$folder/usr/share/doc/$package
    mkdir -p "$doc"
    echo 'Phloem has the Apache License 2.0: /usr/share/common-licenses/Apache-2.0' >"$doc/copyright"
    printf 'phloem (%s) unstable; urgency=medium\n\n  * Built by ./run deb; CHANGELOG.md says what is new.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(LC_ALL=C date -u -R)" | gzip -9n >"$doc/changelog.Debian.gz"
    find "$folder/usr/share/man" -name '*.[1-9]' -exec gzip -9n {} + 2>/dev/null || true
    if [ "$section" = libs ]; then
        echo 'activate-noawait ldconfig' >"$folder/DEBIAN/triggers"
        library=$(basename "$(find "$folder/usr/lib" -name '*.so.[0-9]')")
        echo "${library%.so.*} ${library##*.so.} $package (>= ${version%-*})" >"$folder/DEBIAN/shlibs"
    fi
    depends=$(printf '%s' "$depends${depends:+${linked:+, }}$linked")
    {
        printf 'Package: %s\nVersion: %s\nSection: %s\nPriority: optional\nArchitecture: %s\nMaintainer: %s\n' \
            "$package" "$version" "$section" "$architecture" "$maintainer"
        printf 'Source: phloem\nInstalled-Size: %s\n' "$(du -k -s "$folder/usr" | cut -f 1)"
        [ -z "$depends" ] || printf 'Depends: %s\n' "$depends"
        for field; do printf '%s\n' "$field"; done
        printf 'Description: %s\n%s\n' "$short" "$long"
    } >"$folder/DEBIAN/control"
    (cd "$folder" && find usr -type f -exec md5sum {} +) >"$folder/DEBIAN/md5sums"
    chmod -R u=rwX,go=rX "$folder"
    dpkg-deb --root-owner-group --build "$folder" build/deb
}

about=' Phloem trains and serves recommendation models on one machine or many.'
# shellcheck disable=SC2046 # names without spaces
take phloem usr/bin/phloem $(cd "$staging/all" && find usr/share/man usr/share/bash-completion -type f)
# shellcheck disable=SC2046
take libphloem0 $(cd "$staging/all" && find "$libraries" -name 'libphloem.so.*')
# shellcheck disable=SC2046
take libphloem-hub0 $(cd "$staging/all" && find "$libraries" -name 'libphloem_hub.so.*')
for mpi in openmpi mpich; do
    ! [ -e "$staging/all/$libraries/phloem/libphloem_$mpi.so" ] ||
        take "phloem-$mpi" "$libraries/phloem/libphloem_$mpi.so" "$libraries/phloem/libphloem_reorder_$mpi.so" \
            "$libraries/phloem/libphloem_sim_mpi_$mpi.so"
done
find "$staging/all" -type d -empty -delete
mv "$staging/all" "$staging/libphloem-dev"

make phloem science '' 'trains and serves recommendation models (program)' "$about
 This package has the program, its manual pages and completion for bash." 'Suggests: phloem-openmpi | phloem-mpich'
make libphloem0 libs '' 'trains and serves recommendation models (library)' "$about
 This package has the shared library."
make libphloem-hub0 libs '' 'parameter hub for trainings of any program (library)' "$about
 This package has the parameter hub alone, which sums gradients and runs
 optimizers for the workers of a training."
make libphloem-dev libdevel "libphloem0 (= $version), libphloem-hub0 (= $version)" \
    'trains and serves recommendation models (development files)' "$about
 This package has headers, a CMake package, files for pkg-config and the static
 library of the hub."
for mpi in openmpi:openmpi-bin mpich:mpich; do
    name=${mpi%:*}
    [ -e "$staging/phloem-$name" ] || continue
    make "phloem-$name" science "phloem | libphloem0, ${mpi#*:}" "ranks of Phloem over $name" "$about
 This package has the plugin that carries messages between ranks by $name, and
 a library that gives the ranks of any program of $name another order, and the
 MPI in its place that phloem sim run gives to programs of $name."
done
echo "debs: build/deb has $(find build/deb -name '*.deb' | wc -l) packages"
