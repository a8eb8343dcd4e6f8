#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ONNX project's own node tests: each passes or is refused with a code; none gives a wrong answer or ends the process.

  PYTHONPATH=build/release/python build/venv/bin/python tests/onnx/test_node_cases.py --update    writes docs/onnx-coverage.md
"""

import collections
import json
import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "onnx-coverage.md"
CASE_SECONDS = 120  # for one case
START_SECONDS = 300  # until a process has collected all cases
AT_LEAST = 900  # cases that pass

pytest.importorskip("onnx")


class Shard:
    """Cases shard, shard + count, … in processes of their own: a new one after each that dies or hangs."""

    def __init__(self, shard, count, options):
        self.command = [sys.executable, str(HERE / "node_cases.py"), "--shard", f"{shard}/{count}", *options]
        self.results = []

    def run(self):
        last = ""
        while last is not None:
            last = self._run_after(last)

    def _run_after(self, last):
        """Runs the cases after `last`; gives the name of the case at which the process died, or None."""
        process = subprocess.Popen([*self.command, "--after", last], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        lines, errors = queue.Queue(), []
        readers = [threading.Thread(target=lambda: [*map(lines.put, process.stdout), lines.put(None)], daemon=True),
                   threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)]
        for reader in readers:
            reader.start()
        current, reason = None, ""
        try:
            while (line := lines.get(timeout=CASE_SECONDS if current else START_SECONDS)) is not None:
                entry = json.loads(line)
                current = entry["case"]
                if "result" in entry:
                    self.results.append(entry)
                    last, current = current, None
        except queue.Empty:
            reason = "no answer in time"
        process.kill() if reason else None
        status = process.wait()
        readers[1].join()
        if current is None and status == 0:
            return None
        text = "".join(errors)[-1500:]
        assert current, f"the process failed after case {last!r}, status {status}: {reason} {text}"
        self.results.append({"case": current, "operators": [], "result": "crashed", "reason": reason or f"status {status}: {text}"})
        return current


def run_cases(*options):
    """The results of all cases, sorted by name."""
    count = len(os.sched_getaffinity(0))
    shards = [Shard(i, count, options) for i in range(count)]
    threads = [threading.Thread(target=shard.run) for shard in shards]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted((entry for shard in shards for entry in shard.results), key=lambda entry: entry["case"])


def faults(results):
    return [f"{entry['result']}: {entry['case']}: {entry['reason']}" for entry in results if entry["result"] in ("wrong", "crashed")]


def short(reason):
    """A refusal without the parts that differ from case to case."""
    return re.sub(r"\s+", " ", reason)[:110]


def page(results):
    """docs/onnx-coverage.md."""
    import onnx

    from treadle import _treadle

    rules = collections.defaultdict(list)
    for domain, name, since in _treadle.onnx_operators():
        rules[(domain, name)].append(since)
    rows = {key: [0, collections.Counter()] for key in rules}
    several = [0, collections.Counter()]
    for entry in results:
        names = {(domain, name) for domain, name, _ in entry["operators"]}
        row = rows.setdefault(names.pop(), [0, collections.Counter()]) if len(names) == 1 else several
        if entry["result"] == "passed":
            row[0] += 1
        else:
            row[1][short(entry["reason"])] += 1
    counts = collections.Counter(entry["result"] for entry in results)
    lines = ["# ONNX coverage", "",
             "Made by `tests/onnx/test_node_cases.py --update`; a test keeps this page current. The node tests are those of the package",
             f"onnx {onnx.__version__}: {len(results)} cases, of which {counts['passed']} pass and {counts['refused']} are refused with the code and reason given here.",
             "*Rules since* are the operator sets from which the importer reads the operator in a new way. Cases with more than one operator, most of them",
             "functions written out, are counted at the end.", "",
             "| operator | rules since | passed | refused |", "| --- | --- | --- | --- |"]

    def add(name, since, row):
        reasons = "; ".join(f"{count} × {reason}" for reason, count in sorted(row[1].items())).replace("|", "\\|")
        lines.append(f"| {name} | {since} | {row[0]} | {reasons} |")

    for (domain, name), row in sorted(rows.items(), key=lambda item: (item[0][0] not in ("", "ai.onnx"), item[0])):
        prefix = "" if domain in ("", "ai.onnx") else domain + "."
        add(prefix + name, ", ".join(map(str, sorted(rules.get((domain, name), [])))) or "–", row)
    add("several", "", several)
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def results():
    return run_cases("--level", "1")


def test_no_wrong_answer_and_no_crash(results):
    assert not faults(results), "\n".join(faults(results))


def test_enough_pass(results):
    assert sum(entry["result"] == "passed" for entry in results) >= AT_LEAST


def test_page_is_current(results):
    import onnx

    text = PAGE.read_text()
    assert f"onnx {onnx.__version__}:" in text, "the page is of another version of the package onnx than tools/requirements.txt installs"
    assert text == page(results), "run this file with --update"


def test_levels_agree(results):
    """Level 3, which users get: what passes and what is refused is the same as at level 1."""
    optimised = run_cases("--level", "3")
    assert not faults(optimised), "\n".join(faults(optimised))
    before = {entry["case"]: entry["result"] for entry in results}
    changed = [f"{entry['case']}: {before.get(entry['case'])}, now {entry['result']}: {entry['reason']}" for entry in optimised
               if entry["result"] != before.get(entry["case"])]
    assert not changed and len(optimised) == len(results), "\n".join(changed)


def test_sample_without_optimisation():
    results = run_cases("--level", "0", "--every", "11")
    assert not faults(results), "\n".join(faults(results))


def main():
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    results = run_cases("--level", "1")
    print("\n".join(faults(results)))
    print(collections.Counter(entry["result"] for entry in results))
    PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
