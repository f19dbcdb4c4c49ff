"""Shared by the peers on onnxruntime: a session tuned for small batches. All optimisations of the graph, operators one
after the other, and subnormal numbers as zero."""


def open_session(onnxruntime, path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
