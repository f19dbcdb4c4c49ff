#!/usr/bin/env python3
"""phloem serve against Triton's own clients: every call of tritonclient.http and tritonclient.grpc that the server
answers, errors with their text, and scores bit for bit those of phloem predict, however rows are split into requests.

usage: serve_triton.py PHLOEM

Makes data and two small models, serves both as versions of one model on free ports, and calls. Ends with 77 where
tritonclient (pip install 'tritonclient[http,grpc]') is importable neither here nor by $PHLOEM_BENCH_PYTHON.
"""
import contextlib
import http.client
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import tritonclient.grpc as triton_grpc
    import tritonclient.http as triton_http
    from tritonclient.utils import InferenceServerException
except ImportError as missing:
    other = os.environ.pop("PHLOEM_BENCH_PYTHON", None)
    if other:
        os.execvp(other, [other, *sys.argv])
    print(f"skipped: {missing}")
    sys.exit(77)

SEED = 29
NUM_ROWS = 500
NUM_SPLITS = 10000
IN_FLIGHT = 64
PATIENCE = 120  # seconds, for what takes far less
SYNTH = ["synth.train_rows=2000", "synth.valid_rows=0", f"synth.test_rows={NUM_ROWS}", "synth.dense=3", "synth.sparse=4",
         "synth.table_rows=50", "synth.bag_sizes=1,1,1,3"]
TRAIN = ["model.kind=dlrm", "model.embedding_dim=8", "model.bottom_units=16", "model.top_units=16", "train.max_steps=20",
         "train.batch_size=100"]


def run(*command):
    finished = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE)
    if finished.returncode != 0:
        sys.exit(f"{command[1]} ended with {finished.returncode}:\n{finished.stderr}")


def sets(values):
    return [word for value in values for word in ("--set", value)]


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: still not after {PATIENCE} s"
        time.sleep(0.02)


def fails(text, call, *arguments, **options):
    """Calls, which must raise an error of exactly this text; "[404] ..." or "[StatusCode.NOT_FOUND] ...": its code."""
    try:
        call(*arguments, **options)
    except InferenceServerException as error:
        assert str(error) == text, f"'{error}', but '{text}' was expected"
        return
    raise AssertionError(f"no error, but '{text}' was expected")


# ---- rows and servers ----


class Rows:
    """The rows of a file: as lines with and without labels, and as columns."""

    def __init__(self, path):
        header, *self.lines = path.read_text(encoding="utf-8").splitlines()
        self.names = header.split("\t")
        self.bare = [line.split("\t", 1)[1] for line in self.lines]
        self.cells = [dict(zip(self.names, line.split("\t"))) for line in self.lines]

    def as_lines(self, wire, rows, binary=True, has_labels=True):
        texts = self.lines if has_labels else self.bare
        return [tensor(wire, "lines", "BYTES", [[texts[row].encode()] for row in rows], binary)]

    def as_columns(self, wire, rows, binary=True):
        """Dense values as FP32, ids as INT64 or text, the list as Merlin's pair of values and offsets."""
        cells = [self.cells[row] for row in rows]
        lists = [[int(part) for part in cell["C4"].split(self.separator)] for cell in cells]
        offsets = np.cumsum([0] + [len(ids) for ids in lists])
        return [*(tensor(wire, name, "FP32", [[float(cell[name])] for cell in cells], binary) for name in ("I1", "I2", "I3")),
                tensor(wire, "C1", "INT64", [int(cell["C1"]) for cell in cells], binary),
                tensor(wire, "C2", "BYTES", [[cell["C2"].encode()] for cell in cells], binary),
                tensor(wire, "C3", "INT64", [[int(cell["C3"])] for cell in cells], binary),
                tensor(wire, "C4__values", "INT64", [number for ids in lists for number in ids], binary),
                tensor(wire, "C4__offsets", "INT32", offsets, binary)]

    @property
    def separator(self):
        return next(letter for letter in self.cells[0]["C4"] if not letter.isdigit())


def tensor(wire, name, datatype, values, binary=True):
    dtype = {"BYTES": np.object_, "FP32": np.float32, "INT64": np.int64, "INT32": np.int32}[datatype]
    array = np.array(values, dtype=dtype)
    made = wire.InferInput(name, list(array.shape), datatype)
    if wire is triton_http:
        made.set_data_from_numpy(array, binary_data=binary)
    else:
        made.set_data_from_numpy(array)
    return made


@contextlib.contextmanager
def served(program, repository, *arguments):
    """A server on free ports: (HTTP client, gRPC client, address of REST, address of metrics). A signal must end it well."""
    command = [program, "serve", repository, *(f"--{wire}=127.0.0.1:0" for wire in ("http", "grpc", "metrics")), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            addresses = {}
            for line in server.stdout:
                name, address = line.split()
                addresses[name] = address.replace("http://", "").replace("/metrics", "")
                if name == "metrics":
                    break
            assert len(addresses) == 3, server.communicate()[1]
            with triton_http.InferenceServerClient(addresses["REST"], concurrency=IN_FLIGHT) as rest, \
                    triton_grpc.InferenceServerClient(addresses["gRPC"]) as grpc:
                wait_for(rest.is_server_ready, "the server is ready")
                yield rest, grpc, addresses["REST"], addresses["metrics"]
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=PATIENCE)
            assert server.returncode == 143, f"the server ended with {server.returncode}:\n{errors}"
        finally:
            server.kill()


# ---- calls that describe ----


def check_health(rest, grpc):
    for client in (rest, grpc):
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("click") and client.is_model_ready("click", "1") and client.is_model_ready("click", "2")
    for client in (rest, grpc):
        assert not client.is_model_ready("nope") and not client.is_model_ready("click", "3")


def check_metadata(rest, grpc):
    meta, same = rest.get_server_metadata(), grpc.get_server_metadata(as_json=True)
    assert meta == same and meta["name"] == "phloem", (meta, same)
    assert {"binary_tensor_data", "model_repository", "statistics"} <= set(meta["extensions"]), meta
    model, same = rest.get_model_metadata("click", "2"), grpc.get_model_metadata("click", "2", as_json=True)
    for tensor_meta in same["inputs"] + same["outputs"]:  # protobuf's JSON has int64 as text
        tensor_meta["shape"] = [int(extent) for extent in tensor_meta["shape"]]
    assert model == same, (model, same)
    assert model["versions"] == ["1", "2"] and model["platform"] == "phloem", model
    inputs = {entry["name"]: (entry["datatype"], entry["shape"]) for entry in model["inputs"]}
    assert inputs == {"I1": ("FP32", [-1, 1]), "I2": ("FP32", [-1, 1]), "I3": ("FP32", [-1, 1]), "C1": ("BYTES", [-1, 1]),
                      "C2": ("BYTES", [-1, 1]), "C3": ("BYTES", [-1, 1]), "C4": ("BYTES", [-1, 1]),
                      "C4__values": ("INT64", [-1]), "C4__offsets": ("INT32", [-1]), "lines": ("BYTES", [-1, 1])}, inputs
    outputs = {entry["name"]: (entry["datatype"], entry["shape"]) for entry in model["outputs"]}
    assert outputs == {name: ("FP32", [-1, 1]) for name in ("probability", "logit")}, outputs


def check_config(rest, grpc):
    config, same = rest.get_model_config("click"), grpc.get_model_config("click", as_json=True)["config"]
    assert config["name"] == same["name"] == "click"
    assert config["max_batch_size"] == same["max_batch_size"] == 32, config  # by serve.yaml
    assert [(entry["name"], entry["data_type"], entry["dims"]) for entry in config["output"]] == \
        [(name, "TYPE_FP32", [1]) for name in ("probability", "logit")], config["output"]
    assert [entry["name"] for entry in config["input"]] == [entry["name"] for entry in same["input"]]
    assert [entry["data_type"] for entry in config["input"]] == [entry["data_type"] for entry in same["input"]]
    assert "dynamic_batching" in config


def check_index(rest, grpc):
    wanted = [("click", "1", "READY"), ("click", "2", "READY")]
    found = [(entry["name"], entry["version"], entry["state"]) for entry in rest.get_model_repository_index()]
    assert found == wanted, found
    found = [(entry.name, entry.version, entry.state) for entry in grpc.get_model_repository_index().models]
    assert found == wanted, found


def check_statistics(rest, grpc, rows):
    def counts():
        entry = rest.get_inference_statistics("click", "1")["model_stats"][0]
        same = grpc.get_inference_statistics("click", "1").model_stats[0]
        assert (entry["name"], entry["version"]) == (same.name, same.version) == ("click", "1")
        found = (entry["inference_count"], entry["execution_count"], entry["inference_stats"]["success"]["count"],
                 entry["inference_stats"]["fail"]["count"])
        assert found == (same.inference_count, same.execution_count, same.inference_stats.success.count,
                         same.inference_stats.fail.count), (entry, same)
        assert sum(batch["batch_size"] * batch["compute_infer"]["count"] for batch in entry["batch_stats"]) == found[0]
        assert all(entry["inference_stats"][name]["ns"] >= 0 for name in ("queue", "compute_input", "compute_output"))
        assert entry["memory_usage"][0]["byte_size"] > 0
        return np.array(found)

    before = counts()
    rest.infer("click", rows.as_lines(triton_http, range(5)), model_version="1")
    with contextlib.suppress(InferenceServerException):
        rest.infer("click", [tensor(triton_http, "nope", "INT64", [1])], model_version="1")
    assert list(counts() - before) == [5, 1, 1, 1], counts() - before
    assert len(rest.get_inference_statistics()["model_stats"]) == 2
    assert len(grpc.get_inference_statistics().model_stats) == 2


def check_metrics(address):
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    for sample in ('nv_inference_request_success{model="click",version="1"}', 'nv_inference_count{model="click",version="2"}',
                   'nv_inference_request_failure{model="click",version="1",reason="OTHER"}',
                   'nv_inference_pending_request_count{model="click",version="2"} 0'):
        assert sample in text, f"no {sample} in\n{text}"


def check_trace(rest, grpc):
    """Settings of all models, and of one; no value clears."""
    def rates(model):
        same = grpc.get_trace_settings(model, as_json=True)["settings"]["trace_rate"]["value"]
        assert same == [rest.get_trace_settings(model)["trace_rate"]], same
        return same[0]

    for client in (rest, grpc):
        client.update_trace_settings("click", {"trace_rate": "7", "trace_level": ["TIMESTAMPS"]})
        client.update_trace_settings(settings={"trace_rate": "9"})
        assert rates("click") == "7" and rates(None) == "9"
        client.update_trace_settings("click", {"trace_rate": None})
        assert rates("click") == "9"
        client.update_trace_settings(settings={"trace_rate": None})
        assert rates("click") == rates(None) == "1000"
    fails("[404] the repository has no model 'nope'", rest.update_trace_settings, "nope", {"trace_rate": "7"})
    fails("[StatusCode.NOT_FOUND] the repository has no model 'nope'", grpc.get_trace_settings, "nope")


# ---- scores ----


def scores_of(result, name="probability"):
    return result.as_numpy(name)[:, 0]


def same_bits(scores, wanted, what):
    assert scores.dtype == np.float32 and scores.shape == wanted.shape, (what, scores.dtype, scores.shape)
    assert np.array_equal(scores.view(np.uint32), wanted.view(np.uint32)), f"{what}: scores differ from phloem predict's"


def check_infer(rest, grpc, rows, wanted):
    """Each way to send and to get, for each version; the newest is the default."""
    every = range(NUM_ROWS)
    for version, scores in (("1", wanted[1]), ("2", wanted[2]), ("", wanted[2])):
        for form in (rows.as_lines, rows.as_columns):
            for binary in (True, False):
                asked = [triton_http.InferRequestedOutput("probability", binary_data=binary)]
                result = rest.infer("click", form(triton_http, every, binary), version, asked, request_id="seven")
                same_bits(scores_of(result), scores, f"http, binary {binary}, {form.__name__}, version '{version}'")
                response = result.get_response()
                assert response["model_name"] == "click" and response["model_version"] == (version or "2"), response
                assert response["id"] == "seven" and [out["name"] for out in response["outputs"]] == ["probability"], response
            result = grpc.infer("click", form(triton_grpc, every), version, request_id="seven")
            same_bits(scores_of(result), scores, f"grpc, {form.__name__}, version '{version}'")
            assert result.get_response().id == "seven" and result.get_response().model_version == (version or "2")
            assert [out.name for out in result.get_response().outputs] == ["probability", "logit"]
    bare = rest.infer("click", rows.as_lines(triton_http, every, has_labels=False))
    same_bits(scores_of(bare), wanted[2], "lines without labels")
    logits = scores_of(bare, "logit").astype(np.float64)
    assert np.abs(1 / (1 + np.exp(-logits)) - wanted[2]).max() < 1e-6
    mixed = [triton_http.InferRequestedOutput("logit", binary_data=False), triton_http.InferRequestedOutput("probability")]
    result = rest.infer("click", rows.as_lines(triton_http, every), outputs=mixed, priority=1, timeout=PATIENCE * 10**6)
    same_bits(scores_of(result), wanted[2], "one output in binary, one in JSON")
    same_bits(scores_of(result, "logit"), scores_of(bare, "logit"), "logits as JSON")


def check_compression(rest, address, rows, wanted):
    for algorithm in ("gzip", "deflate"):
        for binary in (True, False):
            result = rest.infer("click", rows.as_lines(triton_http, range(NUM_ROWS), binary), request_compression_algorithm=algorithm)
            same_bits(scores_of(result), wanted, f"{algorithm}, binary {binary}")
    assert post(address, "/v2/models/click/infer", b"{}", {"Content-Encoding": "br"}) == (
        501, {"error": "content-encoding 'br': only gzip and deflate"})


def check_async(rest, grpc, rows, wanted):
    picks = [range(first, first + 10) for first in range(0, NUM_ROWS, 10)]
    waiting = [rest.async_infer("click", rows.as_lines(triton_http, pick)) for pick in picks]
    for pick, request in zip(picks, waiting):
        same_bits(scores_of(request.get_result()), wanted[pick], "http async_infer")
    answers = queue.Queue()
    for number, pick in enumerate(picks):
        grpc.async_infer("click", rows.as_lines(triton_grpc, pick),
                         lambda result, error, number=number: answers.put((number, result, error)))
    for _ in picks:
        number, result, error = answers.get(timeout=PATIENCE)
        assert error is None, error
        same_bits(scores_of(result), wanted[picks[number]], "grpc async_infer")


def check_stream(grpc, rows, wanted):
    """Answers carry the request's id; an error is one answer, and the stream goes on."""
    answers, picks = queue.Queue(), [range(first, first + 5) for first in range(0, NUM_ROWS, 5)]
    grpc.start_stream(lambda result, error: answers.put((result, error)))
    for number, pick in enumerate(picks):
        grpc.async_stream_infer("click", rows.as_lines(triton_grpc, pick), request_id=str(number))
    grpc.async_stream_infer("nope", rows.as_lines(triton_grpc, [0]), request_id="wrong")
    seen, errors = set(), []
    for _ in range(len(picks) + 1):
        result, error = answers.get(timeout=PATIENCE)
        if error is not None:
            errors.append(error.message())
            continue
        number = int(result.get_response().id)
        same_bits(scores_of(result), wanted[picks[number]], "grpc stream")
        seen.add(number)
    assert len(seen) == len(picks) and errors == ["the repository has no model 'nope'"], (len(seen), errors)
    grpc.async_stream_infer("click", rows.as_lines(triton_grpc, [1]))
    result, error = answers.get(timeout=PATIENCE)
    assert error is None
    same_bits(scores_of(result), wanted[[1]], "a stream behind an error")
    grpc.stop_stream()


# ---- errors ----


def post(address, path, body, headers):
    """(status, JSON) of a request that no client makes."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    result = answer.status, json.loads(answer.read())
    connection.close()
    return result


def check_errors(rest, grpc, address, rows):
    clients = ((rest, triton_http, "[404] ", "[400] ", "[501] "),
               (grpc, triton_grpc, "[StatusCode.NOT_FOUND] ", "[StatusCode.INVALID_ARGUMENT] ", "[StatusCode.UNIMPLEMENTED] "))
    for client, wire, not_found, invalid, unsupported in clients:
        row = rows.as_lines(wire, [0])
        cases = [
            (not_found + "the repository has no model 'nope'", "nope", row, {}),
            (not_found + "model 'click' has no version '7'", "click", row, {"model_version": "7"}),
            (invalid + "the model has no input 'colour'", "click", [tensor(wire, "colour", "INT64", [1])], {}),
            (invalid + "model 'click' has no output 'colour'", "click", row, {"outputs": [wire.InferRequestedOutput("colour")]}),
            (invalid + "tensor 'I1': the shape must be [B] or [B,1]", "click", [tensor(wire, "I1", "FP32", [[1, 2]])], {}),
            (invalid + "tensor 'I2' has 2 rows, but 'I1' has 1", "click",
             [tensor(wire, "I1", "FP32", [1]), tensor(wire, "I2", "FP32", [1, 2])], {}),
            (invalid + "'C4__values' needs 'C4__offsets'", "click", [tensor(wire, "C4__values", "INT64", [1])], {}),
            (invalid + "'lines': the datatype must be BYTES", "click", [tensor(wire, "lines", "INT64", [1])], {}),
            (invalid + "the request has no inputs", "click", [], {}),
        ]
        for text, model, inputs, options in cases:
            fails(text, client.infer, model, inputs, **options)
        fails(not_found + "the repository has no model 'nope'", client.get_model_metadata, "nope")
        fails(not_found + "the repository has no model 'nope'", client.get_model_config, "nope")
        fails(not_found + "the repository has no model 'nope'", client.get_inference_statistics, "nope")
        text = "models are loaded and unloaded by clients only with serve.control: explicit"
        fails(unsupported + text, client.load_model, "click")
        fails(unsupported + text, client.unload_model, "click")
        try:
            client.infer("click", [tensor(wire, "C1", "BYTES", [b"7", b"100000"])])
            raise AssertionError("an id beyond its table is scored")
        except InferenceServerException as error:
            assert str(error).startswith(invalid + "row 1: "), error
            assert "'C1'" in str(error) and "'100000'" in str(error), error
    status, answer = post(address, "/v2/models/click/infer", b'{"inputs":[', {})
    assert status == 400 and answer["error"], answer
    status, answer = post(address, "/v2/models/click/infer", b"{}", {"Inference-Header-Content-Length": "9"})
    assert status == 400 and answer["error"], answer
    assert post(address, "/v2/nowhere", b"", {})[0] == 404


# ---- loading ----


def check_control(program, repository, rows, wanted):
    with served(program, repository, "--control=explicit") as (rest, grpc, _, _):
        for client, wire, invalid, unsupported in (
                (rest, triton_http, "[400] ", "[501] "),
                (grpc, triton_grpc, "[StatusCode.INVALID_ARGUMENT] ", "[StatusCode.UNIMPLEMENTED] ")):
            assert not rest.is_model_ready("click") and not grpc.is_model_ready("click")
            client.load_model("click")
            assert client.is_model_ready("click") and client.is_model_ready("click", "1")
            same_bits(scores_of(client.infer("click", rows.as_lines(wire, range(9)))), wanted[:9], "a model that was loaded")
            fails(invalid + "failed to load 'nope': the repository has no such model", client.load_model, "nope")
            client.load_model("click", config=json.dumps({"max_batch_size": 8, "version_policy": {"specific": {"versions": [1]}}}))
            assert client.is_model_ready("click", "1") and not client.is_model_ready("click", "2")
            config = grpc.get_model_config("click", as_json=True)["config"]
            assert config["max_batch_size"] == 8, config
            client.load_model("click", config=json.dumps(config))  # with protobuf's JSON of all that is known
            assert client.is_model_ready("click", "2")
            fails(invalid + "JSON, byte 19, 'instance_group': the key is not supported",
                  client.load_model, "click", config=json.dumps({"instance_group": [{"count": 2}]}))
            fails(unsupported + "'file:1/x': models are loaded as they are in the repository; only 'config', a text, is taken",
                  client.load_model, "click", config="{}", files={"file:1/x": b"x"})
            client.load_model("click")
            assert rest.get_model_config("click")["max_batch_size"] == 32
            client.unload_model("click")
            wait_for(lambda client=client: not client.is_model_ready("click"), "the model is unloaded")
            wait_for(lambda: all(entry["state"] == "UNAVAILABLE" for entry in rest.get_model_repository_index()), "unloading")
            fails(invalid + "failed to unload 'nope': the repository has no such model", client.unload_model, "nope")


# ---- splits ----


def splits(rng):
    """Pieces of all rows in a random order, again and again; most are small, some larger than a batch."""
    while True:
        order, first = rng.permutation(NUM_ROWS), 0
        while first < NUM_ROWS:
            size = int(rng.integers(33, 150)) if rng.random() < 0.005 else int(rng.integers(1, 8))
            yield order[first:first + size]
            first += size


def check_splits(rest, grpc, rows, wanted):
    """Most requests go over gRPC, many in flight; between them some over REST, in binary and in JSON. Few go by
    async_infer of REST, whose client sleeps 10 ms a call."""
    rng, answers, pieces = np.random.default_rng(SEED), queue.Queue(), splits(np.random.default_rng(SEED))
    print(f"seed {SEED}")
    before = rest.get_inference_statistics("click", "1")["model_stats"][0]
    outputs = {binary: [triton_http.InferRequestedOutput("probability", binary_data=binary)] for binary in (True, False)}
    num_sent, num_rows = 0, 0

    def check(piece, result, error=None):
        assert error is None, error
        same_bits(scores_of(result), wanted[piece], f"rows {list(piece)}")

    while num_sent < NUM_SPLITS:
        num_flying, waiting = 0, []
        for _ in range(min(IN_FLIGHT, NUM_SPLITS - num_sent)):
            piece, way, binary = next(pieces), rng.random(), rng.random() < 0.7
            form = rows.as_columns if rng.random() < 0.1 else rows.as_lines
            num_sent, num_rows = num_sent + 1, num_rows + len(piece)
            if way < 0.6:
                grpc.async_infer("click", form(triton_grpc, piece),
                                 lambda result, error, piece=piece: answers.put((piece, result, error)), "1")
                num_flying += 1
            elif way < 0.98:
                check(piece, rest.infer("click", form(triton_http, piece, binary), "1", outputs[binary]))
            else:
                waiting.append((piece, rest.async_infer("click", form(triton_http, piece, binary), "1", outputs[binary])))
        for piece, request in waiting:
            check(piece, request.get_result())
        for _ in range(num_flying):
            check(*answers.get(timeout=PATIENCE))
    after = rest.get_inference_statistics("click", "1")["model_stats"][0]
    counted, batches = (after[name] - before[name] for name in ("inference_count", "execution_count"))
    assert counted == num_rows, (counted, num_rows)
    assert batches < NUM_SPLITS, "no request shared a batch with another"
    print(f"{NUM_SPLITS} requests of {num_rows} rows, in {batches} batches: the bits of phloem predict")


def main(program):
    folder = pathlib.Path(tempfile.mkdtemp())
    repository, data = folder / "repository", folder / "data"
    run(program, "synth", "--out", data, *sets(SYNTH))
    wanted = {}
    for version in (1, 2):
        made = folder / f"run{version}"
        run(program, "train", data / "synth.yaml", "--out", made, *sets(TRAIN), "--set", f"seed={version}", "--threads", 1)
        run(program, "predict", made, data / "test.tsv", "--out", folder / "scores.npy")
        wanted[version] = np.load(folder / "scores.npy").reshape(-1)
        shutil.copytree(made, repository / "click" / str(version))
    (repository / "click" / "serve.yaml").write_text("versions: all\nmax_batch: 32\nmax_queue_delay_us: 300\n")
    rows = Rows(data / "test.tsv")
    assert not np.array_equal(wanted[1], wanted[2])
    with served(program, repository) as (rest, grpc, address, metrics):
        check_health(rest, grpc)
        check_metadata(rest, grpc)
        check_config(rest, grpc)
        check_index(rest, grpc)
        check_infer(rest, grpc, rows, wanted)
        check_compression(rest, address, rows, wanted[2])
        check_async(rest, grpc, rows, wanted[2])
        check_stream(grpc, rows, wanted[2])
        check_errors(rest, grpc, address, rows)
        check_statistics(rest, grpc, rows)
        check_metrics(metrics)
        check_trace(rest, grpc)
        check_splits(rest, grpc, rows, wanted[1])
    check_control(program, repository, rows, wanted[2])
    shutil.rmtree(folder)
    print("serve: fine")


if __name__ == "__main__":
    main(sys.argv[1])
