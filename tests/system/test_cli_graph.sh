#!/bin/sh
# Graphs from raw files: splits, classes, edges and words, through the verbs that meet them.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

awk 'BEGIN {
    print "node,name,topic,split"
    for (i = 0; i < 60; i++)
        printf "%d,\"page, %d\",%s,%s\n", i, i, i % 10 == 9 ? "" : (i % 2 ? "odd" : "even"), i < 30 ? "train" : i < 45 ? "valid" : "test"
}' >nodes.csv
awk 'BEGIN {
    print "id_1,id_2"
    for (i = 2; i < 59; i++)
        printf "%d,%d\n%d,%d\n%d,%d\n", i, i - 2, i - 2, i, i, i
}' >edges.csv
awk 'BEGIN {
    printf "{"
    for (i = 59; i >= 0; i--)
        printf "\"%d\": [%d, %d]%s", i, i % 2, 2 + i % 5, i ? ",\n" : "}\n"
}' >words.json
cat >job.yaml <<'END'
threads: 2
data:
  format: graph
  train: nodes.csv#train
  valid: nodes.csv#valid
  test: nodes.csv#test
  graph: {edges: edges.csv, words: words.json}
  fields:
    - {name: topic, kind: label, classes: [even, odd]}
    - {name: split, kind: split}
    - {name: words, kind: id, encoding: raw, rows: 8}
    - {name: neighbours, kind: id, encoding: raw, rows: 100}
    - {name: "*", kind: ignore}
model: {kind: dnn, embedding_dim: 4, hidden_units: [8]}
train: {epochs: 40, batch_size: 8, selection: logloss, patience: 0}
optimizer: {kind: adam, learning_rate: 0.05}
END

# a batch is all nodes, whatever batch_size says, and a split the nodes with labels
succeeds train job.yaml --out run --quiet
[ "$(value run/summary.json steps)" = 40 ] || complain 'an epoch is not one step'
[ "$(value run/summary.json samples | head -1)" = 2400 ] || complain 'a batch is not all nodes'
succeeds eval run
[ "$(value stdout samples)" = 13 ] || complain 'a test is not of the test nodes'
[ "$(value stdout accuracy)" = 1.0 ] || complain 'the classes were not learnt'
succeeds eval run nodes.csv
[ "$(value stdout samples)" = 54 ] || complain 'a path without a split does not have all labels'

# probabilities of the classes add up to 1
succeeds predict run nodes.csv --out scores.csv
awk -F, 'NR > 1 && ($1 + $2 < 0.99999 || $1 + $2 > 1.00001) { exit 1 }' scores.csv || complain 'not a softmax'
[ "$(wc -l <scores.csv)" -eq 61 ] || complain 'not a score for each node'

# splits may be drawn
sed 's/graph: {/graph: {train_share: 0.5, valid_share: 0.25, split_seed: 3, /' job.yaml >drawn.yaml
sed 's/,[a-z]*$//' nodes.csv >plain.csv
sed -i 's/nodes.csv/plain.csv/' drawn.yaml
succeeds train drawn.yaml --out drawn --quiet
succeeds eval drawn plain.csv#train
first=$(value stdout samples)
succeeds eval drawn plain.csv#valid
second=$(value stdout samples)
succeeds eval drawn plain.csv#test
[ $((first + second + $(value stdout samples))) -eq 54 ] || complain 'splits are not parts of the nodes'
[ "$first" -gt "$second" ] || complain 'shares are not heeded'

# an order of neighbours may be drawn: the same sums but for rounding, and other samples
sed 's/graph: {/graph: {shuffled: true, self_loops: true, /; s/kind: dnn/kind: gcn/; s/hidden_units/gcn: {neighbours: neighbours}, &/' \
    job.yaml >shuffled.yaml
succeeds train shuffled.yaml --out shuffled --quiet
succeeds train shuffled.yaml --out ascending --quiet --set data.graph.shuffled=false
for run in shuffled ascending; do
    succeeds eval $run
    value stdout logloss >$run.full
    succeeds eval $run --set model.gcn.sample_width=2 --set model.gcn.sample_strategy=bucket
    value stdout logloss >$run.sampled
done
paste shuffled.full ascending.full | awk '{ exit !($1 - $2 < 1e-3 && $2 - $1 < 1e-3) }' || complain 'an order changes sums'
cmp -s shuffled.sampled ascending.sampled && complain 'the order is not drawn'

# wrong files and settings
echo 3,x >>edges.csv
fails 3 "edges.csv:173: '3,x' is not an edge" train job.yaml --out other
sed -i '$s/.*/7,60/' edges.csv
fails 3 "edges.csv:173: node 60 is not one of the 60 of nodes.csv" train job.yaml --out other
sed -i '$d' edges.csv
sed 's/"59"/"60"/' words.json >more.json
fails 3 "more.json: node 60 is not one of the 60 of nodes.csv" train job.yaml --out other --set data.graph.words=more.json
sed '5s/^3/4/' nodes.csv >unequal.csv
fails 3 "unequal.csv:5: the first cell is '4', but the node's number is 3" eval run unequal.csv
sed '5s/odd/neither/' nodes.csv >unknown.csv
fails 3 "unknown.csv:5: field 'topic.even': 'neither' is not one of its classes" eval run unknown.csv
fails 2 'data.max_bad_rows must be 0 for format graph' train job.yaml --out other --set data.max_bad_rows=1
fails 2 'train.selection must be logloss for a label with classes' train job.yaml --out other --set train.selection=auc
fails 2 'cannot be prepared' prepare job.yaml --out prepared
sed '/kind: split/d' job.yaml >unsplit.yaml
fails 3 "but no field of data.fields has kind: split" train unsplit.yaml --out other
fails 2 'train.accumulation_steps must be 1 for format graph' train job.yaml --out other --set train.accumulation_steps=2

# a graph that is drawn, and a model that reads neighbours: all of them, or at most a few when it scores
cat >drawn.csbm.yaml <<'END'
csbm: {nodes: 200, classes: 4, features: 5, edges: 10}
END
succeeds synth drawn.csbm.yaml --graph --out csbm
contains stdout '200 nodes'
cat csbm/synth.yaml - >csbm.yaml <<'END'
model: {kind: gcn, hidden_units: [8], gcn: {neighbours: neighbours}}
train: {epochs: 60, selection: logloss, patience: 0}
optimizer: {kind: adam, learning_rate: 0.03}
END
succeeds train csbm.yaml --out graph --quiet
for width in 0 1000 2; do
    succeeds eval graph --set model.gcn.sample_width=$width
    value stdout logloss >loss.$width
done
cmp -s loss.0 loss.1000 || complain 'a width above all degrees samples'
cmp -s loss.0 loss.2 && complain 'a width of 2 does not sample'
[ "$(value stdout samples)" -gt 20 ] || complain 'the drawn graph has no test nodes'
