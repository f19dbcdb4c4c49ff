#!/bin/sh
# tools/results.sh on a handful of rows and two steps: every config of Frappe trains, the page holds both tables, what is
# finished is not repeated, and what was written by hand stays.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

mkdir -p tools docs build/release configs data/frappe
cp "$PH_SOURCE_DIR/tools/results.sh" tools
cp -R "$PH_SOURCE_DIR/configs/frappe" configs
sed -i 's/\.csv\.zst$/.csv/' configs/frappe/*.yaml
ln -s "$PH_BINARY_DIR/phloem" build/release/phloem
for split in train valid test; do
    awk 'BEGIN {
        print "label,user,item,daytime,weekday,isweekend,homework,cost,weather,country,city"
        for (i = 0; i < 200; i++)
            print i % 3 % 2 "," i % 7 "," 10 + i % 11 ",20,30," 40 + i % 2 ",50,60,70,80,90"
    }' >"data/frappe/$split.csv"
done
PHLOEM_DATA=$work/data
export PHLOEM_DATA

# results ARGUMENTS...: leaves status, and what was printed in ./stdout and ./stderr.
results() {
    status=0
    sh tools/results.sh "$@" >stdout 2>stderr || status=$?
}

runs() {
    find runs -name summary.json -exec stat -c '%n %y' {} + | sort
}

results page.md --seeds 1 --set train.max_steps=2
[ "$status" -eq 0 ] || complain "results.sh ended with $status"
contains stdout 'written: page.md'
for config in configs/frappe/*.yaml; do
    contains page.md "| $(basename "$config" .yaml) "
done
for text in 'from dnn' 'from dcn_v2' '## Beside published figures' '### Cost'; do
    contains page.md "$text"
done
runs >first
[ "$(wc -l <first)" -eq "$(find configs/frappe -name '*.yaml' | wc -l)" ] || complain "wanted one run a config: $(cat first)"

# What is finished stays, and the page comes out the same, with what was written by hand.
printf '\n<!-- kept as it is -->\n\n## By hand\n\n| a | row |\n' >>page.md
cp page.md first.md
results page.md --seeds 1 --set train.max_steps=2
[ "$status" -eq 0 ] || complain "results.sh ended with $status"
runs | cmp -s first - || complain 'a finished run was repeated'
cmp -s first.md page.md || complain 'the page is another one'

# Usage, and a comparison that fails, leave the page as it is.
results --seeds 1
[ "$status" -eq 2 ] || complain "an option for a page ended with $status; wanted 2"
contains stderr "'--seeds' is no page"
results page.md --seeds 0
[ "$status" -eq 2 ] || complain "seeds that are none ended with $status; wanted 2"
cmp -s first.md page.md || complain 'what failed has changed the page'
[ ! -e docs/RESULTS.md ] || complain 'a page was written that nobody asked for'
