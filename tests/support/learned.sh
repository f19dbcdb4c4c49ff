# Shared code of tests that learn; sourced by support.sh and mpi_support.sh.
# shellcheck shell=sh
# shellcheck disable=SC2034 # read by tests
seed=${PH_TEST_SEED:-1}

# learned NAME VALUE RELATION BAR: prints its arguments as one line, which tools/learning_margins.py reads, and ends the test
# unless the number VALUE is >= or <= BAR, as RELATION says.
learned() {
    echo "learned $1 $2 $3 $4"
    awk -v value="$2" -v relation="$3" -v bar="$4" 'BEGIN {
        is_number = value ~ /^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$/
        exit !(is_number && (relation == ">=" ? value + 0 >= bar + 0 : value + 0 <= bar + 0)) }' ||
        complain "$1 is '$2', which is not $3 $4"
}
