#!/bin/sh
# The page of a running phloem serve: its figures as text, and as Chromium shows them: models, rates, latencies and curves, drawn anew
# from what the server says, which is the one host that the page asks. Without Chromium the test is skipped once the page has been
# looked at as text.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"
# shellcheck source=tests/system/browser_support.sh
. "$PH_SOURCE_DIR/tests/system/browser_support.sh"

# ask TENSOR: one request of two rows; curl fails where the server refuses it.
ask() { curl -fs "$address/v2/models/clicks/infer" -d "{\"inputs\": [$1]}" >answer.json; }

# send: two rows of numbers.
send() { ask '{"name": "I1", "datatype": "FP32", "shape": [2], "data": [12, 3]}'; }

# ---- a server with something to show -------------------------------------------------------------------------------
make_small_job
mkdir -p models/clicks models/broken/3
succeeds train job.yaml --out models/clicks/7 --quiet --set train.max_steps=2
begins serve models --http 127.0.0.1:0 --metrics 127.0.0.1:0 --set serve.grpc_address= --set serve.log=none
trap 'kill "$process" 2>/dev/null || true; rm -rf "$work"' EXIT
waits_for grep -q '^REST ' stdout
address=$(sed -n 's/^REST  *//p' stdout)
waits_for curl -fs "$address/v2/health/ready"
if ask '{"name": "nonsense", "datatype": "FP32", "shape": [1], "data": [1]}'; then complain 'an unknown input is scored'; fi
: >page.html
until python3 "$PH_SOURCE_DIR/tests/system/page_check.py" series page.html requests-0 4 >stdout 2>stderr; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        send || complain 'the server does not answer'
    done
    curl -fs "$address/" >page.html || complain 'there is no page'
done

# ---- the page as text ----------------------------------------------------------------------------------------------
check sound page.html
for id in rows-0 median-0 tail-0; do
    check series page.html "$id" 4
done
python3 - >stdout 2>stderr <<'END' || complain 'the page has other figures'
import json, re
document = json.loads(re.search(r'id="document">(.*?)</script>', open("page.html").read(), re.DOTALL)[1])
tables = {block["id"]: block for section in document["sections"] for block in section["blocks"] if block["kind"] == "table"}
(row,) = tables["versions"]["rows"]
of = dict(zip([column["name"] for column in tables["versions"]["columns"]], row))
assert (of["model"], of["version"], of["waiting"], of["failed"]) == ("clicks", 7, 0, 1), of
assert of["requests/s"] > 0 and abs(of["rows/s"] - 2 * of["requests/s"]) <= 1e-6 * of["rows/s"], of
assert 0 < of["median, ms"] <= of["p99, ms"] and of["answered"] >= 10 and of["weights"] > 0, of
states = {(name, version): (state, reason) for name, version, state, reason in tables["index"]["rows"]}
assert states[("clicks", "7")] == ("READY", "") and "encoder.json" in states[("broken", "3")][1], states
END

# ---- the page in a browser -----------------------------------------------------------------------------------------
cat >elsewhere.json <<'END'
{"events": [{"params": {"url": "http://here:1/live.json", "initiator": "http://here:1"}},
            {"params": {"url": "http://there:1/font", "initiator": "http://here:1"}}]}
END
must_fail asked elsewhere.json http://here:1 1
must_fail asked elsewhere.json http://nowhere:1 1
needs_browser
browse --log-net-log="$work/network.json" --dump-dom "$address/"
is_quiet || complain "the page complains: $(grep ':CONSOLE' stderr)"
cp stdout shown.html
contains shown.html '<td class="name">clicks</td><td class="name">7</td>'
contains shown.html '<td class="name">broken</td><td class="name">3</td>'
if grep -qF 'class="state">the server does not answer' shown.html; then complain 'the page does not hear of the server'; fi
for id in requests-0 rows-0 median-0 tail-0; do
    check curve shown.html "$id" 4
done
check asked network.json "$address" 3

# A page whose server has gone says so.
kill -s TERM "$process"
ends 143
browse --dump-dom "file://$work/page.html"
contains stdout 'class="state">the server does not answer'
