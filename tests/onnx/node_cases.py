# SPDX-License-Identifier: Apache-2.0
"""Runs node tests of the onnx package through Treadle: one shard of them, a result as a line of JSON for each.

  node_cases.py --shard I/N [--level L] [--only TEXT] [--every K] [--after NAME]

The name of a case is printed before it runs, so that the caller knows at which one the process died. A result is "passed", "refused" (an error with
a code), or "wrong". It needs the package treadle on its path.
"""

import argparse
import faulthandler
import json
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.case.node import collect_testcases

import treadle


def collect():
    """All cases, sorted by name: each with model, data_sets, rtol and atol."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return sorted(collect_testcases(None), key=lambda case: case.name)


def operators(case):
    """The (domain, operator, since-version) that a case tests: those of its nodes."""
    versions = {opset.domain: opset.version for opset in case.model.opset_import}
    found = []
    for node in case.model.graph.node:
        try:
            since = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain).since_version
        except onnx.defs.SchemaError:
            since = versions.get(node.domain, 1)
        found.append((node.domain, node.op_type, since))
    return sorted(set(found))


def as_array(value):
    """The array of a case's input or output, which may be a TensorProto."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def difference(actual, expected, rtol, atol):
    """What is different, or "" when equal within the tolerance, which is at least 2 units in the last place of the dtype: the reference
    rounds after each operator and sums in an order of its own."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if expected.dtype.kind in "biu":
        good = actual == expected
    else:
        rtol = max(rtol, 2 * float(ml_dtypes.finfo(expected.dtype).eps))
        good = np.isclose(actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)
    if good.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"{int((~good).sum())} of {good.size} values differ, at {at}: {actual[at]}, expected {expected[at]}"


def is_random(case):
    """Whether only shape and dtype of the outputs are defined."""
    return any(node.op_type in ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial") for node in case.model.graph.node)


def run_case(case, level):
    """(result, reason) of one case."""
    try:
        session = treadle.InferenceSession(case.model.SerializeToString(), opt_level=level, threads=1, cache=False)
        for inputs, outputs in case.data_sets:
            names = [info.name for info in session.get_inputs()]
            # A case lists its inputs in the graph's order.
            given = dict(zip((info.name for info in case.model.graph.input), inputs))
            feed = {name: as_array(given[name]) for name in names}
            results = session.run(None, feed)
            for i, (actual, expected) in enumerate(zip(results, outputs, strict=True)):
                rtol = case.rtol if not is_random(case) else np.inf
                reason = difference(actual, as_array(expected), rtol, case.atol)
                if reason:
                    return "wrong", f"output {i}: {reason}"
        return "passed", ""
    except treadle.InternalError as error:
        return "wrong", str(error).splitlines()[0]
    except treadle.Error as error:
        return "refused", f"{error.code} {error.message}"


def main():
    faulthandler.enable()
    parser = argparse.ArgumentParser()
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--after", default="", help="skip the cases up to this one")
    arguments = parser.parse_args()
    shard, count = (int(part) for part in arguments.shard.split("/"))
    cases = [case for case in collect()[:: arguments.every] if arguments.only in case.name]
    for case in cases[shard::count]:
        if case.name <= arguments.after:
            continue
        print(json.dumps({"case": case.name}), flush=True)
        result, reason = run_case(case, arguments.level)
        print(json.dumps({"case": case.name, "operators": operators(case), "result": result, "reason": reason}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
