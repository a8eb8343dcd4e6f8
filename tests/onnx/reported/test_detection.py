# SPDX-License-Identifier: Apache-2.0
"""Choice of boxes: inputs that are left out, ties, and bounds that are met exactly."""

import itertools

import numpy as np
import pytest
from onnx import helper
from small_models import close, declared, f32, i64, model_of, node_model, one, refused, run, session


def corners(box, center):
    if center:
        x, y, w, h = box
        return y - h / 2, x - w / 2, y + h / 2, x + w / 2
    return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])


def overlap(a, b):
    height, width = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if height <= 0 or width <= 0:
        return 0.0
    shared = height * width
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def chosen(boxes, scores, most=0, iou=0.0, least=None, center=0):
    """The rows (batch, class, box)."""
    rows = []
    for n, c in itertools.product(range(scores.shape[0]), range(scores.shape[1])):
        order = [b for b in np.argsort(-scores[n, c], kind="stable") if least is None or scores[n, c, b] > least]
        kept = []
        for b in order:
            if len(kept) < most and all(overlap(corners(boxes[n, b], center), corners(boxes[n, k], center)) <= iou for k in kept):
                kept.append(b)
        rows += [[n, c, b] for b in kept]
    return np.array(rows, i64).reshape(-1, 3)


def random_boxes(batches=1, classes=1, count=4, seed=0):
    generator = np.random.default_rng(seed)
    boxes = generator.uniform(0, 4, (batches, count, 4)).astype(f32)
    return boxes, generator.permutation(batches * classes * count).reshape(batches, classes, count).astype(f32) / (batches * classes * count)


def number(value, dtype, shape):
    return None if value is None else np.full(shape, value, dtype)


@pytest.mark.parametrize("opset", [10, 11])
@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("known", [True, False])
def test_number_of_boxes_left_out(opset, shape, center, known):
    boxes, scores = random_boxes()
    feed = {"boxes": boxes, "scores": scores}

    def select(most, iou=None, least=None):
        more = {"most": number(most, i64, shape), "iou": number(iou, f32, shape), "least": number(least, f32, shape)}
        return one("NonMaxSuppression", {**feed, **({} if known else more)}, opset, i64, more if known else {}, levels=(3,), center_point_box=center)

    for most in [None, 0, -3]:
        close(select(most), np.zeros((0, 3), i64))
        close(select(most, 0.5, 0.1), np.zeros((0, 3), i64))
    close(select(2), chosen(boxes, scores, 2, center=center))
    close(select(2, 1.0), np.array([[0, 0, b] for b in np.argsort(-scores[0, 0])[:2]], i64))
    close(select(4, 0.3, 0.3), chosen(boxes, scores, 4, 0.3, 0.3, center))
    close(select(1000, 0.3), chosen(boxes, scores, 1000, 0.3, None, center))


def test_absent_inputs():
    boxes, scores = random_boxes()
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["y"])
    got = run(model_of([node], {"boxes": boxes, "scores": scores}, {"y": i64}), {"boxes": boxes, "scores": scores})["y"]
    close(got, np.zeros((0, 3), i64))


@pytest.mark.parametrize("batches, classes, count", [(1, 1, 1), (1, 3, 20), (2, 2, 15), (3, 1, 8), (1, 2, 0)])
@pytest.mark.parametrize("center", [0, 1])
def test_batches_and_classes(batches, classes, count, center):
    boxes, scores = random_boxes(batches, classes, count, 3)
    for most, iou, least in [(3, 0.5, 0.2), (100, 0.1, None), (100, 0.0, 0.5)]:
        given = {"most": np.array([most], i64), "iou": np.array([iou], f32), "least": number(least, f32, (1,))}
        got = one("NonMaxSuppression", {"boxes": boxes, "scores": scores}, 11, i64, given, center_point_box=center)
        close(got, chosen(boxes, scores, most, iou, least, center))


# Of equal scores the lower box; an overlap of just the threshold is allowed, a score of just the threshold is not enough.
def test_ties_and_exact_bounds():
    boxes = f32([[[0, 0, 2, 2], [0, 1, 2, 3], [0, 0, 2, 2], [5, 5, 6, 6]]])  # boxes 0 and 1 share a third
    scores = f32([[[0.5, 0.5, 0.5, 0.25]]])
    given = lambda iou, least: {"most": np.array(4, i64), "iou": np.array(iou, f32), "least": np.array(least, f32)}
    select = lambda iou, least: one("NonMaxSuppression", {"boxes": boxes, "scores": scores}, 11, i64, given(iou, least))[:, 2].tolist()
    assert select(0.5, 0.0) == [0, 1, 3]
    assert select(0.25, 0.0) == [0, 3]
    assert select(0.5, 0.25) == [0, 1]
    assert select(f32(1) / f32(3), 0.0) == [0, 1, 3]


# The corners may be given in any order; a box without area overlaps nothing.
def test_flipped_and_empty_boxes():
    boxes = f32([[[2, 2, 0, 0], [0, 0, 2, 2], [0, 2, 2, 0], [1, 1, 1, 1], [1, 1, 1, 1]]])
    scores = f32([[[0.9, 0.8, 0.7, 0.6, 0.5]]])
    given = {"most": np.array(9, i64), "iou": np.array(0.5, f32)}
    assert one("NonMaxSuppression", {"boxes": boxes, "scores": scores}, 11, i64, given)[:, 2].tolist() == [0, 3, 4]


# What follows sees as many rows as there are.
def test_use_of_the_chosen_boxes():
    boxes, scores = random_boxes(1, 2, 10, 5)
    given = {"most": np.array([3], i64), "iou": np.array([0.2], f32), "last": np.array([2], i64), "flat": np.array([-1], i64)}
    nodes = [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["rows"]),
             helper.make_node("Gather", ["rows", "last"], ["column"], axis=1), helper.make_node("Reshape", ["column", "flat"], ["which"]),
             helper.make_node("Squeeze", ["boxes"], ["all"]), helper.make_node("Gather", ["all", "which"], ["y"])]
    got = run(model_of(nodes, {"boxes": boxes, "scores": scores}, {"y": f32}, 11, given), {"boxes": boxes, "scores": scores})["y"]
    close(got, boxes[0][chosen(boxes, scores, 3, 0.2)[:, 2]])


def test_unknown_number_of_boxes():
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["rows"])
    for most in [{"most": np.array([3], i64)}, {}]:
        inputs = [declared("boxes", f32, [1, "n", 4]), declared("scores", f32, [1, "c", "n"]), *([] if most else [declared("most", i64, [1])])]
        compiled = session(model_of([node], inputs, {"rows": i64}, 11, {**most, "iou": np.array([0.4], f32)}))
        for classes, count in [(1, 5), (3, 2), (2, 30)]:
            boxes, scores = random_boxes(1, classes, count, count)
            feed = {"boxes": boxes, "scores": scores, **({} if most else {"most": np.array([3], i64)})}
            close(compiled.run(None, feed)[0], chosen(boxes, scores, 3, 0.4))


def test_boxes_that_do_not_fit():
    boxes, scores = random_boxes()
    given = {"most": np.array([3], i64)}
    for bad in [{"boxes": boxes[..., :3]}, {"boxes": boxes[0]}, {"scores": scores[..., :2]}, {"scores": np.concatenate([scores, scores])},
                {"scores": scores[0]}]:
        refused(node_model("NonMaxSuppression", {"boxes": boxes, "scores": scores, **bad}, 11, i64, given))
    refused(node_model("NonMaxSuppression", {"boxes": boxes, "scores": scores}, 11, i64, given, center_point_box=2))
