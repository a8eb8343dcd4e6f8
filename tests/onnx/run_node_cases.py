#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the ONNX project's node test cases through treadle_onnx_tool and counts: passed, fixed (refused, but passed when the values of
the inputs are known at import), refused (an error with a code), wrong, crashed.

    run_node_cases.py build/release/tests/treadle_onnx_tool [--match TEXT] [--report FILE.json] [--jobs N]

Exit status 1 when an answer is wrong or the program crashed. A refusal is no failure, but the report lists its reason.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
import onnx.backend.test.case.node as node_cases  # noqa: E402

CODE = re.compile(r"TRD-[A-Z]+-\d+")
TIMEOUT = 120  # seconds for one case


def write_tensor(path, array):
    array = np.asarray(array)
    with open(path, "wb") as file:
        file.write((" ".join([str(array.dtype)] + [str(extent) for extent in array.shape]) + "\n").encode())
        file.write(array.tobytes())


def read_tensor(path):
    data = path.read_bytes()
    header, _, rest = data.partition(b"\n")
    name, *shape = header.decode().split()
    if name == "bfloat16":
        import ml_dtypes
        dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        dtype = np.dtype(name)
    return np.frombuffer(rest, dtype=dtype).reshape([int(extent) for extent in shape])


def differs(actual, expected, rtol, atol):
    """None when equal within the tolerance, else what is different."""
    expected = np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    # A result of 16 bits may differ by two units in the last place: the sums behind it are rounded in another order.
    if expected.dtype.itemsize == 2 and expected.dtype.kind not in "biu":
        rtol = max(rtol, 2 * (2**-10 if expected.dtype == np.float16 else 2**-7))
    wide = lambda a: a.astype(np.float64) if a.dtype.kind not in "biu" else a  # noqa: E731
    if expected.dtype.kind in "biu":
        if np.array_equal(actual, expected):
            return None
    elif np.allclose(wide(actual), wide(expected), rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"values {np.asarray(actual).ravel()[:6]}, expected {expected.ravel()[:6]}"


def run_case(tool, case):
    result, reason = run_once(tool, case, [])
    if result != "refused":
        return result, reason
    second, other = run_once(tool, case, ["fixed"])
    if second == "passed":
        return "fixed", reason
    return (second, "inputs fixed: " + other) if second in ("wrong", "crashed") else (result, reason)


def run_once(tool, case, options):
    """(result, reason)."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        for inputs, outputs in case.data_sets:
            for i, value in enumerate(inputs):
                if isinstance(value, np.ndarray) or np.isscalar(value):
                    if np.asarray(value).dtype.kind not in "OUS":
                        write_tensor(folder / f"input_{i}", value)
            try:
                done = subprocess.run([tool, "run", folder / "model.onnx", folder, *options], capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                return "crashed", "timeout"
            if done.returncode == 1 and (code := CODE.search(done.stderr)):
                first = done.stderr.strip().splitlines()[0]
                return ("crashed" if code.group() == "TRD-INT-001" else "refused"), first
            if done.returncode != 0:
                return "crashed", f"status {done.returncode}: {done.stderr.strip()[-300:]}"
            for i, value in enumerate(outputs):
                if (reason := differs(read_tensor(folder / f"output_{i}"), value, case.rtol, case.atol)):
                    return "wrong", f"output {i}: {reason}"
    return "passed", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--match", default="", help="regular expression on the case's name")
    parser.add_argument("--report", help="write a JSON list of [name, result, reason]")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    cases = [case for case in node_cases.collect_testcases(None) if re.search(arguments.match, case.name)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda case: run_case(arguments.tool, case), cases))
    report = [[case.name, *result] for case, result in zip(cases, results)]
    if arguments.report:
        pathlib.Path(arguments.report).write_text(json.dumps(report, indent=0))
    counts = collections.Counter(result for _, result, _ in report)
    for name, result, reason in report:
        if result in ("wrong", "crashed"):
            print(f"{result}: {name}: {reason}")
    reasons = collections.Counter(reason for _, result, reason in report if result == "refused")
    for reason, count in reasons.most_common(400):
        print(f"refused {count:4d}: {reason}")
    print(f"{len(report)} cases: " + ", ".join(f"{counts[key]} {key}" for key in ("passed", "fixed", "refused", "wrong", "crashed")))
    return 1 if counts["wrong"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
