#!/bin/sh
# Writes docs/RESULTS.md: the configs of configs/frappe/ over seeds, beside the published figures that they name. Trains what
# runs/results does not hold yet, and goes on where it was stopped. Called at the root of the tree, after the build.
#
# usage: results.sh [PAGE [ARGUMENTS OF PHLOEM COMPARE...]]     PAGE: docs/RESULTS.md unless it is given
set -eu

page=${1:-docs/RESULTS.md}
[ $# -eq 0 ] || shift
out=runs/results
export PHLOEM_DATA="${PHLOEM_DATA:-../shared/data}"

build/release/phloem compare configs/frappe/*.yaml --seeds 3 --base configs/frappe/dnn.yaml --out "$out" "$@"
{
    cat <<'TEXT'
# Results

Written by `tools/results.sh`, which trains each config of `configs/frappe/` over seeds ([COMPARING.md](COMPARING.md)). Data: Frappe (BARS test,
resampled train negatives): validation and test are those of BARS Frappe_x1, the negatives of train were drawn anew by the
same rule. The model is chosen on the validation file alone. *measured*: with the backend named below; for speed see
[PERFORMANCE.md](PERFORMANCE.md). *published*: the BARS benchmark's table on the original split.

TEXT
    sed 1,2d "$out/compare.md"
} >"$page.tmp"
mv "$page.tmp" "$page"
echo "written: $page"
