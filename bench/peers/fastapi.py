#!/usr/bin/env python3
"""The peer of the scoring server: the model exported by phloem, in onnxruntime behind FastAPI and uvicorn.

    case MODEL.onnx threads=N   serves the model on a free port of the loopback
    port 0                      the port
    end

POST /score takes {"dense": [[13 numbers] ...], "ids": [[26 numbers] ...]} and answers {"probability": [...]}. Install it by
`pip install fastapi uvicorn uvloop httptools onnxruntime`; orjson is used where it is there.
Tuning: uvloop and httptools, no access log, no validation of the body by pydantic; a request is scored on the thread of the
event loop, which spares its switches; rows come as encoded numbers; onnxruntime as in onnx_session.py.
"""
import gc
import json
import socket
import sys
import threading
import time

import onnx_session
import protocol

sys.path.pop(0)  # this folder, whose files are named after the packages that they import

try:
    import fastapi
    import httptools  # noqa: F401
    import numpy
    import onnxruntime
    import uvicorn
    import uvloop  # noqa: F401
except (ImportError, OSError) as error:
    protocol.missing(error)

try:
    import orjson

    decode, encode = orjson.loads, orjson.dumps
except ImportError:
    decode, encode = json.loads, json.dumps

START_SECONDS = 60


def make_app(session):
    app = fastapi.FastAPI()

    @app.post("/score")
    async def score(request: fastapi.Request):
        rows = decode(await request.body())
        inputs = {"dense": numpy.array(rows["dense"], numpy.float32), "ids": numpy.array(rows["ids"], numpy.int64)}
        probability = session.run(["probability"], inputs)[0]
        answer = encode({"probability": probability.ravel().tolist()})
        return fastapi.Response(answer, media_type="application/json")

    return app


class Case:
    def __init__(self, model, options):
        app = make_app(onnx_session.open_session(onnxruntime, model, int(options["threads"])))
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="error")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)
        gc.freeze()
        self.thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self.server.started:
            if time.monotonic() > deadline or not self.thread.is_alive():
                raise protocol.Skipped("uvicorn did not start")
            time.sleep(0.01)

    def port(self, _):
        return self.socket.getsockname()[1]

    def close(self):
        self.server.should_exit = True
        self.thread.join(START_SECONDS)


protocol.serve(f"fastapi {fastapi.__version__} + onnxruntime {onnxruntime.__version__}", Case)
