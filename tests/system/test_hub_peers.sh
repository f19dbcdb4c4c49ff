#!/bin/sh
# The peers of the hub's benchmarks that are there, Open MPI and ps-lite, on small buffers: what they answer to each line.
# They check each sum and weight themselves; PHLOEM_BENCH_PSLITE names a built ps-lite.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"
# shellcheck source=tests/system/peer_support.sh
. "$PH_SOURCE_DIR/tests/system/peer_support.sh"

answers openmpi ready "$seconds $seconds" "$seconds $seconds $seconds $seconds" "$seconds $seconds" \
    "$seconds $seconds" '[0-9]* 600000' ready "$seconds" '[0-9]* 600000' ready "$seconds $seconds" 'skipped .*pigeon' \
    'skipped no case was given' 'skipped .*bytes.*' ready "$seconds" 'skipped rank 1 does not exist' ended \
    'skipped no case was given' <<'END'
case allreduce bytes=300000 segment=4096
allreduce 2
training 2
latency 10
pingpong 10
bytes 1
case allreduce bytes=300000 transport=tcp
allreduce 1
bytes 2
case allreduce bytes=4000 ranks=3 segment=0 yield=1
latency 10
case allreduce bytes=4000 transport=pigeon
allreduce 1
case allreduce ranks=2
case allreduce bytes=4096 ranks=1
allreduce 1
pingpong 1
end
allreduce 1
END

answers pslite ready "$seconds $seconds" "$seconds $seconds" '[0-9]* 1200000' ready "$seconds $seconds $seconds" \
    ready "$seconds $seconds" 'skipped .*pigeon' 'skipped no case was given' ended <<'END'
case pushpull bytes=300000 chunk=4096
pushpull 2
latency 10
bytes 1
case pushpull bytes=300000 workers=3 transport=ipc
pushpull 3
case pushpull bytes=4096 workers=1
latency 20
case pushpull bytes=4096 transport=pigeon
pushpull 1
end
END

# What is missing is said, whatever is there.
says_missing() {
    "$python" "$peers/pslite.py" >stdout 2>stderr </dev/null || complain "pslite.py ended with $?"
    grep -qx "missing .*PHLOEM_BENCH_PSLITE.*$1.*" stdout || complain "pslite.py does not say that it lacks $1"
}
(unset PHLOEM_BENCH_PSLITE && says_missing 'how to build it')
(export PHLOEM_BENCH_PSLITE="$work" && says_missing include/ps/ps.h)

# A peer whose numbers are not the expected ones is refused: here, because something else is expected.
cp -R "$peers" expecting
sed 's/workers \* (workers + 1) \/ 2/workers/' "$peers/peer_model.h" >expecting/peer_model.h
! cmp -s "$peers/peer_model.h" expecting/peer_model.h || complain 'peer_model.h does not say what is expected'
peers=$work/expecting
answers openmpi 'skipped its results are wrong' <<'END'
case allreduce bytes=4096
END
answers pslite 'skipped its results are wrong' <<'END'
case pushpull bytes=4096
END

skips_if_none_is_there
