#!/bin/sh
# phloem sim run: an unmodified MPI program has the results that it has under mpirun, and the times of closed forms.
#
#     mpi_sim_run.sh openmpi|mpich PROGRAMS [long]
. "$(dirname "$0")/mpi_support.sh"
programs=$2
program=$programs/simulated_program_$mpi other=$programs/simulated_two_mpis
[ -e "$PH_BINARY_DIR/libphloem_sim_mpi_$mpi.so" ] || skip "the simulated $title was not built"
cd "$work" || exit 1

# Hosts with a byte a nanosecond each way; a message takes 1 us of its sender, 10 us on its way, 2 us of its receiver.
cat >star.yaml <<'END'
version: 1
kind: star
hosts: 16
host: {gbits_per_s: 8, latency_us: 5}
messages: {send_us: 1, receive_us: 2, eager_bytes: 65536}
END
topology=star.yaml

# simulate RANKS ARGUMENTS...: leaves status, stdout and stderr.
simulate() {
    ranks=$1 status=0
    shift
    "$PH_BINARY_DIR/phloem" sim run --no-compute -n "$ranks" --topology "$topology" "$@" >stdout 2>stderr </dev/null ||
        status=$?
}

# is_right RANKS ARGUMENTS...: the program finds no mistake on any rank.
is_right() {
    simulate "$@"
    [ "$status" -eq 0 ] || complain "$* ended with $status; wanted 0"
    [ "$(grep -c "^rank .* of $1 has 0 mistakes" stdout)" -eq "$1" ] || complain "$*: not all ranks are right"
}

# ends_with STATUS TEXT RANKS ARGUMENTS...: one line of error that has the text.
ends_with() {
    wanted=$1 text=$2
    shift 2
    simulate "$@"
    [ "$status" -eq "$wanted" ] || complain "$* ended with $status; wanted $wanted"
    [ "$(grep -c '^phloem: error: ' stderr)" -eq 1 ] || complain "$*: wanted one line of error"
    grep -qF -e "$text" stderr || complain "$*: wanted '$text'"
}

# takes SECONDS RANKS ARGUMENTS...: the program prints that time first.
takes() {
    wanted=$1
    shift
    simulate "$@"
    awk -v wanted="$wanted" 'NR == 1 && $1 >= wanted * .999999 && $1 <= wanted * 1.000001 { found = 1 }
        END { exit !found }' stdout || complain "$* does not take $wanted s"
}

# ---- results ----
for ranks in 1 2 3 4 5 6 7 8 9; do
    is_right $ranks "$program" collectives 37
    is_right $ranks "$program" messages
done
algorithms='allreduce=ring allreduce=doubling allreduce=rabenseifner alltoall=pairwise alltoall=at_once alltoall=ring
    alltoall=bruck bcast=tree bcast=pipeline allgather=ring allgather=bruck'
all_ranks='3 8'
if [ "${3:-}" = long ]; then
    all_ranks='1 2 3 4 5 6 7 8 9'
    sed 's/hosts: 16/hosts: 64/' star.yaml >large.yaml
    topology=large.yaml
    is_right 64 "$program" collectives 70
    topology=star.yaml
fi
for algorithm in $algorithms; do
    for ranks in $all_ranks; do
        is_right "$ranks" --collective "$algorithm" "$program" collectives 1
        is_right "$ranks" --collective "$algorithm" "$program" collectives 20000
    done
done
is_right 16 --quiet "$program" collectives 10
grep -vq '^rank' stdout && complain '--quiet prints more than the program'

# The program finds no mistake in the MPI that it is linked with either.
for ranks in 1 5; do
    for what in 'collectives 37' messages; do
        # shellcheck disable=SC2086 # words
        simulate $ranks --quiet "$program" $what
        sort stdout >simulated.txt
        # shellcheck disable=SC2086 # words
        launch $ranks "$program" $what
        sort "$work/stdout" | cmp -s - simulated.txt || complain "$what: other results than under mpirun"
    done
done

# ---- times ----
takes 14e-6 2 "$program" pingpong 1000      # 1 + 1 + 10 + 2 us
takes 13e-6 2 "$program" pingpong 0
takes 1033e-6 2 "$program" pingpong 1000000 # asked for first: 1 + 20 + 1000 + 10 + 2 us
takes 14462e-6 8 --collective allreduce=ring "$program" allreduce 8000000 # 14 steps of 1 MB
takes 1.000003 2 "$program" nap             # rank 1's message of the barrier has come before
for memory in apart folded; do # the same time in both
    flag=$([ "$memory" = apart ] || echo --fold-memory)
    # shellcheck disable=SC2086 # none, or a flag
    takes 14462e-6 8 --collective allreduce=ring $flag "$program" fold 8000000
    grep -q "$memory" stdout || complain "memory is not $memory"
done
simulate 7 "$program" collectives 50
grep '^simulated' stdout | sed 's/; [0-9.]* s of wall.*//' >first
simulate 7 "$program" collectives 50
grep '^simulated' stdout | sed 's/; [0-9.]* s of wall.*//' | cmp -s - first || complain 'a second simulation has another time'
simulate 4 "$program" race
grep -q '^first 2, then 1$' stdout || complain 'a receive from any rank has not taken the earlier message'
"$PH_BINARY_DIR/phloem" sim run -n 2 --topology star.yaml --speed 2 --out run "$program" compute 50 >stdout 2>stderr ||
    complain 'a program that computes fails'
awk '/"seconds":/ && !found++ { gsub(",", ""); exit !($2 > .02 && $2 < .05) }' run/summary.json ||
    complain '50 ms of computing do not take about 25 ms at twice the speed'
[ "$(value run/summary.json label)" = simulated ] || complain 'the summary has no label'
[ "$(value run/summary.json messages | head -n 1)" = 2 ] || complain 'the summary counts other messages'

# Ranks are on the hosts of the topology.
simulate 3 --quiet "$program" host
sort stdout | tr '\n' ' ' | grep -q '^rank 0 on h0 rank 1 on h1 rank 2 on h2 $' || complain 'ranks are on other hosts'

# The program's own MPI begins alone, even where a launcher of that MPI has left its environment.
launch 1 "$PH_BINARY_DIR/phloem" sim run --no-compute -n 2 --topology star.yaml "$program" messages
[ "$(grep -c '^rank .* of 2 has 0 mistakes' "$work/stdout")" -eq 2 ] || complain 'a simulation below mpirun fails'

# A library that stands before MPI sees the calls, and calls the simulated MPI.
PH_TEST_TRAFFIC=$work/traffic
export PH_TEST_TRAFFIC
is_right 3 --preload "$programs/libpmpi_traffic_$mpi.so" "$program" messages
grep -q '"to": 0, "tag": 3, "messages": 2, "bytes": 200012' traffic.2 || complain 'a library that wraps MPI sees no messages'

# Ranks that another order takes between the racks share a link, four at a time.
cat >racks.yaml <<'END'
version: 1
kind: racks
hosts: 8
host: {gbits_per_s: 8, latency_us: 5}
rack: {hosts: 4, uplinks: 1, gbits_per_s: 2, latency_us: 5}
nodes: [{name: 127.0.0.1}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: 127.0.0.8}]
END
topology=racks.yaml
if [ -e "$PH_BINARY_DIR/libphloem_reorder_$mpi.so" ]; then
    simulate 8 --collective allreduce=ring "$program" allreduce 4000000
    grouped=$(head -n 1 stdout)
    printf '%s\n' 127.0.0.1 e b f c g d 127.0.0.8 >order # an address of this machine is no other rank's
    PHLOEM_REORDER=$work/order
    export PHLOEM_REORDER
    simulate 8 --preload "$PH_BINARY_DIR/libphloem_reorder_$mpi.so" \
        --collective allreduce=ring "$program" allreduce 4000000
    awk -v grouped="$grouped" 'NR == 1 { exit !($1 > 3.5 * grouped && $1 < 4 * grouped) }' stdout ||
        complain "an order across the racks is not almost four times as slow as $grouped s"
    is_right 8 --preload "$PH_BINARY_DIR/libphloem_reorder_$mpi.so" "$program" collectives 10
fi
topology=star.yaml

# ---- failures ----
ends_with 2 'MPI_Win_create is not simulated (rank 2)' 3 "$program" window
ends_with 6 'deadlock of 3 ranks: rank 0 waits for a message of rank 1 (tag 4), rank 1 waits' 3 "$program" deadlock
ends_with 6 'rank 2 was ended by signal 11 (Segmentation fault)' 3 "$program" signal
ends_with 7 'rank 2 has called MPI_Abort, with the code 7' 3 "$program" abort
ends_with 3 'rank 2 ended with exit code 3 before MPI_Finalize' 3 "$program" leave
ends_with 6 'rank 2 receives at most 4 bytes, but rank 0 has sent 12 (tag 4)' 3 "$program" truncate
ends_with 6 'ended with exit code 0 without calling MPI_Init' 2 "$program" no_init 0
simulate 3 "$program" code 5
[ "$status" -eq 5 ] || complain "the program's exit code becomes $status; wanted 5"
ends_with 2 'star.yaml: the cluster has room for 16 ranks, not 17' 17 "$program" host
ends_with 2 "'/bin/sh' is not linked with Open MPI 4 (libmpi.so.40) or MPICH 4" 2 /bin/sh
ends_with 2 "'star.sh' is in no folder of \$PATH" 2 star.sh
printf '#!/bin/sh\n' >script && chmod +x script
ends_with 2 "'./script' is a script" 2 ./script
[ ! -x /sbin/ldconfig ] || ends_with 2 "'/sbin/ldconfig' is linked statically" 2 /sbin/ldconfig
[ ! -e "$other" ] || ends_with 2 'is linked with two MPIs' 2 "$other"
ends_with 2 "unknown algorithm 'rings'; did you mean 'ring'?" 2 --collective allreduce=rings "$program" host
ends_with 2 "unknown collective 'alreduce'; did you mean 'allreduce'?" 2 --collective alreduce=ring "$program" host
ends_with 2 "as in allreduce=ring, not 'ring'" 2 --collective ring "$program" host
ends_with 2 "--speed must be a number above 0, not '0'" 2 --speed 0 "$program" host
status=0
"$PH_BINARY_DIR/phloem" sim run "$program" >stdout 2>stderr || status=$?
[ "$status" -eq 2 ] && grep -q 'sim run requires -n N and --topology FILE' stderr || complain 'a topology is not asked for'
