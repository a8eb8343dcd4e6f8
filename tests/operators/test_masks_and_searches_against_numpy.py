# SPDX-License-Identifier: Apache-2.0
"""Masks and diagonals, indexing by several tensors, searches, einsum, sums of stretched axes and fixed-point products against NumPy."""

import numpy as np
import pytest
from operator_table import FLOATS, Case, case, check, dtype_of, values

DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def mask_cases(dtype):
    cases = []
    for shape in [(3, 4), (2, 5, 3), (1, 1), (0, 3)]:
        x = values(shape, dtype, 1)
        for k in (-2, 0, 1, 9):
            for upper in (True, False):
                zeroed = np.triu(x, k) if upper else np.tril(x, k)
                cases.append(Case(f"trilu({{0}}, {{1}}, upper={upper})", [x, np.array(k, "int32")], zeroed))
        if 0 in shape:
            continue  # has no diagonal to set
        diagonal = values((*shape[:-2], min(shape[-2:])), dtype, 2)
        y = x.copy()
        for i in range(min(shape[-2:])):
            y[..., i, i] = diagonal[..., i]
        cases.append(Case("matrix_set_diag({0}, {1})", [x, diagonal], y))
    x = values((4, 6, 2), dtype, 3)
    lengths = np.array([0, 1, 4, 6], "int32")
    turned = np.stack([np.concatenate([x[i, :n][::-1], x[i, n:]]) for i, n in enumerate(lengths)])
    cases.append(Case("reverse_sequence({0}, {1}, seq_axis=1, batch_axis=0)", [x, lengths], turned))
    swapped = x.swapaxes(0, 1)
    cases.append(Case("reverse_sequence({0}, {1}, seq_axis=0, batch_axis=1)", [swapped, lengths.astype("int64")], turned.swapaxes(0, 1)))
    masked = np.where((np.arange(6)[None, :] < lengths[:, None])[..., None], x, np.ones((), x.dtype))
    cases.append(Case("sequence_mask({0}, {1}, mask_value=1f, axis=1)", [x, lengths], masked))
    cases.append(Case("sequence_mask({0}, {1}, mask_value=1f, axis=0)", [swapped, lengths], masked.swapaxes(0, 1)))
    buffer, new = values((2, 5, 3), dtype, 4), values((2, 2, 3), dtype, 5)
    cases.append(Case("nn.fifo_buffer({0}, {1}, axis=1)", [new, buffer], np.concatenate([buffer, new], 1)[:, -5:]))
    return cases


def index_cases(dtype):
    cases = []
    x = values((3, 4, 5), dtype, 1)
    i, j, k = values((2, 1), "int32", 2, 0, 2), values((6,), "int32", 3, 0, 3), values((6,), "int64", 4, -5, 4)
    cases.append(Case("adv_index(({0}, {1}))", [x, i], x[i]))
    cases.append(Case("adv_index(({0}, {1}, {2}))", [x, i, j], x[i, j]))
    cases.append(Case("adv_index(({0}, {1}, {2}, {3}))", [x, i.astype("int64"), j.astype("int64"), k], x[i, j, k]))
    for shape in [(5,), (2, 3), (1,), (0,)]:
        first, second = values(shape[:1], dtype, 5), values((4,), dtype, 6)
        for indexing in ("ij", "xy"):
            cases.append(Case(f'meshgrid(({{0}}, {{1}}), indexing="{indexing}")', [first, second], tuple(np.meshgrid(first, second, indexing=indexing))))
    for shape in [(3, 4), (2, 1, 3), (7,), (0, 2)]:
        x = values(shape, dtype, 7)
        x[..., :1] = 0
        cases.append(Case("argwhere({0})", [x], np.argwhere(x).astype("int32")))
    if dtype in ("int32", "int64"):
        permutation = np.random.default_rng(8).permutation(9).astype(dtype)
        cases.append(Case("invert_permutation({0})", [permutation], np.argsort(permutation).astype(dtype)))
        flat = values((2, 4), dtype, 9, 0, 23).ravel()
        cases.append(Case("unravel_index({0}, {1})", [flat, np.array([2, 3, 4], dtype)], np.stack(np.unravel_index(flat, (2, 3, 4))).astype(dtype)))
    return cases


def search_cases(dtype):
    if dtype == "bool":
        return []
    cases, kind = [], dtype_of(dtype)
    for length in (9, 1, 0):
        row = np.sort(values((length,), dtype, 1, 0, 9).astype("float64")).astype(kind)
        row = np.rint(row.astype("float64")).astype(kind)
        sought = np.array([[0, 3, 5], [9, 4, 1]]).astype(kind)
        for right in (False, True):
            found = np.searchsorted(row.astype("float64"), sought.astype("float64"), side="right" if right else "left")
            cases.append(Case(f'searchsorted({{0}}, {{1}}, right={right}, dtype="int64")', [row, sought], found.astype("int64")))
            rows = np.stack([row, row])
            cases.append(Case(f"searchsorted({{0}}, {{1}}, right={right})", [rows, sought], found.astype("int32")))
    return cases


EINSUMS = [("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]), ("ii->i", [(4, 4)]), ("ij->", [(3, 5)]), ("i,j->ij", [(3,), (4,)]),
           ("ij,ij->i", [(3, 7), (3, 7)]), ("ijk->kij", [(2, 3, 4)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]), ("ij,jk->ik", [(3, 0), (0, 2)])]
STRETCHED = [((2, 3, 4), (3, 1)), ((2, 3, 4), (4,)), ((2, 3), (2, 3)), ((5, 4), (1, 1)), ((2, 0), (1, 1)), ((6,), ())]


def sum_cases(dtype):
    if dtype == "bool":
        return []
    cases = []
    for equation, shapes in EINSUMS:
        operands = [values(shape, dtype, i, -3, 3) for i, shape in enumerate(shapes)]
        names = "".join(f"{{{i}}}, " for i in range(len(shapes))).rstrip(" ") if len(shapes) == 1 else ", ".join(f"{{{i}}}" for i in range(len(shapes)))
        cases.append(case(f'einsum(({names}), equation="{equation}")', operands, lambda *a, e=equation: np.einsum(e, *a), factor=5, terms=9))
    for shape, smaller in STRETCHED:
        x, like = values(shape, dtype, 5, -3, 3), values(smaller, dtype, 6)

        def collapse(x, like):
            lead = x.ndim - like.ndim
            axes = tuple(range(lead)) + tuple(lead + i for i, n in enumerate(like.shape) if n == 1)
            return np.sum(x, axis=axes, dtype=x.dtype).reshape(like.shape)

        cases.append(case("collapse_sum_like({0}, {1})", [x, like], collapse, factor=5, terms=9))
    for target in ("int8", "uint32", "float64", "bfloat16"):
        x = values((3, 5), dtype, 7, 0, 90)
        cases.append(Case("cast_like({0}, {1})", [x, values((2,), target)], x.astype("float64").astype(dtype_of(target))))
    if dtype == "int32":
        x = values((3, 7), dtype, 8, -(2**29), 2**29)
        for multiplier, shift in [(1 << 30, -1), (1395864371, 0), (2**31 - 1, -7), (-(1 << 30), 1)]:
            exact = [int(v) * multiplier for v in x.ravel()]
            total = [((v << max(shift, 0)) + (1 << (30 - min(shift, 0)))) >> (31 - min(shift, 0)) for v in exact]
            cases.append(Case(f"fixed_point_multiply({{0}}, multiplier={multiplier}, shift={shift})", [x], np.array(total).reshape(x.shape).astype("int32")))
    if dtype in FLOATS:
        theta, (h, w) = values((2, 2, 3), dtype, 9), (3, 5)
        grid = np.stack([*np.meshgrid(np.linspace(-1, 1, w), np.linspace(-1, 1, h)), np.ones((h, w))])
        cases.append(case(f"image.affine_grid({{0}}, target_shape=[{h}, {w}])", [theta], lambda t, g=grid: np.einsum("nij,jhw->nihw", t, g), factor=4, terms=6))
    return cases


FAMILIES = {"mask": mask_cases, "index": index_cases, "search": search_cases, "sum": sum_cases}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_and_searches(dtype, level):
    check([one for family in FAMILIES.values() for one in family(dtype)], level)
