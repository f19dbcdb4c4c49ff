#!/bin/sh
# Trainings and served models whose products are of bytes: the same bits for any number of threads and on every instruction set, a model
# that has learnt as much, and tables that do not fit.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
echo '{"sites": [{"weight": "*", "forward": "int8", "backward": "int8"}]}' >all.json
echo '{"sites": [{"weight": "top.0.weight", "forward": "int8"}]}' >one.json
echo '{"sites": [{"weight": "output.weight", "forward": "int8"}]}' >narrow.json
echo '{"sites": [{"weight": "nobody", "forward": "int8"}]}' >unknown.json

succeeds train job.yaml --out plain --quiet
succeeds train job.yaml --out bytes --quiet --set train.recipes=all.json
succeeds train job.yaml --out thread --quiet --set train.recipes=all.json --set threads=1
succeeds train job.yaml --out one --quiet --set train.recipes=one.json
cmp -s plain/model.safetensors bytes/model.safetensors && complain 'recipes change nothing'
cmp -s one/model.safetensors bytes/model.safetensors && complain 'one recipe is as many'
[ "$(value bytes/summary.json checkpoint_sha256)" = "$(value thread/summary.json checkpoint_sha256)" ] ||
    complain 'bits depend on the number of threads'
awk -v plain="$(value plain/summary.json ne)" -v bytes="$(value bytes/summary.json ne)" \
    'BEGIN { exit !(bytes < plain + .02) }' || complain 'the model has learnt less'

# Beside a served model: other scores, hardly.
phloem predict plain data/test.tsv --out exact.csv && cp all.json plain/recipes.json
succeeds predict plain data/test.tsv --out bytes.csv
cmp -s exact.csv bytes.csv && complain 'the table beside the model changes nothing'

fails 2 "recipe of 'nobody': the program has no product with it" train job.yaml --out x --set train.recipes=unknown.json
fails 2 "recipe int8 of 'output.weight': its forward product has too few outputs" train job.yaml --out x --set train.recipes=narrow.json
fails 2 "recipe int8 of 'bottom.0.weight': it needs the precision fp32" train job.yaml --out x --set train.recipes=all.json \
    --set train.precision=bf16
fails 4 'missing.json' train job.yaml --out x --set train.recipes=missing.json

# A training that looks at its products learns the same, and leaves what predicts their errors.
succeeds train job.yaml --out probed --set train.probe_steps=2
contains stdout 'probe: looks at products took '
[ "$(value plain/summary.json checkpoint_sha256)" = "$(value probed/summary.json checkpoint_sha256)" ] ||
    complain 'a probe changes the training'
[ -s probed/probe.safetensors ] || complain 'the probe leaves no file'
succeeds precision probed --data data/valid.tsv --only int8 --threshold 1 --speed-up 0 --ne-loss 100
contains stdout '| top.0.weight         | backward '
grep -q '^int8 errors  [0-9]* of [0-9]* predicted within 15 %' stdout || complain 'no error is predicted'
[ -s probed/precision.html ] || complain 'there is no page'
[ "$(value probed/recipes.json backward | grep -c int8)" -gt 0 ] || complain 'no backward product is of bytes'
succeeds train job.yaml --out again --quiet --set train.recipes=probed/recipes.json
cmp -s plain/model.safetensors again/model.safetensors && complain 'chosen recipes change nothing'
echo 'not a probe' >probed/probe.safetensors
fails 4 'probe.safetensors' precision probed --data data/valid.tsv

# Recipes of a training that is resumed are those that it began with.
echo '{"sites": [{"weight": "*", "forward": "bf16", "backward": "bf16"}]}' >bf16.json
succeeds train job.yaml --out half --quiet --set train.recipes=bf16.json
succeeds train job.yaml --out parts --quiet --set train.recipes=bf16.json --set train.max_steps=3
fails 4 'recipes' train job.yaml --out parts --quiet --set train.recipes=all.json --resume
succeeds train job.yaml --out parts --quiet --set train.recipes=bf16.json --resume
[ "$(value half/summary.json checkpoint_sha256)" = "$(value parts/summary.json checkpoint_sha256)" ] ||
    complain 'a resumed training has other recipes'
cmp -s plain/model.safetensors half/model.safetensors && complain 'recipes of bf16 change nothing'

# Products are measured, and a table is written: by error, by speed, and by what the model loses.
rm plain/recipes.json
succeeds eval plain data/valid.tsv && cp stdout exact.json
succeeds precision plain --data data/valid.tsv --only int8 --threshold 1 --speed-up 0 --ne-loss 100
contains stdout '| top.0.weight '
[ "$(value plain/recipes.json forward | grep -c int8)" -eq 2 ] || complain 'no product is of bytes'
grep -q '^ne  *fp32 [0-9.]* recipes [0-9.]* difference [-+][0-9.]* %$' stdout || complain 'the loss is not printed'
recipes_ne=$(sed -n 's/^ne .* recipes \([0-9.]*\) .*/\1/p' stdout)
succeeds eval plain data/valid.tsv
awk -v a="$recipes_ne" -v b="$(value stdout ne)" 'BEGIN { exit !(a - b < 1e-6 && b - a < 1e-6) }' || complain 'eval does not use the table'
succeeds precision plain --data data/valid.tsv --threshold 0
[ "$(value plain/recipes.json forward | sort -u)" = fp32 ] || complain 'threshold 0 leaves products of bytes'
succeeds eval plain data/valid.tsv
cmp -s stdout exact.json || complain 'threshold 0 has not the bits of fp32'
succeeds precision plain --data data/valid.tsv --only int8 --threshold 1 --speed-up 0 --ne-loss 0 --out other.json
contains stdout 'recipes: other.json'
awk '$1 == "ne" { exit !($7 <= 0) }' stdout || complain 'the model loses more than was allowed'
fails 2 "--threshold must be a number from 0 to 1e+06, not 'much'" precision plain --data data/valid.tsv --threshold much
fails 2 "--only 'int4' must be bf16 or int8" precision plain --data data/valid.tsv --only int4
fails 2 "--rows must be a number from 1 to 65536, not '0'" precision plain --data data/valid.tsv --rows 0
fails 3 'missing.tsv' precision plain --data missing.tsv
