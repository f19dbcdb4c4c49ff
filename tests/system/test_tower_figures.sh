#!/bin/sh
# tools/tower_figures.py on few rows and steps: it looks at each seed's towers, and a flat model that has learnt nothing misses
# its bar.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

if ! command -v python3 >/dev/null; then
    echo "$name: skipped: python3 is not there"
    exit 77
fi

mkdir -p tools build/release configs/synthetic
cp "$PH_SOURCE_DIR/tools/tower_figures.py" "$PH_SOURCE_DIR/tools/comparisons.py" tools
cp "$PH_SOURCE_DIR/configs/synthetic/towers.yaml" configs/synthetic
ln -s "$PH_BINARY_DIR/phloem" build/release/phloem

status=0
python3 tools/tower_figures.py --parts groups --rows 1000 --threads 1 --set train.max_steps=1 >stdout 2>stderr || status=$?
[ "$status" -eq 1 ] || complain "tower_figures.py ended with $status; wanted 1: one step teaches nothing"
[ ! -s stderr ] || complain 'tower_figures.py has printed to stderr'
for kind in coherent diverse; do
    [ "$(grep -c "^| [1-5] | $kind | 0\.[0-9]* | 0\.[0-9]* | -*[01]\.[0-9]* |\$" stdout)" -eq 5 ] ||
        complain "the table has not a line of $kind towers for each of five seeds"
done
contains stdout 'bar >= 0.9: MISSED'

status=0
python3 tools/tower_figures.py --parts group >stdout 2>stderr || status=$?
[ "$status" -eq 2 ] || complain "an unknown part: ended with $status; wanted 2"
contains stderr "'group' is none of groups, planted, frappe"

# The index: 1 for the same division; (2 - 1.2) / (4.5 - 1.2) of pairs, worked out by hand.
python3 - <<'END' || complain 'the adjusted Rand index is wrong'
import sys

sys.path.insert(0, "tools")
from tower_figures import adversarial_towers, group_of, rand_index

assert rand_index([0, 0, 1, 1, 2], [2, 2, 0, 0, 1]) == 1
assert abs(rand_index([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]) - 0.8 / 3.3) < 1e-12
for tower in adversarial_towers():
    assert len(tower) == 6 and len({group_of(feature) for feature in tower}) == 4
END
