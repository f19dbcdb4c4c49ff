#!/bin/sh
# libphloem_reorder_{openmpi,mpich}.so gives the ranks of programs that know nothing of it the order of a file of hosts.
# The oracle is the order that is written here by hand; reordered.c has its own.
#
#     mpi_reorder.sh openmpi|mpich PROGRAMS PART      PART: calls, orders, environment, fortran, bad_input, train
programs=$2 part=$3
. "$(dirname "$0")/mpi_support.sh"
tests=$(cd "$(dirname "$0")" && pwd)
reordered=$programs/reordered_$mpi
library=$PH_BINARY_DIR/libphloem_reorder_$mpi.so
case $mpi in openmpi) other=mpich other_title=MPICH ;; mpich) other=openmpi other_title='Open MPI' ;; esac
[ -e "$library" ] || skip "$library was not built"
cd "$work" || exit 1
unset PHLOEM_REORDER PHLOEM_REORDER_HOST
PHLOEM_REORDER_VERBOSE=1
export PHLOEM_REORDER_VERBOSE

# All ranks are on this host: PHLOEM_REORDER_HOST gives each the one that stands at its place in $hosts.
cat >as_host.sh <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} library=$1
shift
host=$(echo "$hosts" | cut -d' ' -f$((rank + 1)))
PH_TEST_RANK=$rank
export PH_TEST_RANK
[ -z "$host" ] || export PHLOEM_REORDER_HOST="$host"
LD_PRELOAD=$library exec "$@"
END

# job HOSTS COMMAND...: a rank on each of the hosts, with the library; leaves status, stdout and stderr, as launch does.
job() {
    hosts=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    set -- "$(set -- $hosts && echo $#)" sh as_host.sh "$library" "$@"
    export hosts
    launch "$@"
}

# order LINE...: names a file with the lines as the order.
order() {
    printf '%s\n' "$@" >order
    PHLOEM_REORDER=$work/order
    export PHLOEM_REORDER
}

# expect STATUS TEXT: the last job ended so, and what Phloem said on stderr is the one line, or none.
expect() {
    [ "$status" -eq "$1" ] || complain "it ended with $status; wanted $1"
    grep '^phloem: ' stderr >said || :
    printf '%s' "${2:+$2
}" >wanted_said
    diff wanted_said said >difference || complain "it said something else: $(cat difference)"
}

# expect_order TEXT RANK...: a program that calls everything finds the ranks in that order.
expect_order() {
    text=$1
    shift
    job "$hosts" "$reordered" "$work" "$@"
    expect 0 "$text"
    [ "$(cat stdout)" = 'all calls are right' ] || complain 'not all calls were made'
}

# Every function, from either way to begin, also with the library in processes that are spawned; and a job without it fails.
test_calls() {
    order '# racks' 'b' 'c:4' '' '  D slots=2 # last' 'a'
    hosts='c a a d'
    expect_order 'phloem: 4 ranks reordered: 0 3 1 2' 0 3 1 2
    PH_TEST_THREADS=1
    LD_PRELOAD=$library
    export PH_TEST_THREADS LD_PRELOAD
    expect_order 'phloem: 4 ranks reordered: 0 3 1 2' 0 3 1 2
    unset LD_PRELOAD PH_TEST_THREADS
    launch 4 "$reordered" "$work" 0 3 1 2
    [ "$status" -ne 0 ] || complain 'the test finds the ranks in an order that they do not have'
}

# ranks_are TEXT RANK...: as expect_order, by a program that makes one call.
ranks_are() {
    text=$1
    shift
    job "$hosts" "$reordered" ranks "$@"
    expect 0 "$text"
    [ "$(sort stdout)" = "$(for rank; do echo "$rank"; done | awk '{ print $1, NR - 1 }' | sort)" ] ||
        complain "the ranks are not $*"
}

test_orders() {
    # Ranks that took turns on the hosts come together.
    hosts='x y z x y z'
    order x z y
    ranks_are 'phloem: 6 ranks reordered: 0 3 2 5 1 4' 0 3 2 5 1 4
    # The host of rank 0 stays first: the ring is turned. Hosts that the job does not use are left out.
    hosts='x x y z'
    order z w x y
    ranks_are 'phloem: 4 ranks keep their order' 0 1 2 3
    order y x w z
    ranks_are 'phloem: 4 ranks reordered: 0 1 3 2' 0 1 3 2
    # Names with and without their domain, and addresses of this host.
    hosts='x.rack.example x.rack.example y z.rack.example'
    order Z y.rack.example x
    ranks_are 'phloem: 4 ranks reordered: 0 1 3 2' 0 1 3 2
    hosts=' '
    order 192.0.2.1 "$(uname -n)"
    launch 2 sh as_host.sh "$library" "$reordered" ranks
    expect 0 'phloem: 2 ranks keep their order'
    address=$(ip -o -4 address show scope global 2>/dev/null | awk '{ split($4, part, "/"); print part[1]; exit }')
    if [ -n "$address" ]; then
        order 192.0.2.1 "$address:2"
        launch 2 sh as_host.sh "$library" "$reordered" ranks
        expect 0 'phloem: 2 ranks keep their order'
    fi
    # Nothing is said without a wish to hear it, and nothing is done without an order.
    unset PHLOEM_REORDER_VERBOSE
    hosts='x x y z'
    order y x w z
    ranks_are '' 0 1 3 2
    unset PHLOEM_REORDER
    ranks_are '' 0 1 2 3
    PHLOEM_REORDER_VERBOSE=1
    ranks_are '' 0 1 2 3
}

test_environment() {
    case $mpi in openmpi) variable=OMPI_COMM_WORLD_RANK ;; mpich) variable=PMI_RANK ;; esac
    unset PHLOEM_REORDER_VERBOSE
    hosts='x y z'
    order x z y
    warning="phloem: warning: 'reordered_$mpi' reads $variable, the rank before PHLOEM_REORDER changed it: let it ask MPI_Comm_rank"
    for when in early late; do
        job "$hosts" "$reordered" $when
        expect 0 "$warning"
    done
    order x y z # the ranks are right
    job "$hosts" "$reordered" early
    expect 0 ''
    order x z y
    job "$hosts" "$reordered" ranks
    expect 0 ''
    job "$hosts" "$reordered" abort
    [ "$status" -eq 3 ] || complain "MPI_Abort ended with $status; wanted 3"
}

test_fortran() {
    hosts='c c a a b b d d'
    order b c d a
    compiler=mpif90.$mpi
    command -v "$compiler" >/dev/null || skip "there is no $compiler"
    for module in mpi f08; do
        cp "$tests/reordered_$module.f90" .
        "$compiler" "reordered_$module.f90" -o "reordered_$module" >stdout 2>stderr || skip "$compiler compiles no $module"
        job "$hosts" ./reordered_$module 0 1 6 7 2 3 4 5
        expect 0 'phloem: 8 ranks reordered: 0 1 6 7 2 3 4 5'
        grep -q 'all calls are right' stdout || complain 'not all calls were made'
    done
}

test_bad_input() {
    hosts='x x y z'
    order x y
    job "$hosts" "$reordered" ranks
    expect 2 "phloem: the order '$work/order' lacks host 'z' of rank 3: add it, or write the order again with phloem topology order"
    order x y z X
    job "$hosts" "$reordered" ranks
    expect 2 "phloem: the order '$work/order' names 'x' twice, in lines 1 and 4: remove one"
    order x z y z.rack
    job "$hosts" "$reordered" ranks
    expect 2 "phloem: the order '$work/order' names host 'z' of rank 3 twice, in lines 2 and 4: remove one"
    order '# nobody' ''
    job "$hosts" "$reordered" ranks
    expect 2 "phloem: the order '$work/order' names no host: write one host a line"
    : >order
    job "$hosts" "$reordered" ranks
    expect 2 "phloem: the order '$work/order' names no host: write one host a line"
    advice='give the file that phloem topology order has written'
    for path in nowhere .; do
        case $path in nowhere) reason='No such file or directory' ;; *) reason='Is a directory' ;; esac
        PHLOEM_REORDER=$work/$path
        job "$hosts" "$reordered" ranks
        expect 2 "phloem: cannot read '$work/$path', which PHLOEM_REORDER names ($reason): $advice"
    done
    test_two_libraries
    test_static
}

# The other MPI's library in a program that is linked with this MPI, and in one that loads it.
test_two_libraries() {
    wrong=$PH_BINARY_DIR/libphloem_reorder_$other.so
    if ! [ -e "$wrong" ]; then
        echo "$name: skipped a part: $wrong was not built"
        return
    fi
    own=$library library=$wrong
    order x y z
    line="phloem: a library for $other_title is preloaded into a program that uses $title: preload $(basename "$own") instead"
    job "$hosts" "$reordered" ranks
    expect 2 "$line"
    PHLOEM_MPI=$mpi
    make_job
    job 'x y' "$PH_BINARY_DIR/phloem" train job.yaml --out wrong --quiet
    expect 2 "$line"
    library=$own
}

# Nothing can be preloaded into MPI that is inside of a program; one that has the C library inside, too, does not even say so.
test_static() {
    [ "$mpi" = mpich ] && command -v cc >/dev/null || return 0
    printf '#include <mpi.h>\nint main(int n, char **v) { MPI_Init(&n, &v); return MPI_Finalize(); }\n' >static.c
    # shellcheck disable=SC2046 # lists of words
    cc $(pkg-config --cflags mpich) static.c -o static -Wl,-Bstatic -lmpich -Wl,-Bdynamic \
        $(pkg-config --libs --static mpich | sed 's/-lmpich//') -luct -lm >stdout 2>stderr || {
        echo "$name: skipped a part: MPICH cannot be linked statically here"
        return
    }
    order x z y
    job 'x y z' ./static
    expect 0 "phloem: warning: 'static' is linked statically with MPI, so its ranks keep their order: link it dynamically"
}

# A training under the library has the same bits: Phloem's sums are in the order of its ranks, each of which has the same work.
test_train() {
    make_job
    train 4 plain
    [ "$status" -eq 0 ] || complain "the training without the library ended with $status"
    order a c b d
    job 'a b c d' "$PH_BINARY_DIR/phloem" train job.yaml --out ordered --quiet
    expect 0 'phloem: 4 ranks reordered: 0 2 1 3'
    for folder in plain ordered; do
        value $folder/summary.json checkpoint_sha256 >$folder.sum
        losses $folder >>$folder.sum
        [ "$(wc -l <$folder.sum)" -gt 10 ] || complain "$folder has no losses"
    done
    cmp plain.sum ordered.sum || complain 'the training under the library has other bits'
}

"test_$part"
