#!/bin/sh
# The peers of the benchmarks that are importable here, on a small case: what they answer to each line.
# PHLOEM_BENCH_PYTHON names the interpreter, as for ./run bench.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"
# shellcheck source=tests/system/peer_support.sh
. "$PH_SOURCE_DIR/tests/system/peer_support.sh"

# What a benchmark writes: two batches of four samples, three tables of ten rows, two ids a bag.
mkdir case
"$python" - <<'END'
import array, json, random

sizes = {"num_dense": 13, "tables": 3, "rows": 10, "dim": 8, "batch": 4, "pooling": 2, "num_batches": 2}
json.dump({**sizes, "bottom": [16], "top": [16, 8]}, open("case/case.json", "w"))
array.array("f", [random.random() for _ in range(2 * 4 * 13)]).tofile(open("case/dense.f32", "wb"))
array.array("f", [i % 2 for i in range(2 * 4)]).tofile(open("case/labels.f32", "wb"))
array.array("q", [random.randrange(10) for _ in range(2 * 3 * 4 * 2)]).tofile(open("case/ids.i64", "wb"))
END

mkdir huge
cp case/* huge
sed 's/"rows": 10,/"rows": 1000000000000,/' case/case.json >huge/case.json

# Compiling takes a minute: the benchmark itself sees whether it works here.
answers torch ready "$seconds" "$seconds" "$seconds $seconds $seconds" ready "$seconds" 'skipped .*rowwise_adagrad' \
    'skipped no case was given' 'skipped .*nowhere/case.json.*' 'skipped .*GiB.*' ready "$seconds" ended \
    'skipped no case was given' <<'END'
case case threads=1 optimizer=adagrad mode=eager precision=fp32 batch=4
train 2
infer 2
latency 3
case case threads=1 optimizer=sgd mode=eager precision=bf16 batch=1 for=infer
latency 1
case case threads=1 optimizer=rowwise_adagrad
train 1
case nowhere threads=1
case huge threads=1
case case threads=2 optimizer=sgd for=train
train 1
end
train 1
END
answers fbgemm ready "$seconds" "$seconds" ready "$seconds" ready "$seconds" 'skipped .*no update' \
    'skipped .*GiB.*' <<'END'
case case threads=1 optimizer=rowwise_adagrad rows=fp32
forward 2
update 2
case case threads=1 optimizer=adagrad rows=fp16
update 1
case case threads=1 rows=int4
forward 1
update 1
case huge threads=1
END
answers torch_ranks ready "$seconds" ended 'skipped no case was given' <<'END'
case dense batch=7 features=4 units=3,2 ranks=2
train 2
end
train 1
END
make_small_job
succeeds train job.yaml --out run --quiet
succeeds export run --onnx model.onnx
answers fastapi ready '[1-9][0-9]*' ended 'skipped .*nowhere.onnx.*' <<'END'
case model.onnx threads=1
port 0
end
case nowhere.onnx threads=1
END
skips_if_none_is_there
