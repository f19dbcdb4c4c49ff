#!/bin/sh
# Serves a run folder on free ports, scores by curl the request that --example prints, and stops the server.
# usage: serve_once.sh PROGRAM RUN
set -eu

work=$(mktemp -d)
server=''
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
    echo "serve_once: $1" >&2
    exit 1
}

"$1" serve "$2" --http 127.0.0.1:0 --grpc 127.0.0.1:0 --metrics 127.0.0.1:0 >"$work/addresses" 2>"$work/log" &
server=$!
until grep -q '^REST' "$work/addresses"; do
    kill -s 0 "$server" 2>/dev/null || { cat "$work/log" >&2; fail 'the server has not started'; }
    sleep 0.1
done
address=$(sed -n 's|^REST *http://||p' "$work/addresses")
curl -fs --retry 30 --retry-all-errors --retry-delay 1 "$address/v2/health/ready"
"$1" serve "$2" --http "$address" --example "$(basename "$2")" >"$work/example"
sed '/^END$/q' "$work/example" | sh >"$work/answer"
grep -q '"name":"probability","datatype":"FP32"' "$work/answer" || { cat "$work/answer" >&2; fail 'there is no probability'; }
kill "$server"
status=0
wait "$server" || status=$?
server=''
[ "$status" -eq 143 ] || fail "the server ended with $status; wanted 143"
echo 'serve_once: a request was scored'
