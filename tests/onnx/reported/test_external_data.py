# SPDX-License-Identifier: Apache-2.0
"""External data: what lies outside of the model's folder is not read, and layouts that are in use are.

tests/onnx/make_broken.py has more of the bad ones.
"""

import os

import onnx
import pytest
from onnx import TensorProto, helper
from small_models import close, declared, f32, numbers, treadle


def model_with(location, shape=(2, 3)):
    """y = x + w with w in the file `location`."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value=location)
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [declared("x", f32, shape)], [declared("y", f32)], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def load(path):
    return treadle.InferenceSession(path, opt_level=0, threads=1, cache=False)


def works(path, w):
    x = numbers(*w.shape, seed=3)
    close(load(path).run(None, {"x": x})[0], x + w)


@pytest.fixture(params=[(2, 3), (256, 300)], ids=["read", "mapped"])
def weight(request):
    return numbers(*request.param)


def refused_by_name(path, *words):
    with pytest.raises(treadle.Error) as caught:
        load(path)
    assert caught.value.code == "TRD-IMP-003", str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint or "regular file" in caught.value.message


@pytest.fixture
def folder(tmp_path):
    """A folder for models beside data that none of them may read."""
    (tmp_path / "outside.bin").write_bytes(b"\0" * 4096)
    inner = tmp_path / "models"
    (inner / "sub").mkdir(parents=True)
    return inner


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", "sub/../../outside.bin", "sub/../../models/../outside.bin",
                                      "./../outside.bin", "", "sub", ".", "..", "link.bin", "sub/link.bin", "linked/outside.bin", "pipe.bin",
                                      "..\\outside.bin", "file:///etc/hostname"])
def test_paths_that_leave_the_folder(folder, location):
    os.symlink("../outside.bin", folder / "link.bin")
    os.symlink(folder.parent / "outside.bin", folder / "sub" / "link.bin")
    os.symlink("..", folder / "linked")
    os.mkfifo(folder / "pipe.bin")  # to open it for reading would wait for a writer
    onnx.save(model_with(location), folder / "m.onnx")
    refused_by_name(folder / "m.onnx", location.replace("\\", "\\x5c"))


def test_model_from_memory(folder):
    with pytest.raises(treadle.Error, match="no folder"):
        load(model_with("sub").SerializeToString())


def test_data_beside_the_model_and_below(folder, weight, monkeypatch):
    for location in ["w.bin", "sub/w.bin", "./w.bin", "name with spaces ä.bin"]:
        (folder / location).write_bytes(weight.tobytes())
        onnx.save(model_with(location, weight.shape), folder / "m.onnx")
        works(folder / "m.onnx", weight)
    # Named from inside of the folder, and from elsewhere.
    monkeypatch.chdir(folder)
    works("m.onnx", weight)
    works("./sub/../m.onnx", weight)
    monkeypatch.chdir(folder.parent)
    works("models/m.onnx", weight)


def test_links_inside_of_the_folder(folder, weight):
    (folder / "sub" / "w.bin").write_bytes(weight.tobytes())
    os.symlink("sub/w.bin", folder / "link.bin")
    os.symlink("sub", folder / "again")
    for location in ["link.bin", "again/w.bin"]:
        onnx.save(model_with(location, weight.shape), folder / "m.onnx")
        works(folder / "m.onnx", weight)


# A store of contents: files are named by their hash, and a snapshot has links to them.
def test_content_store(folder, weight):
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "3f2a"
    blobs.mkdir()
    (snapshot / "onnx").mkdir(parents=True)
    (blobs / "d41d8c").write_bytes(weight.tobytes())
    onnx.save(model_with("model.onnx_data", weight.shape), blobs / "9e107d")
    for place, back in [(snapshot, "../../blobs"), (snapshot / "onnx", "../../../blobs")]:
        os.symlink(f"{back}/9e107d", place / "model.onnx")
        os.symlink(f"{back}/d41d8c", place / "model.onnx_data")
        works(place / "model.onnx", weight)


# The folder itself is reached through a link.
def test_linked_folder(folder, weight):
    (folder / "w.bin").write_bytes(weight.tobytes())
    onnx.save(model_with("w.bin", weight.shape), folder / "m.onnx")
    os.symlink(folder, folder.parent / "latest")
    works(folder.parent / "latest" / "m.onnx", weight)


# Data that a link beside a plain model file takes from elsewhere: refused, with advice.
def test_linked_data_of_a_plain_model(folder, weight):
    (folder.parent / "store.bin").write_bytes(weight.tobytes())
    os.symlink(folder.parent / "store.bin", folder / "w.bin")
    onnx.save(model_with("w.bin", weight.shape), folder / "m.onnx")
    refused_by_name(folder / "m.onnx", "w.bin", "copy them")
