#!/bin/sh
# phloem sim: a second run has the figures and traces of the first, and how it ends where it cannot begin.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

topologies=$PH_SOURCE_DIR/configs/topology
export XDG_CACHE_HOME="$work/cache"

# simulated FOLDER: its summary without what is of this process: memory and the profile's name.
simulated() {
    sed '/^ *"\(peak_[a-z_]*bytes\|baseline_bytes\|limit_bytes\|rank_bytes\|profile\)":/d' "$1/summary.json"
}

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
contains stdout 'traces: second/trace.json and second/chakra'
simulated first >first_summary
simulated second | cmp -s - first_summary || complain 'a second simulation has another summary'
cmp -s first/metrics.jsonl second/metrics.jsonl || complain 'a second simulation has other metrics'
[ "$(wc -l <first/metrics.jsonl)" -eq 3 ] || complain 'a simulation has not a line of metrics a step'
contains first/summary.json '"profile": "times.json"'
contains first/summary.json '"profile_label": null'

# traces
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

# The profile of this machine is kept for the next run, one for each instruction set and number of threads.
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 4 --out third --set train.max_steps=3
contains stdout "profile: $work/cache/phloem/profile-"
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 4 --out fourth --set train.max_steps=3
contains stdout ' 0 operators measured'
simulated third >third_summary
simulated fourth | cmp -s - third_summary || complain 'the kept profile gives other figures'
PHLOEM_ISA=ref succeeds sim job.yaml --topology "$topologies/two_hosts.yaml" --out fifth --set train.max_steps=2 \
    --set threads=1
contains stdout '-ref-1t.json'
[ "$(find cache/phloem -name 'profile-*.json' | wc -l)" -eq 2 ] || complain 'two settings share a profile'

# Another machine's profile is read, and never measured into.
sed 's/"threads": [0-9]*/"threads": 999/; s/"isa": "[^"]*"/"isa": "neon"/; s/"machine": "[^"]*"/"machine": "elsewhere"/' \
    times.json >other.json
cp other.json kept.json
fails 2 "other.json: the profile is of instruction set 'neon'" \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out sixth --profile other.json
succeeds sim job.yaml --topology "$topologies/star8.yaml" --world 4 --out sixth --profile other.json --no-measure \
    --set train.max_steps=3
simulated sixth | cmp -s - first_summary || complain 'a profile that was copied gives other figures'
fails 2 'other.json: the profile has no time for ' sim job.yaml --topology "$topologies/star8.yaml" --world 4 \
    --out seventh --profile other.json --no-measure --set train.max_steps=2 --set model.embedding_dim=8
cmp -s other.json kept.json || complain "another machine's profile was written"
sed 's/"threads": [0-9]*/"threads": 999/' times.json >threads.json
fails 2 "threads.json: the profile is of threads '999'" \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out eighth --profile threads.json

# A profile by published figures: an operator takes as long as its operations or its bytes.
rates() {
    printf '{"version": 1, "isa": "sm_90", "label": "published: a data sheet",
        "rates": {"flops_per_s": %s, "bytes_per_s": %s, "overhead_us": 5}}\n' "$1" "$2"
}
rates 3e13 2e12 >gpu.json
rates 3e9 2e8 >slow_gpu.json
for profile in gpu slow_gpu; do
    succeeds sim job.yaml --topology "$topologies/two_hosts.yaml" --out "$profile" --profile "$profile.json" \
        --set train.max_steps=2
    contains stdout "profile: $profile.json (published: a data sheet)"
    contains "$profile/summary.json" '"profile_label": "published: a data sheet"'
done
is_less=$(echo "$(value gpu/summary.json train_seconds) < $(value slow_gpu/summary.json train_seconds)" | bc -l)
[ "$is_less" -eq 1 ] || complain 'rates of a slower machine give a faster training'
sed 's/bytes_per_s/byte_per_s/' gpu.json >typo.json
fails 2 "typo.json: rates: unknown member 'byte_per_s'" \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out eighth --profile typo.json

# Ranks that do not fit into their host end with the sum.
printf 'version: 1\nkind: star\nhosts: 1\nranks_per_host: 2\nmachine: {memory_gb: 0.1}\n' >small.yaml
fails 5 'the 2 ranks on host0 need ' \
    sim job.yaml --topology small.yaml --out eighth --profile times.json --set parallel.plan=none
contains stderr ' together (parameters, optimizer slots, batches)'

fails 2 'sim requires --topology FILE and --out DIR' sim job.yaml --out eighth
fails 2 'room for 2 ranks, not 3' sim job.yaml --topology "$topologies/two_hosts.yaml" --world 3 --out eighth
fails 2 "parallel.sync: 'hub' cannot be simulated" \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out eighth --set parallel.sync=hub
fails 2 "--world must be from 1 to 65536, not '0'" \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --world 0 --out eighth
printf 'version: 1\nkind: list\nhosts: 3\nlinks: [{from: h0, to: h1, gbits_per_s: 1}]\n' >cut.yaml
fails 2 'cut.yaml: no links lead from host 2 to host 0' sim job.yaml --topology cut.yaml --out eighth
succeeds plan job.yaml --world 4 --out plan.yaml
fails 2 'plan.yaml:3: the plan is for a world_size of 4, but this job has 2' \
    sim job.yaml --topology "$topologies/two_hosts.yaml" --out eighth --profile times.json --set parallel.plan=plan.yaml
