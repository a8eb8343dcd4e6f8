# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models made from nodes and arrays, and their outputs at the optimisation levels 0 and 3.

Every function compiles in this process, without the compile cache.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import treadle

f32, i32, i64 = np.float32, np.int32, np.int64
LEVELS = (0, 3)
# The opset in which the IR version that a model declares came up is of no interest: 8 may leave weights out of the inputs.
IR_VERSION = 8


def kind_of(dtype):
    """ONNX's number of a NumPy dtype."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def declared(name, array_or_dtype, shape=None):
    """A value's declaration. `shape` may have names; None: that of the array, or no shape for a dtype."""
    if isinstance(array_or_dtype, (np.ndarray, np.generic)):
        return helper.make_tensor_value_info(name, kind_of(array_or_dtype.dtype), array_or_dtype.shape if shape is None else shape)
    return helper.make_tensor_value_info(name, kind_of(array_or_dtype), shape)


def model_of(nodes, inputs, outputs, opset=17, constants=None, ir_version=IR_VERSION):
    """A model. inputs: declarations, or arrays by name; outputs: dtypes by name; constants: arrays or TensorProtos by name."""
    infos = [declared(name, array) for name, array in inputs.items()] if isinstance(inputs, dict) else list(inputs)
    weights = []
    for name, value in (constants or {}).items():
        weights.append(value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), name))
    graph = helper.make_graph(nodes, "g", infos, [declared(name, dtype) for name, dtype in outputs.items()], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def session(model, level=3, **options):
    """The compiled model."""
    data = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    return treadle.InferenceSession(data, opt_level=level, threads=1, cache=False, **options)


def refused(model, *codes):
    """The text of the coded error with which a model is refused, which may not be an internal one."""
    try:
        session(model, 0)
    except treadle.InternalError:
        raise
    except treadle.Error as error:
        assert not codes or error.code in codes, str(error)
        return str(error)
    raise AssertionError("the model is accepted")


def close(actual, expected, rtol=1e-5, atol=1e-6):
    """Equal in dtype, shape and, within the tolerance, values; floats of 16 bits within their own precision. NaN equals NaN."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype, f"{actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"{actual.shape}, expected {expected.shape}"
    if actual.dtype.itemsize == 2 and actual.dtype.kind not in "biu":
        rtol, atol = max(rtol, 2e-3), max(atol, 1e-3)
        actual, expected = actual.astype(f32), expected.astype(f32)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def run(model, feed, levels=LEVELS):
    """The outputs by name, which are the same at all levels but for the order of sums."""
    results = []
    for level in levels:
        compiled = session(model, level)
        results.append(dict(zip((output.name for output in compiled.get_outputs()), compiled.run(None, feed))))
    for other in results[1:]:
        for name, value in results[0].items():
            largest = np.abs(value[np.isfinite(value)]).max(initial=1) if value.dtype.kind == "f" else 1
            close(other[name], value, 1e-4, 1e-5 * largest)
    return results[-1]


def first_dtype(inputs):
    return next(value for value in inputs.values() if value is not None).dtype


def node_model(op, inputs, opset=17, result=None, constants=None, outputs=1, **attributes):
    """A model of one node with the outputs y0, y1, …; its inputs are `inputs`, then `constants`, in order. An input None is left empty."""
    names = ["" if value is None else name for name, value in {**inputs, **(constants or {})}.items()]
    results = list(result) if isinstance(result, (list, tuple)) else [result or first_dtype(inputs)] * outputs
    node = helper.make_node(op, names, [f"y{i}" for i in range(len(results))], **attributes)
    given = {name: value for name, value in inputs.items() if value is not None}
    weights = {name: value for name, value in (constants or {}).items() if value is not None}
    return model_of([node], given, {f"y{i}": dtype for i, dtype in enumerate(results)}, opset, weights)


def one(op, inputs, opset=17, result=None, constants=None, outputs=1, levels=LEVELS, **attributes):
    """The output of a model of one node, or the list of its outputs when there are several."""
    model = node_model(op, inputs, opset, result, constants, outputs, **attributes)
    got = list(run(model, {name: value for name, value in inputs.items() if value is not None}, levels).values())
    return got[0] if len(got) == 1 else got


def folded(op, inputs, opset=17, result=None, outputs=1, **attributes):
    """As `one`, with all inputs known at import, so that folding and not machine code gives the answer."""
    result = result or first_dtype(inputs)
    model = node_model(op, {}, opset, [result] * outputs, inputs, **attributes)
    got = list(run(model, {}, (3,)).values())
    return got[0] if len(got) == 1 else got


def everywhere(op, inputs, opset=17, result=None, constants=None, **attributes):
    """The only output, which is the same for run-time and for known inputs."""
    computed = one(op, inputs, opset, result, constants, **attributes)
    close(folded(op, {**inputs, **(constants or {})}, opset, result or computed.dtype, **attributes), computed)
    return computed


def reference(model, feed):
    """The outputs that ONNX's reference evaluator gives, by name."""
    with np.errstate(all="ignore"):
        return dict(zip((output.name for output in model.graph.output), ReferenceEvaluator(model).run(None, feed)))


def peer(model, feed):
    """The outputs that ONNX Runtime gives, by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    other = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip((output.name for output in other.get_outputs()), other.run(None, feed)))


def same_as(judge, model, feed, levels=LEVELS, rtol=1e-5, atol=1e-5):
    """Checks the outputs against those of `judge`, which is `reference` or `peer`; gives them."""
    got, expected = run(model, feed, levels), judge(model, feed)
    for name, value in expected.items():
        close(got[name], value, rtol, atol)
    return got


def signal(*values, dtype=f32):
    """(1, 1, length)."""
    return np.array(values, dtype).reshape(1, 1, -1)


def numbers(*shape, seed=0, dtype=f32):
    """Random numbers between -2 and 2."""
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)
