#!/bin/sh
# tools/baseline.sh finds what differs between two revisions: the comparison on facts made here, and on what this build says of
# its keys, flags and symbols, and a coverage that is known.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

# compares STATUS ARGUMENTS...: of the folders old and new.
compares() {
    wanted=$1
    shift
    status=0
    python3 "$PH_SOURCE_DIR/tools/baseline_compare.py" old/facts new/facts "$@" >stdout 2>stderr || status=$?
    [ "$status" -eq "$wanted" ] || complain "the comparison ended with $status; wanted $wanted"
}

mkdir -p old/facts new/facts
cat >old/facts/keys.json <<'END'
{"facts": {"seed": "integer, 1", "threads": "integer, 0", "data.lanes[]": "integer, 1", "same": "text"}, "notes": []}
END
cat >new/facts/keys.json <<'END'
{"facts": {"seed": "integer, 2", "threads.kind": "choice", "data.lanes[]": "integer, 4", "same": "text"}, "notes": ["a note"]}
END
echo '{"facts": {"base": 80.0, "hub": 90.25}, "notes": []}' >old/facts/coverage.json
echo '{"facts": {"base": 99.0, "hub": 88.0}, "notes": []}' >new/facts/coverage.json
echo '{"facts": {"lr avx2": "0"}, "notes": []}' >old/facts/sums.json
echo '{"skipped": "no data"}' >new/facts/sums.json

compares 1
for line in 'differs: keys ~ seed: integer, 1 -> integer, 2' 'differs: keys - threads: integer, 0' \
    'differs: keys + threads.kind: choice' 'differs: keys ~ data.lanes[]: integer, 1 -> integer, 4' \
    'differs: coverage ~ hub: 90.25 -> 88.0' 'note: keys: a note' 'note: sums: skipped: no data' \
    'baseline: 7 facts of 2 parts (coverage keys): 5 differ, 0 more as expected'; do
    contains stdout "$line"
done
! grep -q 'base:' stdout || complain 'a coverage that rises is no difference'

cat >expected.txt <<'END'
# Threads that give way.
keys ~ seed
keys - thre*
keys + threads.*
keys ~ data.lanes[]
coverage ~ *
keys - absent
sums ~ *
END
compares 0 --expect expected.txt
contains stdout 'expected: keys ~ data.lanes[]'
contains stdout 'unused: line 7 of the expected differences: keys - absent'
contains stdout '0 differ, 5 more as expected'
! grep -q 'unused: .*sums' stdout || complain 'an entry of a part that was skipped cannot be called unused'
sed -i '/lanes/d' expected.txt
compares 1 --expect expected.txt --parts keys
contains stdout '1 differ, 3 more as expected'
echo 'keys seed' >expected.txt
compares 1 --expect expected.txt
contains stderr "must be PART SIGN NAME, not 'keys seed'"

# What the tools gather here is not nothing, and a changed default is found.
for folder in old new; do
    rm -rf "$folder/facts"
    mkdir -p "$folder/source/build"
    ln -s "$PH_BINARY_DIR" "$folder/source/build/release"
done
python3 "$PH_SOURCE_DIR/tools/baseline_facts.py" old new --parts keys,flags,symbols >stdout 2>stderr ||
    complain 'facts were not gathered'
compares 0
contains new/facts/keys.json '"train.batch_size": "integer, 2048, 1 to 16777216"'
contains new/facts/keys.json '"model.dcn.layers": "integer, 3, 1 to 64"'
contains new/facts/keys.json '"threads": "integer, 0, 0 to 1024; may change on resume"'
contains new/facts/flags.json '"train --set": "KEY=VALUE"'
contains new/facts/symbols.json '"libphloem_hub.so ph_hub_init": "T"'
sed -i 's/integer, 2048, /integer, 4096, /' new/facts/keys.json
compares 1
contains stdout 'differs: keys ~ train.batch_size: integer, 2048, 1 to 16777216 -> integer, 4096, 1 to 16777216'

# Lines that a test reaches count for their room, those of an object that nothing runs as not reached.
objects=covered/source/build/coverage/CMakeFiles/phloem_objects.dir
mkdir -p covered/source/src/base covered/source/src/net $objects
cat >covered/source/src/base/sign.c <<'END'
int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return 1;
    return 0;
}
END
echo 'int unused(int x) { return x; }' >covered/source/src/net/unused.c
for source in base/sign net/unused; do
    gcc --coverage -O1 -c "$PWD/covered/source/src/$source.c" -o "$objects/${source#*/}.o"
done
gcc --coverage $objects/*.o -o covered/program
cat >covered/source/build/coverage/CTestTestfile.cmake <<END
add_test(base.sign "$PWD/covered/program")
set_tests_properties(base.sign PROPERTIES LABELS unit)
END
python3 "$PH_SOURCE_DIR/tools/baseline_facts.py" covered covered --parts coverage >stdout 2>stderr ||
    complain 'no coverage was gathered'
grep -q '"base": [1-9][0-9.]*' covered/facts/coverage.json || complain 'no line of base was reached'
contains covered/facts/coverage.json '"net": 0.0'

# misused STATUS TEXT ARGUMENTS...: of baseline.sh.
misused() {
    wanted=$1 text=$2
    shift 2
    status=0
    sh "$PH_SOURCE_DIR/tools/baseline.sh" "$@" >stdout 2>stderr || status=$?
    [ "$status" -eq "$wanted" ] || complain "baseline.sh $* ended with $status; wanted $wanted"
    contains stderr "$text"
}
misused 2 'usage: tools/baseline.sh OLD NEW' one
misused 2 "unknown part 'summs'" old new --only keys,summs
misused 2 "unknown option '--fast'" old new --fast
misused 2 "--expect: 'absent.txt' does not exist" old new --expect absent.txt
misused 2 "--jobs must be a number above 0, not '0'" old new --jobs 0
