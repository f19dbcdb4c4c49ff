#!/bin/sh
# phloem sim --sweep: every combination once, what is said of those that cannot be, the files, and bad sweeps.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

topologies=$PH_SOURCE_DIR/configs/topology
export XDG_CACHE_HOME="$work/cache"
make_small_job
sed 's/gbits_per_s: 25/gbits_per_s: 100/' "$topologies/star8.yaml" >fast.yaml
cp "$topologies/star8.yaml" slow.yaml

# figures FOLDER: sweep.csv without memory and wall seconds, which are of this process, and folders.
figures() {
    cut -d , -f 1-8,11-12 "$1/sweep.csv"
}

succeeds sim job.yaml --out swept --set train.max_steps=3 --sweep topology=slow.yaml,fast.yaml --sweep world=1,2,4
contains stdout '[1 of 6] topology=slow.yaml world=1: '
contains stdout '| topology  | world | ranks | samples/s | ms a step |'
contains stdout 'also in swept/sweep.csv and report.html'
[ "$(grep -c '^| [sf]' stdout)" -eq 6 ] || complain 'the table has not a row a combination'
[ "$(wc -l <swept/sweep.csv)" -eq 7 ] || complain 'sweep.csv has not a line a combination'
head -n 1 swept/sweep.csv >heads
contains heads '"topology","world",ranks,samples_per_s,step_seconds,compute_share,exposed_share,sent_bytes_per_step,'
contains heads 'rank_bytes,wall_seconds,speed_up,efficiency,folder,failure'
[ "$(find swept -name summary.json | wc -l)" -eq 6 ] || complain 'not every combination has a summary'
contains 'swept/5-topology=fast.yaml,world=2/summary.json' '"world_size": 2'

# Speed-up is over the first row with the same topology, and one rank sends nothing.
awk -F , 'NR > 1 {
    if ($2 == "\"1\"") {first = $4; if ($11 != 1 || $8 != 0 || $6 != 1) exit 1}
    if (($11 - $4 / first) ^ 2 > 1e-12 || ($12 - $11 / $3) ^ 2 > 1e-12) exit 1
    if (($6 + $7 - 1) ^ 2 > 1e-12) exit 1
}' swept/sweep.csv || complain 'the figures of sweep.csv do not fit together'

# A sweep has the figures of its simulations one by one, and of a second sweep.
succeeds sim job.yaml --topology fast.yaml --world 4 --out alone --set train.max_steps=3
contains stdout ' 0 operators measured'
for key in train_seconds sent_bytes; do
    value alone/summary.json $key | cmp -s - one || value alone/summary.json $key >one
    value 'swept/6-topology=fast.yaml,world=4/summary.json' $key | cmp -s - one ||
        complain "a simulation of a sweep has another $key than one alone"
done
succeeds sim job.yaml --out again --set train.max_steps=3 --sweep topology=slow.yaml,fast.yaml --sweep world=1,2,4 --quiet
if grep -q ' of 6\] ' stdout; then complain '--quiet prints progress'; fi
figures swept >first
figures again | cmp -s - first || complain 'a second sweep has other figures'

# The page: a curve for each topology over the number of ranks.
python3 "$PH_SOURCE_DIR/tests/system/page_check.py" sound swept/report.html || complain 'the page is not sound'
for plot in samples_per_s compute_share exposed_share sent_bytes_per_step; do
    for curve in 0 1; do
        python3 "$PH_SOURCE_DIR/tests/system/page_check.py" series swept/report.html $plot-$curve 3 ||
            complain "the page lacks the curve $plot-$curve"
    done
done
contains swept/report.html '"id":"combinations-table","num_rows":6'
contains swept/report.html 'Simulated: '
contains swept/report.html 'over the first row that differs in world alone'

# Values with commas, and numbers that are no ranks.
succeeds sim job.yaml --topology slow.yaml --world 2 --out lists --set train.max_steps=2 --quiet \
    --sweep 'model.top_units=[8],[8,4]' --sweep train.batch_size=100,200
[ "$(wc -l <lists/sweep.csv)" -eq 5 ] || complain 'a comma in brackets has cut a value'
contains lists/report.html '"x":[100.0,200.0]'

# What a combination cannot be is named in the table, and the others go on.
succeeds plan job.yaml --world 4 --ranks-per-host 1 --out plan.yaml
succeeds sim job.yaml --topology slow.yaml --out partly --set train.max_steps=2 --sweep parallel.plan=auto,plan.yaml \
    --sweep world=2,4,9
contains stdout 'plan.yaml:3: the plan is for a world_size of 4, but this job has 2'
contains stdout 'slow.yaml: the cluster has room for 8 ranks, not 9'
[ "$(grep -c '^| auto .* – ' stdout)" -eq 1 ] || complain 'another combination than that of 9 ranks has failed'
contains partly/sweep.csv '"plan.yaml","4",4,'
contains partly/sweep.csv 'the plan is for a world_size of 4'
phloem sim job.yaml --topology slow.yaml --out none --set train.max_steps=2 --sweep parallel.memory_bytes=1000,2000 --quiet
[ "$status" -eq 5 ] || complain 'a sweep without any figures has succeeded'
contains stderr 'parallel.memory_bytes=1000: table '

# Bad sweeps end before the first simulation.
bad() {
    text=$1
    shift
    fails 2 "$text" sim job.yaml --topology slow.yaml --out bad "$@"
    [ ! -e bad ] || complain 'a bad sweep has begun'
}
bad "--sweep must be KEY=VALUE,VALUE,..., not 'world'" --sweep world
bad "--sweep must be KEY=VALUE,VALUE,..., not '=1'" --sweep =1
bad '--sweep world: a value is empty' --sweep world=
bad '--sweep world: a value is empty' --sweep world=1,,2
bad '--sweep world: a value is empty' --sweep world=1,
bad "--sweep world must be from 1 to 65536, not '0'" --sweep world=1,0
bad '--sweep world is given twice' --sweep world=1 --sweep world=2
bad "--sweep wrld=1: unknown key 'wrld'" --sweep wrld=1,2
bad '--sweep train.batch_size=x: ' --sweep train.batch_size=10,x
bad '--sweep threads: ' --sweep threads=1,2
bad 'nowhere.yaml: cannot open' --sweep topology=nowhere.yaml
bad "--set train.batch_sise=3: unknown key 'train.batch_sise'" --sweep world=1,2 --set train.batch_sise=3
fails 2 'sim requires --topology FILE, or --sweep topology=FILE,FILE' sim job.yaml --out bad --sweep world=1,2
fails 2 'swept: the folder is not empty' sim job.yaml --topology slow.yaml --out swept --sweep world=1,2
