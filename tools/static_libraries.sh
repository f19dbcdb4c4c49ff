#!/bin/sh
# Builds, from Debian's source packages and without root, those static libraries of the wheel that Debian's own packages lack:
#   onednn           sequential, and only what src/kernel/gemm_onednn.c uses; Debian has a shared one with OpenMP
#   jansson          Debian's is not position-independent
#   hwloc            Debian's needs libudev, which has no static library
#   libmicrohttpd    Debian's needs GnuTLS, and by it p11-kit, which has no static library
#   nghttp2          Debian's is not position-independent
# They lie in FOLDER/include and FOLDER/lib. What an earlier run has built stays, until FOLDER is removed: a second run
# takes no time.
# The archive is the one that this machine's apt uses; the lists of its sources go to FOLDER/apt. Ends with 77 where it cannot be reached.
#
# usage: tools/static_libraries.sh FOLDER
set -eu

releases='bookworm trixie' # tried in this order: a mirror may lack a file

fail() {
    echo "static_libraries: $2" >&2
    exit "$1"
}

[ $# -eq 1 ] || fail 2 'usage: tools/static_libraries.sh FOLDER'
mkdir -p "$1"
folder=$(cd "$1" && pwd)
log=$folder/log
exec 9>"$folder/lock"
flock 9 # builds of several kinds may want them at the same time
for tool in cmake ninja make g++; do
    command -v "$tool" >/dev/null || fail 2 "there is no $tool; ./run packages wheel lists what the wheel needs"
done

# ---- sources ----

# archive: URLs of Debian's archive, of the main component alone.
archive() {
    apt-get indextargets --format '$(REPO_URI) #$(ORIGIN) $(COMPONENT) $(RELEASE)' 'Created-By: Packages' |
        sed -n 's/ #Debian main [a-z]*$//p' | sort -u
}

# update: fetches the lists of sources, once a run.
update() {
    [ "${APT_CONFIG:-}" != "$folder/apt/apt.conf" ] || return 0
    for tool in apt-get dpkg-source; do
        command -v "$tool" >/dev/null || fail 77 "there is no $tool, which fetches Debian's sources"
    done
    urls=$(archive)
    [ -n "$urls" ] || fail 77 "this machine's apt knows no Debian archive; apt-get update?"
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
    for url in $urls; do
        for release in $releases; do echo "deb-src $url $release main"; done
    done >"$folder/apt/sources.list"
    cat >"$folder/apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$folder/apt";
Dir::Cache "$folder/apt/cache";
APT::Sandbox::User "$(id -un)";
CONF
    export APT_CONFIG="$folder/apt/apt.conf"
    apt-get -q update >"$log" 2>&1 || true # one release may be missing
}

# fetch NAME: the package's sources, unpacked as $folder/source/NAME; prints nothing.
fetch() {
    update
    rm -rf "${folder:?}/source"
    mkdir -p "$folder/source"
    for release in $releases; do
        (cd "$folder/source" && apt-get -q source --only-source "$1/$release") >>"$log" 2>&1 || continue
        mv "$folder/source/$1"-*/ "$folder/source/$1"
        return 0
    done
    tail -n 5 "$log" >&2
    fail 77 "the sources of $1 cannot be fetched"
}

# ---- building ----

# with_cmake NAME OPTIONS...
with_cmake() {
    source=$folder/source/$1
    shift
    cmake -G Ninja -S "$source" -B "$source/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE='-O2 -DNDEBUG' \
        -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG' -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$folder" \
        -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
    cmake --build "$source/build" --target install
}

# with_configure NAME FOLDERS OPTIONS...: installs the FOLDERS alone.
with_configure() {
    source=$folder/source/$1
    folders=$2
    shift 2
    (cd "$source" && ./configure --prefix="$folder" --libdir="$folder/lib" --disable-shared --enable-static --with-pic "$@")
    for part in $folders; do make -C "$source/$part" -j "$(nproc)" install; done
}

# The primitives but matmul and reorder are left out of the lists that oneDNN chooses from; their files need not be compiled.
build_onednn() {
    find "$folder/source/onednn/src/cpu" -regextype egrep ! -regex '.*(_list|/cpu/rnn/rnn_utils|/jit_uni_convert_xf16)\.cpp' -regex \
        '.*(conv|pool|/rnn/|lrn|norm|prelu|resampling|shuffle|softmax|brgemm_inner_product|inner_product(_int8)?\.)[^/]*cpp' -delete
    : >"$folder/source/spdlogConfig.cmake" # Debian's patch asks for spdlog, which logging alone uses
    with_cmake onednn -DDNNL_LIBRARY_TYPE=STATIC -DDNNL_CPU_RUNTIME=SEQ -DDNNL_GPU_RUNTIME=NONE -DDNNL_ARCH_OPT_FLAGS= \
        -DDNNL_ENABLE_WORKLOAD=INFERENCE '-DDNNL_ENABLE_PRIMITIVE=MATMUL;REORDER' -DONEDNN_BUILD_GRAPH=OFF \
        -DDNNL_BUILD_DOC=OFF -DDNNL_BUILD_EXAMPLES=OFF -DDNNL_BUILD_TESTS=OFF -DDNNL_ENABLE_JIT_PROFILING=OFF \
        -DDNNL_ENABLE_ITT_TASKS=OFF -Dspdlog_DIR="$folder/source"
}

build_jansson() {
    with_cmake jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON
}

build_hwloc() {
    with_configure hwloc 'include hwloc' --disable-libudev --disable-libxml2 --disable-pci --disable-opencl \
        --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl --disable-cairo
}

build_libmicrohttpd() {
    with_configure libmicrohttpd 'src/include src/microhttpd' --disable-https --disable-doc --disable-examples --disable-curl
}

build_nghttp2() {
    with_cmake nghttp2 -DENABLE_LIB_ONLY=ON -DENABLE_STATIC_LIB=ON -DENABLE_SHARED_LIB=OFF
}

for name in jansson hwloc libmicrohttpd nghttp2 onednn; do
    [ ! -e "$folder/$name.built" ] || continue
    fetch "$name"
    version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$folder/source/$name/debian/changelog")
    echo "static_libraries: building $name $version"
    "build_$name" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; fail 1 "$name cannot be built; $log has more"; }
    mkdir -p "$folder/copyright"
    cp "$folder/source/$name/debian/copyright" "$folder/copyright/$name"
    echo "$version" >"$folder/$name.built"
done
rm -rf "${folder:?}/source"
