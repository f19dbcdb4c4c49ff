#!/bin/sh
# phloem sim: a second run has the figures and traces of the first, and how it ends where it cannot begin.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

topologies=$PH_SOURCE_DIR/configs/topology
make_small_job
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 4 --out first --profile times.json \
    --set train.max_steps=3
contains stdout 'simulated 4 ranks: 3 steps'
contains first/summary.json '"label": "simulated"'
contains first/summary.json '"world_size": 4'
[ ! -e first/model.safetensors ] || complain 'a simulation has left a model'
head -n 1 stdout >first_line
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 4 --out second --profile times.json \
    --set train.max_steps=3
contains stdout ' 0 operators measured'
head -n 1 stdout | cmp -s - first_line || complain 'a second simulation has other figures'
figures='"sent_bytes"\|_seconds"' # the first run has measured operators, whose messages do not count
grep "$figures" first/summary.json >first_figures
grep "$figures" second/summary.json | cmp -s - first_figures || complain 'measuring has changed what is counted'

# traces
contains stdout 'traces: second/trace.json and second/chakra'
cmp -s first/trace.json second/trace.json || complain 'a second simulation has another timeline'
diff -r first/chakra second/chakra >stdout || complain 'a second simulation has other Chakra traces'
contains first/trace.json '"name":"embedding.embedding_bag"'
contains first/trace.json 'rank 3 of 4, host 3'
python3 "$PH_SOURCE_DIR/tests/system/chakra_check.py" first >stdout 2>stderr || complain 'the Chakra traces are wrong'
[ "$(wc -w <stdout)" -eq 3 ] && ! grep -qw 0 stdout || complain 'the Chakra traces lack work or messages'
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 4 --out untraced --profile times.json \
    --set train.max_steps=3 --trace-steps 0
[ ! -e untraced/trace.json ] && [ ! -e untraced/chakra ] || complain '--trace-steps 0 has left traces'
head -n 1 stdout | cmp -s - first_line || complain 'traces take simulated time'
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 1 --out alone --profile times.json \
    --set train.max_steps=1
contains stdout 'trace: alone/trace.json'
[ -e alone/trace.json ] && [ ! -e alone/chakra ] || complain 'a single rank has left other traces'
fails 2 "--trace-steps must be a number of steps, not 'all'" \
    sim job.yaml --topology "$topologies/star8.yaml" --out third --trace-steps all

for topology in "$topologies"/*.yaml; do
    succeeds sim job.yaml --topology "$topology" --world 2 --out "$(basename "$topology")" --profile times.json \
        --set train.max_steps=2
done

fails 2 'sim requires --topology FILE and --out DIR' sim job.yaml --out third
fails 2 'room for 2 ranks, not 3' sim job.yaml --topology "$topologies/two_hosts.yaml" --world 3 --out third
fails 2 "parallel.sync: 'hub' cannot be simulated" \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out third --set parallel.sync=hub
sed 's/"threads": [0-9]*/"threads": 999/' times.json >other.json
fails 2 'other.json: the profile is of threads 999' \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out third --profile other.json
