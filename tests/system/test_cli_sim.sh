#!/bin/sh
# phloem sim: a second run has the figures of the first, and how it ends where it cannot begin.
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
