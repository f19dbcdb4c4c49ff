#!/bin/sh
# Help, manual pages and completion, which are made from the tables that the program reads its arguments by: every help begins with an
# example, and the examples work.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

verbs='synth config models train inspect eval predict export towers plan prepare compare tune'
succeeds --help=words
for verb in $verbs hub topology; do
    grep -qx "$verb" stdout || complain "--help=words lacks $verb"
done

# ---- examples: one behind the other, each with what those before it have made ----
make_small_job
sed 's/kind: dlrm/kind: deepfm/' job.yaml >deepfm.yaml
sed 's/kind: dlrm/kind: fm/' job.yaml >dlrm.yaml
{ cat job.yaml && echo 'tune: {runs: 2, ranges: [{key: optimizer.learning_rate, min: 1e-3, max: 1e-2}]}'; } >config.yaml
cp data/test.tsv test.tsv
cp data/test.tsv rows.tsv
rm -rf data

# example_of VERB...: its first line of help; leaves the command in ./example.
example_of() {
    succeeds "$@" --help
    head -n 1 stdout >first
    grep -q "^example: phloem $* \|^example: phloem $*\$" first || complain "phloem $* --help does not begin with an example of it"
    sed 's/^example: phloem //' first >example
}

for verb in $verbs; do
    example_of "$verb"
    # shellcheck disable=SC2046 # words of a command
    phloem $(cat example)
    [ "$status" -eq 0 ] || complain "the example does not work: phloem $(cat example)"
done
[ -s runs/mine/summary.json ] && [ -s predictions.csv ] && [ -s model.onnx ] && [ -s runs/tuned/best.yaml ] &&
    [ -s runs/compared/compare.html ] && [ -s prepared/prepared.yaml ] || complain 'an example leaves nothing'

# Those of the hub, at an address that is free.
example_of hub
mkdir hub && cd hub # its log is not the stderr of the commands below
begins hub --address 127.0.0.1:0
waits_for grep -q 'ready at' stdout
address=$(sed -n 's/^ready at //p' stdout)
cd ..
hub=$process
for part in status bench; do
    example_of hub "$part"
    # shellcheck disable=SC2046 # words of a command
    phloem $(sed "s/127.0.0.1:4711/$address/; s/64M/16K/" example)
    [ "$status" -eq 0 ] || complain "the example does not work: phloem $(cat example)"
done
example_of hub destroy
# shellcheck disable=SC2046 # words of a command
phloem $(sed "s/127.0.0.1:4711/$address/" example)
contains stderr "service 'job' does not exist"
kill -s TERM "$hub"
process=$hub
ends 143

# ---- manual pages ----
for page in '' $verbs hub 'hub status' 'hub bench' 'hub destroy' topology 'topology probe' 'topology agent' 'topology order' \
    'topology show' 'sim run'; do
    # shellcheck disable=SC2086 # words
    succeeds $page --help=man
    contains stdout '.SH NAME'
    contains stdout '.SH EXAMPLE'
    cp stdout page.1
    if command -v groff >/dev/null; then
        groff -man -ww -Tutf8 page.1 >page.txt 2>warnings || complain "groff refuses the page of '$page'"
        [ ! -s warnings ] || complain "groff on the page of '$page': $(cat warnings)"
        contains page.txt "phloem $page"
    fi
done

# ---- completion ----
command -v bash >/dev/null || {
    echo "$name: skipped: no bash; completion was not tried"
    exit 77
}
# complete WORDS...: what bash would offer for the last word.
complete() {
    PATH="$PH_BINARY_DIR:$PATH" bash -c '
        . "$0" && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && compopt() { :; } && _phloem && printf "%s\n" "${COMPREPLY[@]}"' \
        "$PH_SOURCE_DIR/completions/phloem.bash" "$@" >stdout 2>stderr || complain "completing '$*' fails"
}
offers() { grep -qx -- "$1" stdout || complain "completion does not offer $1"; }
complete phloem tr
offers train
complete phloem train --re
offers --resume
complete phloem train config.yaml --set optimizer.be
offers optimizer.beta1=
complete phloem hub st
offers status
complete phloem topology pr
offers probe
complete phloem topology probe --sha
offers --share
complete phloem hub bench --wor
offers --workers
