#!/bin/sh
# tools/learning_margins.py on a build of two stand-ins for tests: the table holds the worst value of each instruction set, and a bar
# that one seed misses, or a test that prints nothing, ends it with 1.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

mkdir -p tools build tests/system
cp "$PH_SOURCE_DIR/tools/learning_margins.py" tools
echo "CMAKE_CTEST_COMMAND:INTERNAL=$(dirname "$PH_CMAKE")/ctest" >build/CMakeCache.txt
cat >build/phloem <<'END_OF_PROGRAM'
#!/bin/sh
[ "$PHLOEM_ISA" != avx512 ] || { echo 'phloem: error: this machine runs avx2 at most' && exit 2; }
END_OF_PROGRAM
chmod +x build/phloem

# A test that learns .9, and less by a hundredth of its seed under ref. TELL becomes the call that the tool looks for in sources, and
# would find here.
sed 's/TELL/learned/' >tests/system/test_near.sh <<'END_OF_TEST'
learned() { echo "learned $*"; [ "$PH_TEST_SEED" -lt "${MISSED:-99}" ]; }
[ "$TMPDIR" != "$FORMER" ] || exit 3
value=0.9
[ "$PHLOEM_ISA" != ref ] || value=0.8$((9 - PH_TEST_SEED))
[ -n "$SILENT" ] ||
    TELL near.auc $value '>=' 0.85
END_OF_TEST
echo 'nothing is learnt here' >tests/system/test_far.sh
cat >build/CTestTestfile.cmake <<END_OF_LIST
add_test(system.near "sh" "$work/tests/system/test_near.sh")
set_tests_properties(system.near PROPERTIES ENVIRONMENT "OTHER=1")
add_test(ref.system.near "sh" "$work/tests/system/test_near.sh")
set_tests_properties(ref.system.near PROPERTIES ENVIRONMENT "PHLOEM_ISA=ref")
add_test(system.far "sh" "$work/tests/system/test_far.sh")
END_OF_LIST
FORMER=${TMPDIR:-/tmp} MISSED='' SILENT=''
export FORMER MISSED SILENT

# margins STATUS TEXT ARGUMENTS...: ends so, and prints TEXT.
margins() {
    wanted=$1 text=$2
    shift 2
    status=0
    python3 tools/learning_margins.py --build build "$@" >stdout 2>stderr || status=$?
    [ "$status" -eq "$wanted" ] || complain "learning_margins.py $* ended with $status; wanted $wanted"
    cat stderr >>stdout
    contains stdout "$text"
}

margins 0 '| system.near | near.auc | >= 0.85 | 3 | 0.86 | 3 | 0.01 | 2.0 | 3 | 0.9 | 1 | 0.05 | inf |' --seeds 3
contains stdout 'not run: avx512: this machine runs avx2 at most'
contains stdout '6 runs: 0 failed, 0 skipped'
[ "$(grep -c near.auc stdout)" -eq 1 ] || complain 'a test of one instruction set was run under all'
margins 0 'not run: avx2: left out by --isa' --seeds 2 --isa ref --keep kept
margins 0 'ref  seed 3  status 0' --seeds 3 --isa ref --keep kept near
[ "$(grep -c '  status ' stdout)" -eq 1 ] || complain 'a run that was kept was repeated'
MISSED=2 margins 1 'FAILED: system.near under avx2 with seed 2' --seeds 2
SILENT=1 margins 1 'printed no `learned` line' --seeds 1
margins 2 'no test that learns is called far' far
margins 2 '--seeds wants at least 1' --seeds 0
sed -i '/near/d' build/CTestTestfile.cmake
margins 2 'CTest runs no test of tests/system/test_near.sh'
