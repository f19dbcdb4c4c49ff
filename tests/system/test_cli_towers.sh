#!/bin/sh
# phloem towers: which towers it makes of a flat model, and how it ends where it cannot.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
succeeds train job.yaml --out run --quiet --set train.epochs=1

# ---- the file ----
succeeds towers run --towers 4 --out towers.yaml
contains stdout 'samples: 1000 of data/valid.tsv'
contains stdout 'mean |cos| within towers: 0.'
contains stdout 'features a tower: 6 to 7'
contains stdout 'towers: towers.yaml (4, coherent)'
contains towers.yaml '# kind: coherent'
contains towers.yaml 'version: 1'
grep -q '^  t0: \["C1", "C' towers.yaml || complain "towers.yaml: the first tower does not begin with the first feature"
for feature in $(seq 26); do
    [ "$(grep -o "\"C$feature\"" towers.yaml | wc -l)" -eq 1 ] || complain "towers.yaml: C$feature is not in one tower"
done
[ "$(grep -c '^  t[0-3]: ' towers.yaml)" -eq 4 ] || complain 'towers.yaml has not four towers'

# The same for any number of threads and batch size, and where the folder has moved.
mv run moved
for sets in 'threads=1' 'threads=2 train.batch_size=77'; do
    # shellcheck disable=SC2046,SC2086 # lists of words
    succeeds towers moved --towers 4 --out again.yaml $(printf ' --set %s' $sets)
    cmp -s towers.yaml again.yaml || complain "$sets: other towers of the same model"
done
succeeds towers moved --towers 4 --out -
cmp -s towers.yaml stdout || complain 'standard output gets another file'

# Diverse towers are less alike within than between; coherent ones more.
mean() { sed -n "s/^mean |cos| $1 towers: //p" stdout; }
is_less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
succeeds towers moved data/test.tsv --towers 4 --samples 500 --out towers.yaml
contains stdout 'samples: 500 of data/test.tsv'
is_less "$(mean between)" "$(mean within)" || complain 'coherent towers are less alike within than between'
succeeds towers moved --towers 4 --kind diverse --out diverse.yaml
contains stdout '(4, diverse)'
is_less "$(mean within)" "$(mean between)" || complain 'diverse towers are more alike within than between'

# ---- one tower, and one for each feature ----
succeeds towers moved --towers 1 --out one.yaml
contains stdout 'features a tower: 26'
[ -z "$(mean between)" ] || complain 'one tower has others'
succeeds towers moved --towers 26 --out each.yaml
contains each.yaml '  t25: ["C26"]'

# ---- what it refuses ----
cp towers.yaml kept.yaml
fails 2 "towers requires --towers N and --out FILE" towers moved --towers 4
fails 2 "towers requires --towers N and --out FILE" towers moved --out towers.yaml
fails 2 "--towers must be a whole number above 0, not '0'" towers moved --towers 0 --out towers.yaml
fails 2 "--towers '27' must be at most 26, the number of id features" towers moved --towers 27 --out towers.yaml
fails 2 "--samples must be a whole number above 0, not 'all'" towers moved --towers 2 --samples all --out towers.yaml
fails 2 "unknown --kind 'divers'; did you mean 'diverse'?" towers moved --towers 2 --kind divers --out towers.yaml
fails 2 'would overwrite the input' towers moved --towers 2 --out moved/config.yaml
fails 2 'would overwrite the input' towers moved --towers 2 --out data/valid.tsv
fails 3 'nowhere.tsv' towers moved nowhere.tsv --towers 2 --out towers.yaml
fails 4 'nowhere/config.yaml does not exist' towers nowhere --towers 2 --out towers.yaml
fails 5 'nowhere/towers.yaml' towers moved --towers 2 --out nowhere/towers.yaml
for sets in model.kind=lr 'model.kind=din model.din.targets=C1 model.din.histories=C2'; do
    rm -rf other
    # shellcheck disable=SC2046,SC2086 # lists of words
    succeeds train job.yaml --out other --quiet --set train.max_steps=1 $(printf ' --set %s' $sets)
    fails 2 'shows no embedding of each feature: train one that does' towers other --towers 2 --out towers.yaml
done
cmp -s towers.yaml kept.yaml || complain 'a run that failed has changed the file'

# Names that model.towers cannot have are refused.
awk 'BEGIN { print "label,a:b,c"; for (i = 0; i < 60; i++) printf "%d,x%d,y%d\n", i % 3 == 0, i % 5, i % 4 }' >named.csv
cat >named.yaml <<'END'
data:
  train: named.csv
  valid: named.csv
  format: csv
  encoding: vocabulary
  fields: [{name: label, kind: label}, {name: "a:b", kind: id}, {name: c, kind: id}]
model: {kind: dlrm, embedding_dim: 4, top_units: [4]}
train: {epochs: 1, batch_size: 20}
END
succeeds train named.yaml --out named --quiet
fails 2 "feature 'a:b' has ',', '|' or ':' in its name, which model.towers cannot name" towers named --towers 2 --out -
