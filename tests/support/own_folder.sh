# own_folder.sh COMMAND...: runs the command with a temporary folder of its own, which is removed afterwards.
parent=${TMPDIR:-/tmp}
TMPDIR=$(mktemp -d "$parent/phloem.XXXXXX") || exit 1
export TMPDIR
status=0
"$@" || status=$?
rm -rf "$TMPDIR"
exit "$status"
