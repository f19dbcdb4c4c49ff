#!/bin/sh
# phloem plan: what it prints and writes, that it reads what it wrote, and how it ends where it cannot.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

make_small_job
succeeds plan job.yaml --world 4 --ranks-per-host 2 --out plan.yaml
cp stdout first
contains stdout 'embedding.C26'
contains stdout 'ms a step'
contains stdout 'A step of 250 samples'
contains stdout 'table bytes sent a step'
contains stdout 'all bytes sent a step by'
contains stdout 'Table bytes are ids, vectors and their gradients; all bytes are these and the dense gradients'
contains stdout 'to rank 3'
contains stdout '10 Gb/s Ethernet'
contains stdout 'A rank may spend '
! grep -q 'measured' stdout || complain 'a plan that nothing was measured for speaks of measurements'
contains plan.yaml 'world_size: 4'
contains plan.yaml '"embedding.C1": {kind: '
[ "$(grep -c 'kind:' plan.yaml)" -eq 26 ] || complain 'the plan has not a line a table'
succeeds plan job.yaml --world 4 --ranks-per-host 2 --plan plan.yaml --out again.yaml
! grep -q 'A rank may spend ' stdout || complain 'a plan that is read is held to what nobody has said'
cmp -s plan.yaml again.yaml || complain 'a plan that was read is written otherwise'
succeeds plan job.yaml --world 4 --ranks-per-host 2 --plan plan.yaml --out -
cmp -s plan.yaml stdout || complain 'a plan on standard output is written otherwise'

# The same command prints and writes the same, beside other load and with other threads, too.
sh "$PH_SOURCE_DIR/tests/support/busy_loop.sh" $$ &
busy=$!
trap 'kill "$busy"; rm -rf "$work"' EXIT
for threads in 1 2 3; do
    succeeds plan job.yaml --world 4 --ranks-per-host 2 --set "threads=$threads" --out again.yaml
    cmp -s first stdout || complain 'the same command has printed another plan'
    cmp -s plan.yaml again.yaml || complain 'the same command has made another plan'
done

# Measured figures are shown beside the nominal ones, and their plan can be kept.
succeeds plan job.yaml --world 4 --ranks-per-host 2 --measure --out measured.yaml
grep -q '| rows at random[^|]* | *[0-9.]* GB/s | *[0-9.]* GB/s |' stdout || complain 'no memory was measured'
grep -q '| two hosts[^|]* | *[0-9.]* GB/s | *– |' stdout || complain 'one process has measured links'
contains stdout 'A training with parallel.plan: auto uses nominal ones'
succeeds plan job.yaml --world 4 --ranks-per-host 2 --plan measured.yaml --out -
cmp -s measured.yaml stdout || complain 'a measured plan is read otherwise'
fails 2 'plan requires --world N' plan job.yaml --measure

# A topology gives ranks, hosts, rates and memory; those that the file leaves out are nominal.
topologies=$PH_SOURCE_DIR/configs/topology
succeeds plan job.yaml --topology "$topologies/star8.yaml" --out star.yaml
contains stdout "The plan uses the figures of $topologies/star8.yaml"
contains stdout 'A rank may spend 59.6 GiB'
grep -q '| rows at random[^|]* | *8.00 GB/s | *8.00 GB/s |' stdout || complain 'the file has another memory'
grep -q '| two hosts[^|]* | *1.25 GB/s | *3.12 GB/s |' stdout || complain 'the file has another network'
contains star.yaml 'world_size: 8'
contains star.yaml 'ranks_per_host: 1'
succeeds plan job.yaml --topology "$topologies/racks_128x8.yaml" --world 256
grep -q '| two hosts[^|]* | *1.25 GB/s | *6.05 GB/s |' stdout || complain 'the uplinks of two racks are others'
succeeds plan job.yaml --topology "$topologies/racks_128x8.yaml" --world 4
grep -q '| two hosts[^|]* | *1.25 GB/s | *– |' stdout || complain 'one host has a network'
succeeds plan job.yaml --set "parallel.topology=$topologies/star8.yaml" --out -
cmp -s star.yaml stdout || complain 'the topology of the config gives another plan'
fails 2 'star8.yaml: the cluster has room for 8 ranks, not 9' plan job.yaml --topology "$topologies/star8.yaml" --world 9
fails 2 'racks_128x8.yaml: the number of ranks, 12, must be a multiple of ranks_per_host, 8' \
    plan job.yaml --topology "$topologies/racks_128x8.yaml" --world 12
fails 2 'racks_128x8.yaml: parallel.ranks_per_host must be 8, not 4' \
    plan job.yaml --topology "$topologies/racks_128x8.yaml" --world 16 --ranks-per-host 4
fails 2 '--measure takes no topology' plan job.yaml --measure --topology "$topologies/star8.yaml"
cp "$topologies/star8.yaml" own.topology
fails 2 'would overwrite the input own.topology' plan job.yaml --topology own.topology --out own.topology
sed 's/hosts: 8/hosts: 5000/' "$topologies/star8.yaml" >many.yaml
fails 2 '--world 5000: must be at most 4096' plan job.yaml --topology many.yaml
printf 'version: 1\nkind: star\nhosts: 2\nmachine: {memory_gb: 1e-6}\n' >small.yaml
fails 5 'take 0 B of 1000 B' plan job.yaml --topology small.yaml
printf 'version: 1\nkind: star\nhosts: 2\nmachine: {host_bytes_per_ss: 1}\n' >wrong.yaml
fails 2 "wrong.yaml:4: unknown key 'machine.host_bytes_per_ss'; did you mean" plan job.yaml --topology wrong.yaml

# Dense gradients count as the chosen collective sends them.
succeeds plan job.yaml --world 4 --ranks-per-host 2
contains stdout 'dense gradients that ranks sum (exchange)'
succeeds plan job.yaml --world 4 --ranks-per-host 2 --set parallel.collective=ring
contains stdout 'dense gradients that ranks sum (ring)'
succeeds plan job.yaml --topology "$topologies/racks_128x8.yaml" --world 16 --set parallel.collective=auto
contains stdout 'dense gradients that ranks sum (auto: '

# What a person writes, and its mistakes.
cat >own.yaml <<'END'
version: 1
world_size: 2
tables:
  embedding.C1: {kind: row_wise}
default: {kind: table_wise}
END
succeeds plan job.yaml --world 16 --ranks-per-host 4
contains stdout 'to host 3'
succeeds plan job.yaml --world 2 --plan own.yaml
grep -q 'embedding.C1  *| row_wise  *| 0-1' stdout || complain 'the plan that was written by hand is not shown'
fails 2 'own.yaml:2: the plan is for a world_size of 2, but this job has 4' plan job.yaml --world 4 --plan own.yaml
sed 's/embedding.C1:/embedding.C99:/' own.yaml >wrong.yaml
fails 2 "wrong.yaml:4: unknown table 'embedding.C99'; did you mean" plan job.yaml --world 2 --plan wrong.yaml

# The memory of a planned rank is shown operator by operator, and is what a training lays out.
succeeds plan job.yaml --world 2 --set parallel.dense_mode=full --out sharded.yaml
contains stdout 'Dense parameters: mode full, over 2 ranks.'
contains sharded.yaml '  mode: full'
succeeds plan job.yaml --world 2 --plan sharded.yaml --memory
contains stdout 'rank 0 of 2 holds '
contains stdout 'most whole parameters: '
contains stdout "note: unit 'bottom.0.weight' has"
grep -q '| backward | gather_unit_wait\|| forward  | gather_unit_wait' stdout || complain 'no gather is shown'
succeeds plan job.yaml --world 2 --set parallel.dense_mode=replicated --memory
! grep -q 'gather_unit' stdout || complain 'replicated parameters are gathered'

# A plan tells what each mode would take.
succeeds plan job.yaml --world 4 --set parallel.dense_mode=zero1
contains stdout 'Bytes of dense parameters on the fullest rank:'
for row in '| replicated  ' '| zero1 (this plan) ' '| keep_after_forward ' '| full  ' '| hybrid  '; do
    contains stdout "$row"
done

# What the config says of a training is said of its plan.
fails 5 'does not fit' plan job.yaml --world 2 --rank-memory 1000
fails 5 'does not fit' plan job.yaml --world 2 --set parallel.memory_bytes=1000
succeeds plan job.yaml --world 2 --set parallel.memory_bytes=1000 --rank-memory 1000000000
fails 5 'at most 1000 B are allowed' plan job.yaml --world 2 --plan own.yaml --rank-memory 1000
succeeds plan job.yaml --world 4 --set parallel.ranks_per_host=2 --out -
contains stdout 'ranks_per_host: 2'
succeeds plan job.yaml --world 4 --set parallel.ranks_per_host=2 --ranks-per-host 1 --out -
contains stdout 'ranks_per_host: 1'
fails 2 '--world 4 is not a multiple of parallel.ranks_per_host 3' plan job.yaml --world 4 --set parallel.ranks_per_host=3

fails 2 'plan requires --world N' plan job.yaml
fails 2 "--world must be a whole number above 0, not '0'" plan job.yaml --world 0
fails 2 '--world 4 is not a multiple of --ranks-per-host 3' plan job.yaml --world 4 --ranks-per-host 3
fails 2 '--world 5000: must be at most 4096' plan job.yaml --world 5000
fails 2 'would overwrite the input job.yaml' plan job.yaml --world 2 --out job.yaml
for data in train valid test; do
    fails 2 "would overwrite the input data/$data.tsv" plan job.yaml --world 2 --out "data/$data.tsv"
done
fails 2 'would overwrite the input own.yaml' plan job.yaml --world 2 --plan own.yaml --out own.yaml
fails 5 'nowhere/plan.yaml' plan job.yaml --world 2 --out nowhere/plan.yaml

# A trained folder is as good as its config.
succeeds train job.yaml --out run --quiet --set train.max_steps=1
succeeds plan run --world 2
fails 2 'would overwrite the input run/config.yaml' plan run --world 2 --out run/config.yaml
