#!/bin/sh
# libphloem_hub by itself: installs its component alone into a fresh prefix, builds examples/hub against it outside the tree
# in all ways that a program can, and runs it; looks at what the library shows and needs; and puts it beside libphloem
# in one program. Environment: PH_SOURCE_DIR, PH_BINARY_DIR, PH_CMAKE, PH_CC.
set -eu

work=$(mktemp -d)
hub=''
trap '[ -z "$hub" ] || kill "$hub" 2>/dev/null; rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
    echo "test_install_hub: $1" >&2
    exit 1
}

# quietly COMMAND...: what it prints is shown where it fails.
quietly() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$* failed"; }
}

quietly "$PH_CMAKE" --install "$PH_BINARY_DIR" --component hub --prefix "$prefix"
library=$(find "$prefix" -name 'libphloem_hub.so')
[ -n "$library" ] || fail 'no libphloem_hub.so was installed'
library_folder=$(dirname "$library")
[ -z "$(find "$prefix" -name 'libphloem.*')" ] || fail 'the component brings libphloem along'
major=$(sed -n 's/^#define PH_VERSION_MAJOR //p' "$PH_SOURCE_DIR/include/phloem/version.h")
soname=$(LC_ALL=C readelf -d "$library" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
[ "$soname" = "libphloem_hub.so.$major" ] || fail "the soname is '$soname'; wanted libphloem_hub.so.$major"

# ---- what it needs, itself or by way of others, and what it shows ----
needed=$(ldd "$library")
for unwanted in gomp dnnl yaml mpi phloem; do
    case $needed in *"lib$unwanted"*) fail "it needs lib$unwanted: $needed" ;; esac
done

is_meant() {
    case $1 in ph__*) return 1 ;; esac
    case $1 in ph_hub_* | ph_status_* | ph_dtype_* | ph_version | ph_fail | ph_error_text) return 0 ;; esac
    return 1
}

nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$work/shown"
nm -g --defined-only "$library_folder/libphloem_hub.a" | awk 'NF == 3 { print $3 }' | sort >"$work/shown_by_static"
cmp "$work/shown" "$work/shown_by_static" || fail 'the shared and the static library show different symbols'
[ "$(wc -l <"$work/shown")" -gt 20 ] || fail 'it shows next to nothing'
while read -r symbol; do
    is_meant "$symbol" || fail "it shows $symbol"
done <"$work/shown"

# All that hub.h and hub_server.h declare is there.
grep -ohE 'ph_hub_[a-z_]+\(' "$PH_SOURCE_DIR/include/phloem/hub.h" "$PH_SOURCE_DIR/include/phloem/hub_server.h" | tr -d '(' | sort -u >"$work/declared"
grep '^ph_hub_' "$work/shown" | cmp - "$work/declared" || fail 'the headers declare something else than it shows'

# Its table of kernels holds what a hub calls, and the others are NULL: each call must be in the list.
grep -rhoE 'kernels->[a-z0-9_]+' "$PH_SOURCE_DIR/src/hub" | sed 's/.*>//' | sort -u >"$work/called"
grep -qx aggregate "$work/called" || fail 'no call of a kernel was found in src/hub'
sed -n '/define PH_HUB_KERNEL_LIST/,/[^\\]$/s/.*X(\([a-z0-9_]*\),.*/\1/p' "$PH_SOURCE_DIR/src/kernel/kernel_list.h" >"$work/held"
while read -r kernel; do
    grep -qx "$kernel" "$work/held" || fail "src/hub calls $kernel, which PH_HUB_KERNEL_LIST lacks"
done <"$work/called"

# ---- the example, by CMake and by pkg-config, shared and static ----
cp -R "$PH_SOURCE_DIR/examples/hub" "$work/example"
source=$work/example/hub_worker.c
PKG_CONFIG_PATH=$library_folder/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs phloem-hub) || fail 'pkg-config failed'
static_flags=$(pkg-config --static --cflags --libs phloem-hub | sed 's/-lphloem_hub/-l:libphloem_hub.a/')

# compile SOURCE PROGRAM FLAGS
compile() {
    # shellcheck disable=SC2086 # a list of flags
    quietly "$PH_CC" -std=c17 -Wall -Wextra -Wpedantic -Werror "$1" $3 -pthread -o "$2"
}

# learns PROGRAM: two workers and a hub in one process, which find the numbers that the rows were made with.
learns() {
    LD_LIBRARY_PATH=$library_folder "$1" >"$work/printed" || fail "$1 failed"
    sort "$work/printed" >"$work/learnt"
    printf 'rank %s: w = 1.000 2.000 3.000 4.000, b = -0.500\n' 0 1 | cmp - "$work/learnt" || fail "$1 is wrong"
}

quietly "$PH_CMAKE" -G Ninja -S "$work/example" -B "$work/by_cmake" -DCMAKE_C_COMPILER="$PH_CC" \
    -DCMAKE_PREFIX_PATH="$prefix"
quietly "$PH_CMAKE" --build "$work/by_cmake"
learns "$work/by_cmake/hub_worker"
sed 's/phloem::hub/phloem::hub_static/' "$work/example/CMakeLists.txt" >"$work/lists"
mv "$work/lists" "$work/example/CMakeLists.txt"
quietly "$PH_CMAKE" -S "$work/example" -B "$work/by_cmake"
quietly "$PH_CMAKE" --build "$work/by_cmake"
learns "$work/by_cmake/hub_worker"
compile "$source" "$work/shared" "$flags"
learns "$work/shared"
compile "$source" "$work/static" "$static_flags"
learns "$work/static"
case $(ldd "$work/static") in *phloem*) fail 'the static program needs a library of ours' ;; esac

# ---- workers in processes of their own ----
cat >"$work/hub.c" <<'END'
#include <stdio.h>

#include "phloem/hub_server.h"

int main(void)
{
    struct ph_hub_server *server;
    if (ph_hub_server_create(&(struct ph_hub_server_options){.size = sizeof(struct ph_hub_server_options)}, &server) != PH_OK)
        return 1;
    printf("%s\n", ph_hub_server_address(server));
    fflush(stdout);
    return ph_hub_server_run(server, NULL) == PH_OK ? 0 : 1;
}
END
compile "$work/hub.c" "$work/hub" "$static_flags"
"$work/hub" >"$work/address" &
hub=$!
until [ -s "$work/address" ]; do
    kill -s 0 "$hub" 2>/dev/null || fail 'the hub has ended'
    sleep 0.1
done
"$work/static" "$(cat "$work/address")" 1 2 77 >"$work/second" &
second=$!
"$work/static" "$(cat "$work/address")" 0 2 77 >"$work/first" || fail 'worker 0 failed'
wait "$second" || fail 'worker 1 failed'
cat "$work/first" "$work/second" | cmp - "$work/learnt" || fail 'workers in processes learn something else'
status=0
"$work/static" "$(cat "$work/address")" 2 2 77 2>"$work/log" || status=$?
[ "$status" -eq 2 ] || fail "a rank too many ended with $status; wanted 2"
grep -q "hub_worker: rank 2: service 'least squares': rank 2 of 2 workers" "$work/log" || fail "$(cat "$work/log")"

# ---- beside libphloem: one record of errors, whoever had the error ----
cat >"$work/both.c" <<'END'
#include <stdio.h>
#include <string.h>

#include "phloem/config.h"
#include "phloem/hub.h"

int main(void)
{
    struct ph_config *config;
    struct ph_hub_client *client;
    const struct ph_hub_options nowhere = {.size = sizeof nowhere};
    if (ph_config_read("missing.yaml", NULL, 0, &config) == PH_OK || strstr(ph_error_text(), "missing.yaml") == NULL)
        return printf("of phloem: '%s'\n", ph_error_text()), 1;
    if (ph_hub_connect(&nowhere, "job", 1, 0, &client) == PH_OK || strstr(ph_error_text(), "address") == NULL)
        return printf("of the hub: '%s'\n", ph_error_text()), 1;
    return 0;
}
END
phloem="-I$PH_SOURCE_DIR/include -L$PH_BINARY_DIR -lphloem"
for both in "$flags $phloem" "$phloem $flags" "$static_flags $phloem"; do
    compile "$work/both.c" "$work/both" "-Wl,--no-as-needed $both"
    LD_LIBRARY_PATH=$library_folder:$PH_BINARY_DIR "$work/both" || fail "with $both: an error's text was lost"
done
echo 'test_install_hub: the hub is a library of its own'
