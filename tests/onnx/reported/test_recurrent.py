# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM: sequences of unequal length in every direction, layouts and initial states.

Expected values come from the equations of the operators' text, one batch element at a time: ONNX's reference evaluator has no sequence_lens, no
reverse direction and no layout 1.
"""

import itertools

import numpy as np
import pytest
from onnx import helper
from small_models import close, declared, f32, i32, model_of, numbers, one, run, session

sigmoid = lambda v: 1 / (1 + np.exp(-v))


def rnn_step(x, h, c, w, r, wb, rb, options):
    return options.get("f", np.tanh)(w @ x + r @ h + wb + rb), c


def gru_step(x, h, c, w, r, wb, rb, options):
    n = len(h)
    wx, wz = w @ x + wb, r @ h + rb
    z, reset = sigmoid(wx[:n] + wz[:n]), sigmoid(wx[n : 2 * n] + wz[n : 2 * n])
    if options.get("linear_before_reset"):
        inner = reset * (r[2 * n :] @ h + rb[2 * n :])
    else:
        inner = r[2 * n :] @ (reset * h) + rb[2 * n :]
    return (1 - z) * np.tanh(wx[2 * n :] + inner) + z * h, c


def lstm_step(x, h, c, w, r, wb, rb, options):
    n = len(h)
    i, o, f, g = np.split(w @ x + r @ h + wb + rb, 4)
    p = options.get("p", np.zeros(3 * n))
    memory = sigmoid(f + p[2 * n :] * c) * c + sigmoid(i + p[:n] * c) * np.tanh(g)
    return sigmoid(o + p[n : 2 * n] * memory) * np.tanh(memory), memory


STEPS = {"RNN": (rnn_step, 1), "GRU": (gru_step, 3), "LSTM": (lstm_step, 4)}


def recurrent(op, x, w, r, b=None, lens=None, h0=None, c0=None, direction="forward", **options):
    """x (time, batch, input); gives Y (time, directions, batch, hidden), Y_h, Y_c (directions, batch, hidden)."""
    step, gates = STEPS[op]
    times, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[2]
    y, last_h, last_c = np.zeros((times, directions, batch, hidden)), np.zeros((directions, batch, hidden)), np.zeros((directions, batch, hidden))
    for d, n in itertools.product(range(directions), range(batch)):
        length = times if lens is None else int(lens[n])
        bias = np.zeros(2 * gates * hidden) if b is None else b[d]
        h = np.zeros(hidden) if h0 is None else h0[d, n].astype(np.float64)
        c = np.zeros(hidden) if c0 is None else c0[d, n].astype(np.float64)
        backward = direction == "reverse" or d == 1
        for t in range(length - 1, -1, -1) if backward else range(length):
            h, c = step(x[t, n], h, c, w[d], r[d], bias[: gates * hidden], bias[gates * hidden :], options)
            y[t, d, n] = h
        last_h[d, n], last_c[d, n] = h, c
    return [y.astype(f32), last_h.astype(f32), last_c.astype(f32)]


def check(op, x, weights, lens=None, run_time_lens=True, levels=(0, 3), layout=0, **attributes):
    """Runs op and compares all its outputs."""
    hidden = weights["r"].shape[2]
    direction = attributes.get("direction", "forward")
    options = {key: value for key, value in attributes.items() if key == "linear_before_reset"}
    if "activations" in attributes:
        options["f"] = {"Relu": lambda v: np.maximum(v, 0), "Sigmoid": sigmoid}[attributes["activations"][0]]
    if "p" in weights:
        options["p"] = weights["p"][0]
    expected = recurrent(op, x, weights["w"], weights["r"], weights.get("b"), lens, weights.get("h0"), weights.get("c0"), direction, **options)
    turn = (lambda v: v.transpose(2, 0, 1, 3) if v.ndim == 4 else v.swapaxes(0, 1)) if layout else (lambda v: v)
    wanted = [turn(value) for value in expected[: 3 if op == "LSTM" else 2]]
    given = {"x": x.swapaxes(0, 1).copy() if layout else x}
    length = None if lens is None else np.array(lens, i32)
    state = dict.fromkeys(["h0", "c0", "p"] if op == "LSTM" else ["h0"])
    for name in state.keys() & weights.keys():
        state[name] = weights[name].swapaxes(0, 1).copy() if layout and name != "p" else weights[name]
    constants = {"w": weights["w"], "r": weights["r"], "b": weights.get("b"), "lens": length, **state}
    if lens is not None and run_time_lens:
        model_inputs = {"x": given["x"], "w": weights["w"], "r": weights["r"], "b": weights.get("b"), "lens": length, **state}
        got = one(op, model_inputs, 14, [f32] * len(wanted), levels=levels, hidden_size=hidden, layout=layout, **attributes)
    else:
        got = one(op, given, 14, [f32] * len(wanted), constants, levels=levels, hidden_size=hidden, layout=layout, **attributes)
    for actual, value in zip(got, wanted, strict=True):
        close(actual, value, 1e-4, 1e-5)
    return got


def weights_of(op, directions=1, inputs=2, hidden=3, *extra, batch=2):
    gates = STEPS[op][1]
    shapes = {"w": (directions, gates * hidden, inputs), "r": (directions, gates * hidden, hidden), "b": (directions, 2 * gates * hidden),
              "h0": (directions, batch, hidden), "c0": (directions, batch, hidden), "p": (directions, 3 * hidden)}
    return {name: numbers(*shapes[name], seed=i + 1) / 2 for i, name in enumerate(["w", "r", *extra])}


# ---- The backward direction begins at the last element of each sequence, not at the end of the padding ----


UNIT = {"w": np.ones((1, 1, 1), f32), "r": np.ones((1, 1, 1), f32)}
BOTH = {name: np.ones((2, 1, 1), f32) for name in "wr"}


@pytest.mark.parametrize("lens, expected, last", [([2], [3, 2, 0], 3), (None, [6, 5, 3], 6), ([3], [6, 5, 3], 6), ([1], [1, 0, 0], 1),
                                                  ([0], [0, 0, 0], 0)])
@pytest.mark.parametrize("run_time", [True, False])
def test_golden_reverse(lens, expected, last, run_time):
    x = f32([1, 2, 3]).reshape(3, 1, 1)
    y, y_h = check("RNN", x, UNIT, lens, run_time, direction="reverse", activations=["Relu"])
    np.testing.assert_array_equal(y.ravel(), expected)
    np.testing.assert_array_equal(y_h.ravel(), [last])


def test_golden_bidirectional():
    x = f32([1, 2, 3]).reshape(3, 1, 1)
    y, y_h = check("RNN", x, BOTH, [2], direction="bidirectional", activations=["Relu", "Relu"])
    np.testing.assert_array_equal(y[:, 0].ravel(), [1, 3, 0])
    np.testing.assert_array_equal(y[:, 1].ravel(), [3, 2, 0])
    np.testing.assert_array_equal(y_h.ravel(), [3, 3])


@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lens", [None, [3, 1], [0, 2], [3, 3]])
def test_lengths_and_directions(op, direction, lens):
    directions = 2 if direction == "bidirectional" else 1
    x = numbers(3, 2, 2)
    for extra in [[], ["b", "h0"], ["b", "h0", "c0", "p"] if op == "LSTM" else ["h0"]]:
        if "p" in extra and directions == 2:
            extra = ["b", "h0", "c0"]
        check(op, x, weights_of(op, directions, 2, 3, *extra), lens, levels=(3,), direction=direction)


# Longer sequences are loops and not unrolled.
@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("times", [1, 17, 40])
def test_long_sequences(op, times):
    lens = [times, max(times - 7, 0), 1]
    x = numbers(times, 3, 2)
    for direction, run_time in [("reverse", True), ("bidirectional", False)]:
        check(op, x, weights_of(op, 1 if direction == "reverse" else 2, 2, 3, "b", "h0", batch=3), lens, run_time, (3,), direction=direction)


@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_batch_first(op, direction):
    weights = weights_of(op, 2 if direction == "bidirectional" else 1, 2, 3, "b", "h0")
    check(op, numbers(4, 2, 2), weights, [2, 4], levels=(3,), layout=1, direction=direction)
    check(op, numbers(4, 2, 2), weights, None, layout=1, direction=direction)


def test_gru_linear_before_reset():
    for direction in ["forward", "reverse"]:
        check("GRU", numbers(4, 2, 2), weights_of("GRU", 1, 2, 3, "b", "h0"), [4, 2], linear_before_reset=1, direction=direction)


def test_activation_of_each_direction():
    check("RNN", numbers(4, 2, 2), weights_of("RNN", 1, 2, 3, "b"), [4, 2], activations=["Sigmoid"])


# Only some of the outputs, in one of which nothing is left of the sequence.
@pytest.mark.parametrize("op", STEPS)
def test_single_outputs(op):
    weights = weights_of(op, 1, 2, 3)
    x = numbers(3, 2, 2)
    expected = recurrent(op, x, weights["w"], weights["r"], lens=[1, 3])
    lens = np.array([1, 3], i32)
    for place in range(3 if op == "LSTM" else 2):
        node = helper.make_node(op, ["x", "w", "r", "", "lens"], ["", "", ""][:place] + ["y"], hidden_size=3)
        close(run(model_of([node], {"x": x, "lens": lens}, {"y": f32}, 14, weights), {"x": x, "lens": lens})["y"], expected[place], 1e-4, 1e-5)


# A length that is known at run time only: the output has as many rows as the input.
@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_unknown_length(op, direction):
    weights = weights_of(op, 2 if direction == "bidirectional" else 1, 2, 3, "b")
    node = helper.make_node(op, ["x", "w", "r", "b"], ["y", "h"], hidden_size=3, direction=direction)
    compiled = session(model_of([node], [declared("x", f32, ["t", "n", 2])], {"y": f32, "h": f32}, 14, weights))
    for times, batch in [(1, 1), (5, 2), (20, 3)]:
        x = numbers(times, batch, 2)
        expected = recurrent(op, x, weights["w"], weights["r"], weights["b"], direction=direction)
        for actual, value in zip(compiled.run(None, {"x": x}), expected):
            close(actual, value, 1e-4, 1e-5)
