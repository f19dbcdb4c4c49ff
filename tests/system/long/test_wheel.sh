#!/bin/sh
# The wheel: built, checked, installed in a virtual environment, where its program and that of this build train the same config.
# Where tools/bare_machine.sh can run, the wheel is tried there, too. Skips where Debian's sources or
# Python's packages cannot be fetched. Environment: PH_SOURCE_DIR, PH_BINARY_DIR.
set -eu

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

fail() {
    echo "test_wheel: $1" >&2
    exit 1
}

skip() {
    echo "test_wheel: skipped: $1" >&2
    exit 77
}

python3 -m pip download -q --no-deps -d "$work" scikit-build-core >"$work/log" 2>&1 || skip 'pip cannot fetch scikit-build-core'
rm -f "$work"/*.whl
status=0
sh "$PH_SOURCE_DIR/tools/static_libraries.sh" "$PH_SOURCE_DIR/build/static" || status=$?
[ "$status" -ne 77 ] || skip "Debian's sources cannot be fetched"
[ "$status" -eq 0 ] || fail 'the static libraries cannot be built'
"$PH_SOURCE_DIR/run" wheel >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail './run wheel failed'; }
wheel=$(ls "$PH_SOURCE_DIR"/build/wheel/phloem-*-py3-none-*.whl)
python3 "$PH_SOURCE_DIR/tools/check_wheel.py" "$wheel"

# The check refuses a wheel that is made of this build.
python3 - "$PH_BINARY_DIR" "$work/phloem-0-py3-none-manylinux_2_4_x86_64.whl" <<'ZIP'
import sys, zipfile
build, wheel = sys.argv[1:]
with zipfile.ZipFile(wheel, "w") as archive:
    archive.write(f"{build}/libphloem.so", "phloem/lib/libphloem.so")
    archive.write(f"{build}/phloem", "phloem-0.data/scripts/phloem")
ZIP
! python3 "$PH_SOURCE_DIR/tools/check_wheel.py" "$work"/*.whl >"$work/log" || fail 'the check accepts this build'
for found in 'libphloem.so needs .*libdnnl' 'phloem uses OpenMP' 'but it needs glibc'; do
    grep -q "$found" "$work/log" || { cat "$work/log" >&2; fail "the check does not say '$found'"; }
done
rm "$work"/*.whl

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --no-deps "$wheel"
cd "$work"
version=$("$work/venv/bin/python" -c 'import phloem; print(phloem.__version__)')
[ "phloem $version" = "$(venv/bin/phloem --version)" ] || fail "the package says version '$version'"

cat >job.yaml <<'CONFIG'
data: {train: data/train.tsv, test: data/test.tsv, format: criteo}
model: {kind: dlrm, embedding_dim: 8, bottom_units: [32, 8], top_units: [32, 16]}
train: {epochs: 2, batch_size: 256}
synth: {train_rows: 20000, valid_rows: 0, test_rows: 5000, table_rows: 100, format: criteo}
CONFIG
venv/bin/phloem synth job.yaml --out data >log
for threads in 1 2; do
    venv/bin/phloem train job.yaml --out "wheel$threads" --set threads=$threads --quiet >log
done
"$PH_BINARY_DIR/phloem" train job.yaml --out build --quiet >log
python3 - <<'CHECK' || fail 'the wheel trains something else'
import json
one, two, build = (json.load(open(f"{name}/summary.json")) for name in ("wheel1", "wheel2", "build"))
assert one["checkpoint_sha256"] == two["checkpoint_sha256"], "bits follow the threads"
assert abs(one["test"]["auc"] - build["test"]["auc"]) < .0005, (one["test"], build["test"])
print(f"test_wheel: AUC {one['test']['auc']:.5f}; by this build's program {build['test']['auc']:.5f}")
CHECK

sh "$PH_SOURCE_DIR/tests/system/serve_once.sh" venv/bin/phloem wheel1 || fail 'the wheel does not serve'

# The package beside PyTorch, where this machine has both that and what the package needs.
python3 -m venv --system-site-packages "$work/torch"
"$work/torch/bin/pip" install -q --no-deps "$wheel"
if "$work/torch/bin/python" -c 'import numpy, pyarrow' 2>log; then
    env -u PYTHONPATH -u PHLOEM_LIBRARY -u PHLOEM_PROGRAM "$work/torch/bin/python" - <<'SAME' || fail 'Python trains something else'
import json, phloem
run = phloem.train("job.yaml", out="python", progress=False)
bits = json.load(open("wheel1/summary.json"))["checkpoint_sha256"]
assert run.summary["checkpoint_sha256"] == bits
print(f"test_wheel: checkpoint_sha256 {bits[:16]}..., by the wheel's program and by Python")
SAME
    status=0
    env -u PYTHONPATH -u PHLOEM_LIBRARY -u PHLOEM_PROGRAM \
        "$work/torch/bin/python" "$PH_SOURCE_DIR/tests/oracle/python_torch_check.py" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail 'the wheel does not live with PyTorch'
fi

# What the wheel leaves out is one line.
refuses() {
    wanted=$1
    shift
    ! "$@" >log 2>&1 || fail "$* did not fail"
    grep -q "$wanted" log && [ "$(grep -c . log)" -eq 1 ] || { cat log >&2; fail "$*: wanted one line with '$wanted'"; }
}
refuses "team 'openmp' is not part of this build" venv/bin/phloem train job.yaml --out openmp --set team=openmp --quiet
refuses 'cannot find libphloem_openmpi.so' env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 \
    venv/bin/phloem train job.yaml --out ranks --quiet

cd "$PH_SOURCE_DIR"
status=0
sh tools/bare_machine.sh --root "$work/bare" --wheel "$wheel" || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail 'the wheel does not work on a bare machine'
