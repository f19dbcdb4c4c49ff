#!/bin/sh
# Installs and uses the packages on the bare machine, as root, in a copy of the sources; ends in a line of what was seen.
# usage: bare_packages.sh deb FOLDER      those of ./run deb; removes them in the end and looks for what they left
#        bare_packages.sh wheel FOLDER    the wheel, where Debian's python3-venv alone is installed
set -eu

sources=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive

fail() {
    echo "bare_packages: $1" >&2
    exit 1
}

install() {
    apt-get -q install --yes --no-install-recommends "$@"
}

# train PROGRAM...: a small DLRM on synthetic rows.
train() {
    rm -rf "$work/data" "$work/model"
    "$1" synth "$work/job.yaml" --out "$work/data"
    shift
    "$@" train "$work/job.yaml" --out "$work/model" --quiet
}

cat >"$work/job.yaml" <<END_OF_CONFIG
data: {train: $work/data/train.tsv, test: $work/data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 4, bottom_units: [8], top_units: [8]}
train: {epochs: 1, batch_size: 200}
synth: {train_rows: 4000, valid_rows: 0, test_rows: 1000, table_rows: 100, format: criteo}
END_OF_CONFIG

# serve PROGRAM: the small DLRM.
serve() {
    install curl
    sh "$sources/tests/system/serve_once.sh" "$1" "$work/model"
}

check_deb() {
    install "$1"/*.deb
    phloem models | grep dlrm
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        train phloem mpirun.openmpi --oversubscribe -n 2 phloem
    grep '"world_size": 2' "$work/model/summary.json" || fail 'two ranks over Open MPI were not one job'
    train phloem mpirun.mpich -n 2 phloem
    grep '"world_size": 2' "$work/model/summary.json" || fail 'two ranks over MPICH were not one job'
    serve phloem

    install gcc libc6-dev cmake ninja-build pkg-config
    cmake -G Ninja -S examples/score -B "$work/score"
    cmake --build "$work/score"
    # shellcheck disable=SC2046 # a list of flags
    gcc examples/hub/hub_worker.c $(pkg-config --cflags --libs phloem-hub) -pthread -o "$work/hub_worker"
    "$work/hub_worker"
    cut -f 2- "$work/data/test.tsv" | "$work/score/score" "$work/model" | head -n 3

    # shellcheck disable=SC2046 # a list of packages
    apt-get -q purge --yes $(dpkg-query -W -f '${Package} ' 'phloem*' 'libphloem*')
    left=$(find / -xdev \( -path /proc -o -path /sys -o -path /root -o -path /home -o -path "$1" -o -path "$work" \) -prune -o -iname '*phloem*' -print)
    [ -z "$left" ] || fail "the packages left $left"
    ! ldconfig -p | grep phloem || fail 'the loader still knows the libraries'
    echo "bare_packages: $(find "$1" -name '*.deb' | wc -l) packages installed, used and purged"
}

# example: the first block of Python in docs/PYTHON.md.
example() {
    awk '/^```/ {if (is_in) exit} is_in {print} /^```python/ {is_in = 1}' docs/PYTHON.md
}

megabytes() {
    du -sLm "$@" | tail -n 1 | cut -f 1
}

check_wheel() {
    install python3-venv
    ! ldconfig -p | grep -E 'lib(yaml|jansson|hwloc|dnnl|gomp|microhttpd|nghttp2)' || fail 'the machine has libraries that the wheel might use'
    python3 -m venv "$work/venv"
    example >"$work/example.py"
    started=$(date +%s)
    "$work/venv/bin/pip" install --no-index --find-links "$1" "$1"/phloem-*.whl pandas # pandas: the example's own
    installed=$(date +%s)
    cd "$work"
    venv/bin/phloem models | grep dlrm
    venv/bin/python -c 'import phloem; print("phloem", phloem.__version__)'
    train venv/bin/phloem venv/bin/phloem
    serve venv/bin/phloem
    began=$(date +%s.%N)
    venv/bin/python example.py
    ended=$(date +%s.%N)
    [ -s run/report.html ] || fail 'the example left no report'
    packages=venv/lib/python3*/site-packages
    # shellcheck disable=SC2086 # a pattern
    echo "bare_packages: wheel of $(megabytes "$1"/phloem-*.whl) MB, installed with what it depends on in $((installed - started)) s: \
phloem $(megabytes $packages/phloem) MB, NumPy and pyarrow $(megabytes -c $packages/numpy* $packages/pyarrow*) MB"
    echo "bare_packages: the first example of docs/PYTHON.md took $(echo "$began $ended" | awk '{printf "%.1f", $2 - $1}') s"
    echo "bare_packages: the wheel runs with $(getconf GNU_LIBC_VERSION)"
}

apt-get -q update
"check_$1" "$2"
