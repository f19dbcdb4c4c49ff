#!/bin/sh
# Takes the operator of docs/ADDING_AN_OPERATOR.md out of the page, so that it can be compiled and run.
#
# usage: documented_operator.sh SOURCE_DIR OUT_DIR
# A block that begins with ```c PATH belongs to that file; blocks of one file follow each other. Lines for files that
# exist (ops.def, op.h) are put into a copy. Fails when a file has no block.
set -eu

source_dir=$1
out_dir=$2

block() {
    awk -v path="$1" '
        /^```/ { is_inside = !is_inside; is_wanted = is_inside && $2 == path; next }
        is_wanted { print; num_lines++ }
        END { exit num_lines > 0 ? 0 : 1 }' "$source_dir/docs/ADDING_AN_OPERATOR.md" || {
        echo "docs/ADDING_AN_OPERATOR.md: no block of $1" >&2
        exit 1
    }
}

mkdir -p "$out_dir/src/op" "$out_dir/include/phloem" "$out_dir/tests/gradient"
block src/op/op_leaky_relu.c >"$out_dir/src/op/op_leaky_relu.c"
block tests/gradient/test_leaky_relu.c >"$out_dir/tests/gradient/test_leaky_relu.c"
block src/op/ops.def >"$out_dir/line"
cat "$source_dir/src/op/ops.def" "$out_dir/line" >"$out_dir/src/op/ops.def"
block include/phloem/op.h >"$out_dir/line"
sed "/^ph_value ph_relu(/r $out_dir/line" "$source_dir/include/phloem/op.h" >"$out_dir/include/phloem/op.h"
rm "$out_dir/line"
