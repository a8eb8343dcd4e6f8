# SPDX-License-Identifier: Apache-2.0
"""The command `treadle`: every subcommand, wrong flags and files, inputs of every kind, what it prints and writes.

TREADLE_COMMAND names another build of the command than build/release/bin/treadle.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
DIGITS = ROOT / "examples" / "digits"
SUBCOMMANDS = ["run", "compile", "check", "print", "ops", "passes", "targets", "bench"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE", str(tmp_path / "cache"))


def treadle(*arguments, status=0):
    """Runs the command; gives what it printed on both streams."""
    result = subprocess.run([str(TREADLE), *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert result.returncode == status, f"exit status {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def refused(*arguments, code):
    """The message of a refusal: one paragraph on stderr that begins with the code, nothing on stdout, exit status 1."""
    result = treadle(*arguments, status=1)
    assert result.stderr.startswith(f"error {code}: "), result.stderr
    assert result.stdout == ""
    assert result.stderr.endswith("\n") and "\n\n" not in result.stderr
    return result.stderr


def save_model(path, nodes, inputs, outputs, opset=17, initializers=()):
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("example", 1)], ir_version=8)
    onnx.save(model, path)
    return path


def floats(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


@pytest.fixture
def add_model(tmp_path):
    return save_model(tmp_path / "add.onnx", [helper.make_node("Add", ["x", "y"], ["z"], name="the_add")],
                      [floats("x", ["N", 2]), floats("y", [2])], [floats("z", ["N", 2])])


# ---- Help and flags ----


def test_help_lists_the_subcommands():
    text = treadle("--help").stdout
    for name in SUBCOMMANDS:
        assert name in text
    assert treadle("--version").stdout.startswith("treadle ")


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_help_has_an_example_that_parses(name):
    text = treadle(name, "--help").stdout
    assert "Example:" in text
    assert f"treadle {name}" in text


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_wrong_flags(name):
    result = subprocess.run([str(TREADLE), name, "--no-such-flag"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert "--no-such-flag" in result.stderr or "required" in result.stderr
    assert "--help" in result.stderr


@pytest.mark.parametrize("arguments", [["run"], ["compile", "x.onnx"], ["nothing"], [], ["run", "m", "-O", "7"], ["run", "m", "-O", "x"],
                                       ["run", "m", "--fill", "twos"], ["compile", "m", "-o", "o", "--emit", "exe"], ["run", "m", "--top", "-1"],
                                       ["run", "m", "--threads", "-2"], ["bench", "m", "--repeat", "0"]])
def test_arguments_out_of_range(arguments):
    result = subprocess.run([str(TREADLE), *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr


# ---- Files that are no models ----


@pytest.mark.parametrize("name", ["run", "check", "print", "bench"])
def test_missing_empty_and_folder(name, tmp_path):
    assert "nowhere.onnx" in refused(name, tmp_path / "nowhere.onnx", code="TRD-IO-001")
    (tmp_path / "empty.onnx").write_bytes(b"")
    result = treadle(name, tmp_path / "empty.onnx", status=1)
    assert result.stderr.startswith("error TRD-IMP-001: ")
    result = treadle(name, tmp_path, status=1)
    assert result.stderr.startswith("error TRD-I")


@pytest.mark.parametrize("content", [b"\x00" * 100, bytes(range(256)) * 8, b"\x7fELF" + b"\x01" * 200, b"\x7fELF", b"def", b"#[version",
                                     b"def @main(", b"\x08\x08\x12\xff\xff\xff\xff\x0f", b"PK\x03\x04abc", b"\xff" * 4000])
@pytest.mark.parametrize("name", ["run", "check", "print"])
def test_garbage(name, content, tmp_path):
    (tmp_path / "garbage").write_bytes(content)
    result = treadle(name, tmp_path / "garbage", status=1)
    assert result.stderr.startswith("error TRD-"), result.stderr
    assert "TRD-INT" not in result.stderr


def test_truncated_models(tmp_path, add_model):
    whole = (DIGITS / "digits.onnx").read_bytes()
    for length in [1, 2, 10, len(whole) // 3, len(whole) // 2, len(whole) - 1]:
        (tmp_path / "part.onnx").write_bytes(whole[:length])
        result = treadle("run", tmp_path / "part.onnx", status=1)
        assert result.stderr.startswith("error TRD-") and "TRD-INT" not in result.stderr, (length, result.stderr)
    treadle("compile", add_model, "-o", tmp_path / "add.so")
    whole = (tmp_path / "add.so").read_bytes()
    for length in [4, 64, 1000, len(whole) // 2, len(whole) * 3 // 4]:
        (tmp_path / "part.so").write_bytes(whole[:length])
        assert "part.so" in refused("run", tmp_path / "part.so", code="TRD-ART-001")


def test_a_shared_object_that_is_no_model():
    library = next(Path("/lib/x86_64-linux-gnu").glob("libm.so*"))
    assert "libm" in refused("run", library, code="TRD-ART-001")


def test_an_artifact_has_no_module(tmp_path, add_model):
    treadle("compile", add_model, "-o", tmp_path / "add.so")
    refused("print", tmp_path / "add.so", code="TRD-ARG-001")
    refused("compile", tmp_path / "add.so", "-o", tmp_path / "again.so", code="TRD-ARG-001")


def test_names_that_do_not_exist(tmp_path, add_model):
    assert "FoldConstant" in refused("run", add_model, "--disable-pass", "FoldConstants", code="TRD-ARG-001")
    assert "nn.conv2d" in refused("ops", "nn.conv2", code="TRD-ARG-001")
    refused("print", add_model, "--after", "Nothing", code="TRD-ARG-001")
    refused("run", add_model, "--target", "abacus", code="TRD-TGT-001")
    np.save(tmp_path / "x.npy", np.zeros((1, 2), np.float32))
    assert "x" in refused("run", add_model, "--input", f"q={tmp_path}/x.npy", code="TRD-RUN-001")
    refused("compile", add_model, "-o", tmp_path / "no" / "such.so", code="TRD-IO-001")


# ---- Inputs ----


def outputs_of(model, *arguments, folder):
    treadle("run", model, *arguments, "--output", folder / "out.npz")
    return dict(np.load(folder / "out.npz"))


def test_inputs_from_npy_and_npz(tmp_path, add_model):
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([10, 20], np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "packed.npz", y=y, x=np.asfortranarray(x))
    for arguments in [["--input", f"x={tmp_path}/x.npy", "--input", f"y={tmp_path}/y.npy"], ["--input", tmp_path / "both.npz"],
                      ["--input", tmp_path / "packed.npz"], ["--input", f"x={tmp_path}/both.npz", "--input", f"y={tmp_path}/y.npy"]]:
        np.testing.assert_array_equal(outputs_of(add_model, *arguments, folder=tmp_path)["z"], x + y)


def test_wrong_inputs(tmp_path, add_model):
    def run(array, name="x"):
        np.save(tmp_path / "a.npy", array)
        return ["run", add_model, "--input", f"{name}={tmp_path}/a.npy"]

    assert "x" in refused(*run(np.zeros((3, 3), np.float32)), code="TRD-RUN-001")
    refused(*run(np.zeros((3, 2), np.float64)), code="TRD-RUN-001")
    refused(*run(np.zeros(2, np.float32)), code="TRD-RUN-001")
    refused(*run(np.zeros((3, 2), np.float32), "nothing"), code="TRD-RUN-001")
    refused(*run(np.array(["a", "b"]), "x"), code="TRD-IMP-002")
    refused(*run(np.zeros((3, 2), np.complex64), "x"), code="TRD-IMP-002")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
    refused("run", add_model, "--input", f"x={tmp_path}/broken.npy", code="TRD-IMP-001")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04")
    refused("run", add_model, "--input", tmp_path / "broken.npz", code="TRD-IMP-001")
    refused("run", add_model, "--input", f"x={tmp_path}/none.npy", code="TRD-IO-001")
    refused("run", add_model, "--input", tmp_path / "x.npy", code="TRD-ARG-001")


def test_filled_inputs(tmp_path, add_model):
    ones = outputs_of(add_model, "--fill", "ones", "--symbol", "N=4", folder=tmp_path)["z"]
    np.testing.assert_array_equal(ones, np.full((4, 2), 2, np.float32))
    assert not outputs_of(add_model, "--fill", "zeros", folder=tmp_path)["z"].any()
    first = outputs_of(add_model, "--seed", "1", "--symbol", "N=9", folder=tmp_path)["z"]
    np.testing.assert_array_equal(first, outputs_of(add_model, "--seed", "1", "--symbol", "N=9", folder=tmp_path)["z"])
    assert (first != outputs_of(add_model, "--seed", "2", "--symbol", "N=9", folder=tmp_path)["z"]).any()
    assert outputs_of(add_model, "--symbol", "N=0", folder=tmp_path)["z"].shape == (0, 2)
    refused("run", add_model, "--symbol", "N", code="TRD-ARG-001")


def test_shapes_of_inputs(tmp_path, add_model):
    assert outputs_of(add_model, "--shape", "x:5,2", "--fill", "ones", folder=tmp_path)["z"].shape == (5, 2)
    refused("run", add_model, "--shape", "x:5,3", code="TRD-TYPE-002")
    refused("run", add_model, "--shape", "nothing:5,2", code="TRD-ARG-001")
    refused("run", add_model, "--shape", "x", code="TRD-ARG-001")


def test_picture(tmp_path):
    text = treadle("run", DIGITS / "digits.onnx", "--input", DIGITS / "pictures" / "3.png", "--labels", DIGITS / "labels.txt", "--top", 2).stdout
    assert text
    report = json.loads(treadle("run", DIGITS / "digits.onnx", "--input", DIGITS / "pictures" / "3.png", "--labels", DIGITS / "labels.txt", "--top", 2,
                                "--json").stdout)
    assert report["outputs"][0]["top"][0]["index"] == 3
    (tmp_path / "broken.png").write_bytes((DIGITS / "pictures" / "3.png").read_bytes()[:40])
    refused("run", DIGITS / "digits.onnx", "--input", tmp_path / "broken.png", code="TRD-IMP-001")


# ---- What it prints and writes ----


def test_json(tmp_path, add_model):
    report = json.loads(treadle("run", add_model, "--json").stdout)
    assert report["outputs"][0]["name"] == "z" and report["outputs"][0]["shape"] == [1, 2]
    assert json.loads(treadle("bench", add_model, "--json", "--repeat", 2).stdout)["runs"] == 2
    assert json.loads(treadle("check", add_model, "--json").stdout) == []
    assert len(json.loads(treadle("ops", "--json").stdout)) > 100
    assert json.loads(treadle("ops", "nn.conv2d", "--json").stdout)["name"] == "nn.conv2d"
    # Values that JSON has no word for.
    np.save(tmp_path / "x.npy", np.array([[np.nan, np.inf]], np.float32))
    json.loads(treadle("run", add_model, "--input", f"x={tmp_path}/x.npy", "--top", 1, "--json").stdout)


def test_check_lists_every_unsupported_node(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NoSuchOp", ["a"], ["b"], name="one", domain="example"),
             helper.make_node("AlsoNot", ["b"], ["y"], name="two")]
    model = save_model(tmp_path / "m.onnx", nodes, [floats("x", [2])], [floats("y", [2])])
    found = json.loads(treadle("check", model, "--json", status=1).stdout)
    assert [entry["node"] for entry in found] == ["one", "two"]
    assert [entry["op_type"] for entry in found] == ["NoSuchOp", "AlsoNot"]
    text = treadle("check", model, status=1).stdout
    assert "one" in text and "2 unsupported nodes" in text
    assert "NoSuchOp" in refused("run", model, code="TRD-IMP-002")


def test_check_lists_what_is_certain_behind_an_unknown_type(tmp_path):
    nodes = [helper.make_node("Det", ["x"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"], name="fine"),
             helper.make_node("Softmax", ["b"], ["c"], name="two", bogus=1), helper.make_node("Gather", ["c", "i"], ["d"], name="also_fine"),
             helper.make_node("Gemm", ["d"], ["e"], name="three"), helper.make_node("NoSuchOp", ["e", "i"], ["y"], name="four", domain="example")]
    indices = helper.make_tensor_value_info("i", TensorProto.INT64, [2])
    model = save_model(tmp_path / "m.onnx", nodes, [floats("x", [3, 2, 2]), indices], [floats("y", None)])
    found = {entry["node"]: entry for entry in json.loads(treadle("check", model, "--json", status=1).stdout)}
    assert set(found) == {"one", "two", "three", "four"}
    assert "bogus" in found["two"]["reason"] and "input 1 is missing" in found["three"]["reason"]
    assert found["four"]["inputs"] == ["?", "Tensor[(2), int64]"] and found["four"]["opset"] == 1 and found["two"]["opset"] == 17


RECURSIVE = """#[version = "0.0.5"]
def @count(%n: int32, %x: float32) -> float32 {
  if (equal(%n, 0)) { %x } else { @count(subtract(%n, 1), add(%x, 1f)) }
}
def @main(%n: int32) -> float32 { @count(%n, 0f) }
"""


def test_check_knows_what_a_relay_text_cannot_be_compiled_for(tmp_path):
    (tmp_path / "recursive.relay").write_text(RECURSIVE)
    assert "recursion" in treadle("check", tmp_path / "recursive.relay", status=1).stdout
    found = json.loads(treadle("check", tmp_path / "recursive.relay", "--json", status=1).stdout)
    assert len(found) == 1 and "recursion" in found[0]["reason"]
    (tmp_path / "plain.relay").write_text("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")
    assert "every operator is supported" in treadle("check", tmp_path / "plain.relay").stdout
    refused("check", tmp_path / "plain.relay", "--shape", "x:3", code="TRD-ARG-001")


def test_profile_as_json():
    for name in ["run", "bench"]:
        report = json.loads(treadle(name, DIGITS / "digits.onnx", "--profile", "--json").stdout)["profile"]
        assert report["peak_gflops"] > 0 and len(report["kernels"]) > 3
        assert sum(kernel["share"] for kernel in report["kernels"]) == pytest.approx(1)
        assert all(set(kernel) == {"name", "source", "ms", "share", "gflops", "share_of_peak"} for kernel in report["kernels"])
    assert "profile" not in json.loads(treadle("bench", DIGITS / "digits.onnx", "--json").stdout)


def test_labels_alone_show_five_classes(tmp_path):
    text = treadle("run", DIGITS / "digits.onnx", "--labels", DIGITS / "labels.txt").stdout
    assert len(text.splitlines()) == 2 + 5
    assert "TRD-IO-001" in treadle("run", DIGITS / "digits.onnx", "--labels", tmp_path, status=1).stderr


def test_files_that_cannot_be_read_are_io_errors(tmp_path):
    for path in ["nowhere.png", "nowhere.npy", "nowhere.npz", "."]:
        refused("run", DIGITS / "digits.onnx", "--input", f"image={tmp_path / path}", code="TRD-IO-001")


def test_unknown_symbols(add_model):
    assert '"N"' in refused("run", add_model, "--symbol", "M=4", code="TRD-ARG-001")
    assert "fixed" in refused("run", DIGITS / "digits.onnx", "--symbol", "N=4", code="TRD-ARG-001")


def test_a_wrong_number_of_threads_in_the_environment_is_told(monkeypatch):
    monkeypatch.setenv("TREADLE_NUM_THREADS", "many")
    assert "TREADLE_NUM_THREADS=many" in treadle("bench", DIGITS / "digits.onnx", "--repeat", 1).stderr


def test_printed_text_reads_back(tmp_path, add_model):
    for model in [add_model, DIGITS / "digits.onnx"]:
        (tmp_path / "m.relay").write_text(treadle("print", model).stdout)
        assert treadle("print", tmp_path / "m.relay").stdout == (tmp_path / "m.relay").read_text()
        a, b = outputs_of(model, "--seed", 3, folder=tmp_path), outputs_of(tmp_path / "m.relay", "--seed", 3, folder=tmp_path)
        assert list(a) == list(b)
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_print_after_a_pass(add_model):
    assert "Primitive" in treadle("print", add_model, "--after", "FuseOps").stdout
    assert "span=" in treadle("print", add_model, "--spans").stdout
    assert "ty=" not in treadle("print", add_model, "--no-types").stdout


@pytest.mark.parametrize("kind, sign", [("so", b"\x7fELF"), ("obj", b"\x7fELF"), ("llvm", b"define "), ("asm", b"ret"), ("loop", b"main"), ("relay", b"#[version")])
def test_compile_emits(kind, sign, tmp_path, add_model):
    for name in ["a", "b"]:
        treadle("compile", add_model, "-o", tmp_path / name, "--emit", kind)
    content = (tmp_path / "a").read_bytes()
    assert sign in content
    assert content == (tmp_path / "b").read_bytes()


def test_compiled_models_run(tmp_path, add_model):
    treadle("compile", add_model, "-o", tmp_path / "add.so")
    a, b = outputs_of(add_model, "--seed", 3, "--symbol", "N=5", folder=tmp_path), outputs_of(tmp_path / "add.so", "--seed", 3, "--symbol", "N=5", folder=tmp_path)
    np.testing.assert_array_equal(a["z"], b["z"])


def test_profile_names_nodes(add_model):
    assert "the_add" in treadle("run", add_model, "--profile").stdout
    assert "the_add" in treadle("bench", add_model, "--profile", "--repeat", 1).stdout


def test_second_run_comes_from_the_cache(add_model):
    assert not json.loads(treadle("run", add_model, "--json").stdout)["from_cache"]
    assert json.loads(treadle("run", add_model, "--json").stdout)["from_cache"]
    assert not json.loads(treadle("run", add_model, "--json", "--no-cache").stdout)["from_cache"]


def test_dumps_and_bisecting(add_model):
    text = treadle("run", add_model, "--print-after", "FuseOps", "--print-before", "all").stdout
    assert "// after FuseOps" in text and "// before FoldConstant" in text
    for stop in range(3):
        treadle("run", add_model, "--stop-after", stop, "--verify")


def test_a_reader_that_closes_the_pipe_is_no_crash():
    result = subprocess.run(f"{TREADLE} ops | head -1", shell=True, capture_output=True, text=True, timeout=60)
    assert result.stdout and "error" not in result.stderr


@pytest.mark.parametrize("flags", [("--target", "llvm"), ("-O", "0"), ("--shape", "image:2,1,8,8"), ("--print-after", "all"), ("--disable-pass", "FuseOps"), ("--verify",)])
@pytest.mark.parametrize("command", ["run", "bench"])
def test_build_flags_are_not_for_what_is_compiled(tmp_path, command, flags):
    treadle("compile", DIGITS / "digits.onnx", "-o", tmp_path / "d.so")
    result = treadle(command, tmp_path / "d.so", *flags, status=1)
    assert "TRD-ARG-001" in result.stderr and "compiled already" in result.stderr


def test_print_runs_no_pass_by_itself():
    for flags in (("--print-after", "all"), ("--stop-after", "3"), ("--target", "llvm")):
        assert "--after" in treadle("print", DIGITS / "digits.onnx", *flags, status=1).stderr


@pytest.mark.parametrize("command", [["run"], ["bench", "--repeat", "1"], ["compile", "-o", "OUT"], ["print", "--after", "FuseOps", "--no-constants"]])
def test_time_passes(command, tmp_path):
    arguments = [str(tmp_path / "out.so") if word == "OUT" else word for word in command[1:]]
    text = treadle(command[0], DIGITS / "digits.onnx", *arguments, "--time-passes").stderr
    assert "FoldConstant" in text and "all passes" in text
    assert "code generation" in text


def test_profile_of_what_was_compiled_without(tmp_path):
    treadle("compile", DIGITS / "digits.onnx", "-o", tmp_path / "plain.so")
    assert "--profile" in treadle("run", tmp_path / "plain.so", "--profile").stdout
    treadle("compile", DIGITS / "digits.onnx", "-o", tmp_path / "profiled.so", "--profile")
    assert "share" in treadle("run", tmp_path / "profiled.so", "--profile").stdout


def test_an_input_twice(tmp_path):
    picture = DIGITS / "pictures" / "3.png"
    refused("run", DIGITS / "digits.onnx", "--input", picture, "--input", picture, code="TRD-ARG-001")


@pytest.mark.parametrize("command", [["run", "PIPE"], ["check", "PIPE"], ["print", "PIPE"], ["run", str(DIGITS / "digits.onnx"), "--input", "image=PIPE"],
                                     ["run", str(DIGITS / "digits.onnx"), "--labels", "PIPE"], ["run", str(DIGITS / "digits.onnx"), "--input", "image=/dev/zero"]])
def test_pipes_and_devices_are_not_waited_for(command, tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    refused(*[word.replace("PIPE", str(tmp_path / "pipe.npy")) for word in command], code="TRD-IO-001")


@pytest.mark.parametrize("shape", [b"(1, 1,-8, 8)", b"(1, 1, 8, x)"])
def test_arrays_with_broken_shapes(shape, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8), np.float32))
    data = (tmp_path / "x.npy").read_bytes()
    assert b"(1, 1, 8, 8)" in data
    (tmp_path / "x.npy").write_bytes(data.replace(b"(1, 1, 8, 8)", shape))
    refused("run", DIGITS / "digits.onnx", "--input", f"image={tmp_path / 'x.npy'}", code="TRD-IMP-001")
