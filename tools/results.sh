#!/bin/sh
# Writes docs/RESULTS.md: the configs of configs/frappe/ over seeds beside the published figures that they name, and Wukong
# against DCN-V2 over more seeds. Trains what runs/results does not hold yet, and goes on where it was stopped. What stands in
# the page from a line "<!-- kept" on is written by hand, and stays. Called at the root of the tree, after the build.
#
# usage: results.sh [PAGE [ARGUMENTS OF PHLOEM COMPARE...]]     PAGE: docs/RESULTS.md unless it is given
set -eu

page=${1:-docs/RESULTS.md}
case $page in
-*)
    echo "results.sh: '$page' is no page; usage: results.sh [PAGE [ARGUMENTS OF PHLOEM COMPARE...]]" >&2
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift
out=runs/results
export PHLOEM_DATA="${PHLOEM_DATA:-../shared/data}"

build/release/phloem compare configs/frappe/*.yaml --seeds 3 --base configs/frappe/dnn.yaml --out "$out" "$@"
cp "$out/compare.md" "$out/all.md"
build/release/phloem compare configs/frappe/dcn_v2.yaml configs/frappe/wukong.yaml --seeds 5 --out "$out" "$@"
{
    cat <<'TEXT'
# Results

This page shows each config of `configs/frappe/` over seeds, beside published figures. The tool trains
the configs by `phloem compare` ([COMPARING.md](COMPARING.md)) and writes the page:

    tools/results.sh

- **Data**: Frappe (BARS test, resampled train negatives). Validation and test are those of BARS Frappe_x1;
  the negatives of train were drawn anew by the same rule.
- **The model** is chosen on the validation file alone.
- *measured*: with the backend named below. [PERFORMANCE.md](PERFORMANCE.md) is about speed.
- *published*: what the named source says of the original split. *bar*: what this project set itself.
- DHEN and Wukong go without layer norm here: [MODELS.md](MODELS.md#on-frappe) says why.
- The last section, [the papers' headlines](#the-papers-headlines-beside-ours), is written by hand; the tool
  keeps it.

TEXT
    sed 1,2d "$out/all.md"
    cat <<'TEXT'

## Wukong at no more FLOPs than DCN-V2

Both models over more seeds; differences are taken seed by seed.

TEXT
    sed '1,2d; /^## Beside published/,/^## Cost/ {/^## Cost/!d}; s/^##/###/' "$out/compare.md"
    [ ! -e "$page" ] || awk '/^<!-- kept / {is_kept = 1; print ""} is_kept' "$page"
} >"$page.tmp"
mv -- "$page.tmp" "$page"
echo "written: $page"
