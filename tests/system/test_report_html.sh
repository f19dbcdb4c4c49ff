#!/bin/sh
# report.html of trainings of all sorts: sound by themselves, and as Chromium shows them: one of them, or with PH_TEST_ALL_PAGES
# (long/test_report_pages.sh) all, and one light and dark, whose screenshots stay in the build folder. Without Chromium the test is
# skipped once the pages have been looked at as text.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"
# shellcheck source=tests/system/browser_support.sh
. "$PH_SOURCE_DIR/tests/system/browser_support.sh"

fixtures=$PH_SOURCE_DIR/tests/fixtures/report_html
kept=$PH_BINARY_DIR/report_html${PHLOEM_ISA:+/$PHLOEM_ISA}

# ---- pages -----------------------------------------------------------------------------------------------------
make_small_job
succeeds train job.yaml --out whole --quiet --set train.epochs=3
succeeds train job.yaml --out bare --quiet --set train.epochs=1 --set data.valid= --set data.test=
succeeds train job.yaml --out few --quiet --set train.max_steps=1 --set train.report_seconds=1000

begins train job.yaml --out resumed --quiet --set train.epochs=200 --set train.patience=0
waits_for grep -q '"step":40,' resumed/metrics.jsonl
kill -s TERM "$process"
ends 143
cp resumed/report.html stopped.html
contains stopped.html 'Not finished: stopped at step'
steps=$(sed -n 's/.*stopped at step \([0-9]*\),.*/\1/p' stopped.html)
succeeds train job.yaml --out resumed --quiet --resume --set train.epochs=200 --set train.patience=0 \
    --set train.max_steps=$((steps + 40))
contains resumed/report.html "; resumed at step $steps"
contains resumed/report.html "Finished after $((steps + 40)) steps"

# Two labels; names that would be markup; more tables and features than are shown.
python3 - <<'END'
import random
random.seed(1)
fields = ["{name: click, kind: label}", "{name: buy, kind: label}"]
fields += [f"{{name: 'f<{i}>&', kind: id, encoding: raw, rows: 9}}" for i in range(1000)]
rows = [[random.randint(0, 1), random.randint(0, 1)] + [random.randint(0, 8) for _ in range(1000)] for _ in range(60)]
names = ["click", "buy"] + [f"f<{i}>&" for i in range(1000)]
with open("wide.tsv", "w") as file:
    for row in [names] + rows:
        print(*row, sep="\t", file=file)
with open("wide.yaml", "w") as file:
    print("seed: 1", "threads: 1", f"data: {{train: wide.tsv, valid: wide.tsv, format: tsv, fields: [{', '.join(fields)}]}}",
          "model: {kind: fm, embedding_dim: 2}", "train: {epochs: 2, batch_size: 20, report_seconds: 0}", sep="\n", file=file)
END
succeeds train wide.yaml --out wide --quiet
contains wide/report.html 'Metrics are those of the first label.'
contains wide/report.html '"id":"table-table","num_rows":2000,'
contains wide/report.html '"id":"id-table","num_rows":1000,'

# A graph of more nodes than are drawn.
succeeds train job.yaml --out deep --quiet --set train.max_steps=1 --set model.kind=dhen --set model.dhen.layers=20
contains deep/report.html 'nodes, too many to draw: phloem inspect model DIR --dot'
if grep -qF '"id":"model-graph"' deep/report.html; then complain 'a graph of more than 400 nodes is drawn'; fi

# Rare positives: probabilities by powers of ten, where there is no 0.
succeeds synth job.yaml --out rare-data --set synth.base_rate=0.02
succeeds train job.yaml --out rare --quiet --set optimizer.learning_rate=0.02 --set data.train=rare-data/train.tsv \
    --set data.valid=rare-data/valid.tsv --set data.test=rare-data/test.tsv
# A training that diverges leaves a page, which says why.
fails 3 'not finite' train job.yaml --out diverged --quiet --set optimizer.kind=sgd --set optimizer.learning_rate=1000000
contains diverged/report.html 'Not finished: stopped at step'
contains diverged/report.html ' Reason: '

# A column's name of 80 letters.
letters=$(printf 'a_name_of_80_letters_%.0s' 1 2 3 4 | cut -c 1-80)
awk -v name="$letters" 'BEGIN {print "label," name; for (i = 0; i < 400; i++) print i % 2 "," i % 7}' >letters.csv
cat >letters.yaml <<END
data: {train: letters.csv, valid: letters.csv, test: letters.csv, fields: [{name: label, kind: label}, {name: "*", kind: id}]}
model: {kind: fm, embedding_dim: 4}
train: {epochs: 2, batch_size: 50, report_seconds: 0}
END
succeeds train letters.yaml --out letters --quiet
contains letters/report.html "$letters"

succeeds train job.yaml --out off --quiet --set train.report=false --set train.tensorboard=false
[ ! -e off/report.html ] || complain 'train.report=false leaves a report'
[ -z "$(find off -name 'events.out.*')" ] || complain 'train.tensorboard=false leaves events'
[ "$(find whole -name 'events.out.tfevents.*' | wc -l)" -eq 1 ] || complain 'a training leaves other than one file of events'

# A page that cannot be written is an error at the end, and made once it can be; the training is not done again.
begins train job.yaml --out blocked --quiet --set train.epochs=100 --set train.patience=0
waits_for [ -e blocked/metrics.jsonl ]
mkdir blocked/report.html
ends 2
contains stderr blocked/report.html
[ ! -e blocked/summary.json ] || complain 'a training without its page counts as finished'
rmdir blocked/report.html
succeeds train job.yaml --out blocked --quiet --resume --set train.epochs=100 --set train.patience=0
[ -s blocked/report.html ] || complain 'resuming has not made the page'
contains blocked/report.html 'No step was measured'

check sound diverged/report.html letters/report.html whole/report.html bare/report.html few/report.html stopped.html resumed/report.html wide/report.html \
    deep/report.html rare/report.html
must_fail sound "$fixtures/not_nested.html"
contains stdout '</section> closes p'
must_fail sound "$fixtures/not_alone.html"
contains stdout 'fetches https://example.org/style.css'
contains stdout 'the id a is there twice'
check series whole/report.html loss-curve 20
must_fail series whole/report.html loss-curve 100000

# ---- a browser -------------------------------------------------------------------------------------------------
needs_browser

# acted PAGE: acted.html, the page with a script behind it that sorts, drags and rests the pointer.
acted() {
    sed '/<\/body>/,$d' "$1" >acted.html
    { echo '<script>' && cat "$PH_SOURCE_DIR/tests/system/page_actions.js" && echo '</script></body></html>'; } >>acted.html
}

# show PAGE WIDTH CURVE POINTS: the browser draws the curve, acts as a reader would, and complains of nothing; leaves ./shown.html.
show() {
    acted "$1"
    browse --window-size="$2,2000" --dump-dom "file://$work/acted.html"
    is_quiet || complain "$1 at $2 pixels: $(grep ':CONSOLE' stderr)"
    cp stdout shown.html
    contains shown.html '<title>acted</title>'
    [ "$4" -eq 0 ] || check curve shown.html "$3" "$4"
}
# plot_of ID: leaves the drawn plot in ./plot.
plot_of() { sed 's/<svg /\n&/g; s/<\/svg>/&\n/g' shown.html | grep "^<svg id=\"$1\"" >plot; }
show whole/report.html 1920 loss-curve 20
check curve shown.html auc-curve 20
check curve shown.html valid-auc-curve 3
contains shown.html 'id="model-graph"'
contains shown.html '>model kept: step '
browse --dump-dom "file://$fixtures/script_error.html"
if is_quiet; then complain 'an error in a script is not seen'; fi
[ -n "${PH_TEST_ALL_PAGES:-}" ] || exit 0
show whole/report.html 390 loss-curve 20
plot_of reliability
contains plot 'id="calibration-points"'
contains plot '>0</text>'
show bare/report.html 1920 loss-curve 10
show few/report.html 1920 loss-curve 0
show stopped.html 1920 loss-curve 30
show resumed/report.html 1920 loss-curve 40
show wide/report.html 390 loss-curve 3
contains shown.html 'The first 1000 of 2000 rows.'
show deep/report.html 1920 loss-curve 0
show rare/report.html 1920 loss-curve 20
plot_of reliability
contains plot 'id="calibration-points"'
if grep -qF '>0</text>' plot; then complain 'the calibration of rare positives is not logarithmic'; fi

show letters/report.html 390 loss-curve 8
contains shown.html "$letters"
show diverged/report.html 1920 loss-curve 0
contains shown.html ' Reason: '

# A graph of nearly as many nodes as are drawn.
succeeds train job.yaml --out large --quiet --set train.max_steps=1 --set model.kind=dhen --set model.dhen.layers=12
show large/report.html 1920 loss-curve 0
nodes=$(grep -o 'id="model-graph"[^>]*data-nodes="[0-9]*"' shown.html | sed 's/.*"\([0-9]*\)"$/\1/')
[ "${nodes:-0}" -ge 350 ] || complain "the graph of 12 layers has ${nodes:-no} nodes"

# A comparison, one of whose configs has a long name.
cp letters.yaml "$letters.yaml"
succeeds compare letters.yaml "$letters.yaml" --out compared --seeds 2 --set model.embedding_dim=2
show compared/compare.html 390 none 0
contains shown.html 'id="auc-plot"'
show compared/compare.html 1920 none 0

# shoot PAGE NAME: screenshots in both schemes, wide and narrow.
mkdir -p "$kept"
shoot() {
    for scheme in light dark; do
        blink=$([ "$scheme" = dark ] && echo 0 || echo 1)
        for width in 1920 390; do
            browse --window-size="$width,5200" --blink-settings=preferredColorScheme="$blink" \
                --screenshot="$kept/$2-$scheme-$width.png" "file://$work/$1"
        done
    done
}
shoot whole/report.html run
shoot diverged/report.html diverged
shoot letters/report.html letters
shoot large/report.html graph
shoot compared/compare.html comparison
for width in 1920 390; do
    check corner "$kept/run-light-$width.png" 200 -
    check corner "$kept/run-dark-$width.png" 60
done
echo "screenshots: $kept"
