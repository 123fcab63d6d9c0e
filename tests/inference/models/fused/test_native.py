"""The compiled operations compute what plain torch does."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.models.attention import RaggedBatch, Scoring
from inference.models.fused.kernels import PlainKernels, Rotation
from inference.models.fused.native.library import FEW_QUERIES, NativeKernels
from tests.inference.models.fused.paged import Asked, Dims, batch_of, num_tokens, without_nan

PLAIN = PlainKernels()
DTYPES = [torch.float32, torch.bfloat16]
WIDTHS = [16, 20, 100, 576]
NUM_ROWS = [1, 70]
EPS = 1e-5


def random(*size: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_near(found: torch.Tensor, exact: torch.Tensor, scale: float = 1.0, least: float = 0.125) -> None:
    """`exact` is the fp32 result: fp32 within 1e-5 of `scale`, bf16 within a rounding of it or of `least` * scale."""
    assert found.shape == exact.shape
    half_step = 2.0**-8 if found.dtype == torch.bfloat16 else 0.0
    tolerance = 1e-5 * scale + half_step * exact.abs().clamp(min=scale * least)
    assert torch.isfinite(found).all()
    assert ((found.float() - exact).abs() <= tolerance).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("num_rows", NUM_ROWS)
def test_norms(at_level: NativeKernels, dtype: torch.dtype, width: int, num_rows: int) -> None:
    states, more = random(num_rows, width, dtype=dtype), random(num_rows, width, dtype=dtype, seed=2)
    weight = random(width, dtype=dtype, seed=3)
    assert_near(at_level.norm(states, weight, EPS), PLAIN.norm(states.float(), weight.float(), EPS))
    added = states + more
    found = at_level.add_norm(states, more, weight, EPS)
    assert torch.equal(states, added)
    assert_near(found, PLAIN.norm(added.float(), weight.float(), EPS))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [16, 24, 64, 128])
def test_norms_of_heads_leave_values_alone(native: NativeKernels, dtype: torch.dtype, head_dim: int) -> None:
    projected = random(5, 8 * head_dim, dtype=dtype)
    exact, values = projected.float(), projected[:, 6 * head_dim :].clone()
    weights = random(head_dim, dtype=dtype, seed=2), random(head_dim, dtype=dtype, seed=3)
    native.norm_heads(projected, *weights, 4, EPS)
    PLAIN.norm_heads(exact, weights[0].float(), weights[1].float(), 4, EPS)
    assert_near(projected, exact)
    assert torch.equal(projected[:, 6 * head_dim :], values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("num_rows", NUM_ROWS)
def test_gate(at_level: NativeKernels, dtype: torch.dtype, width: int, num_rows: int) -> None:
    widened = random(num_rows, 2 * width, dtype=dtype) * 3
    widened[0, :4] = torch.tensor([-200.0, 200.0, 0.0, -20.0])
    assert_near(at_level.gate(widened), PLAIN.gate(widened.float()), 3.0)


def test_what_is_no_number_stays_none(native: NativeKernels) -> None:
    states = random(3, 40)
    states[1, 7] = torch.nan
    for out in (native.norm(states, random(40), EPS), native.gate(states)):
        assert out.isnan().any(-1).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("head_dim", "block_tokens"), [(16, 16), (24, 7), (64, 16), (100, 1), (128, 32)])
def test_keys_and_values_go_to_their_slots(
    native: NativeKernels, dtype: torch.dtype, head_dim: int, block_tokens: int
) -> None:
    dims = Dims(head_dim=head_dim, block_tokens=block_tokens, dtype=dtype)
    groups = [[Asked(40), Asked(17)], [Asked(33, num_queries=20)]]
    found, exact = batch_of(dims, groups), batch_of(dims, groups)
    projected = random(num_tokens(found), 10 * head_dim, dtype=dtype)
    positions = torch.cat([group.positions.flatten() for group in found.groups])
    rotation = Rotation.of(positions, torch.linspace(1, 0.01, head_dim // 2), 1.0)
    queries = native.place(projected, rotation, found, 1, dims.num_heads)
    assert_near(
        queries, PLAIN.place(projected.float(), rotation, _as_fp32(exact, dims), 1, dims.num_heads), 2.0
    )
    PLAIN.place(projected, rotation, exact, 1, dims.num_heads)
    for mine, theirs in ((found.tensors._blocks, exact.tensors._blocks),):
        assert torch.equal(mine.isnan(), theirs.isnan())  # and nothing else was written
        assert_near(mine.nan_to_num(0.0), theirs.nan_to_num(0.0).float(), 2.0)


def _as_fp32(batch: RaggedBatch, dims: Dims) -> RaggedBatch:
    return RaggedBatch(
        batch_of(
            Dims(dims.num_heads, dims.kv_heads, dims.head_dim, dims.block_tokens), [[Asked(999)]]
        ).tensors,
        batch.groups,
        batch.slots,
    )


def assert_attends(
    native: NativeKernels, dims: Dims, groups: list[list[Asked]], window: int | None = None, seed: int = 0
) -> None:
    batch = batch_of(dims, groups, seed)
    queries = random(num_tokens(batch), dims.num_heads, dims.head_dim, dtype=dims.dtype, seed=seed) * 2
    scoring = Scoring(dims.head_dim**-0.5, window)
    found = native.attend(queries, batch, 1, scoring)
    readable = without_nan(batch)
    for kept in (readable.tensors.keys, readable.tensors.values):
        kept[:] = [layer.float() for layer in kept]
    exact = PLAIN.attend(queries.float(), readable, 1, scoring)
    # For matrix products the softmax's weights are rounded, too: an error of that size for values up to 4.
    is_tiled = any(group.num_queries > FEW_QUERIES for group in batch.groups)
    assert_near(found, exact, 2.0, least=2.0 if is_tiled else 0.125)


LENGTHS = [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 700, 1100]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "dims",
    [
        Dims(),
        Dims(9, 3, 64),
        Dims(4, 4, 16, 7),
        Dims(5, 1, 24, 64),
        Dims(14, 2, 80),
        Dims(4, 2, 100, 1),
        Dims(32, 8, 128, 32),
    ],
    ids=str,
)
def test_single_tokens_of_any_length(native: NativeKernels, dims: Dims, dtype: torch.dtype) -> None:
    dims = Dims(dims.num_heads, dims.kv_heads, dims.head_dim, dims.block_tokens, dtype)
    assert_attends(native, dims, [[Asked(length) for length in LENGTHS], [Asked(3)]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("window", [1, 8, 16, 100])
def test_windows_of_single_tokens(native: NativeKernels, dtype: torch.dtype, window: int) -> None:
    asked = [Asked(90, num_shared=2), Asked(91, num_shared=2), Asked(33, num_shared=2), Asked(7)]
    assert_attends(native, Dims(dtype=dtype), [asked], window)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_queries", [2, FEW_QUERIES, FEW_QUERIES + 1, 64, 65, 130])
@pytest.mark.parametrize("before", [0, 5, 300])
@pytest.mark.parametrize("window", [None, 20])
def test_many_queries(
    native: NativeKernels, dtype: torch.dtype, num_queries: int, before: int, window: int | None
) -> None:
    asked = Asked(before + num_queries, num_queries)
    assert_attends(native, Dims(dtype=dtype), [[asked], [Asked(40)]], window)


@pytest.mark.parametrize(("head_dim", "block_tokens"), [(16, 1), (24, 7), (80, 16), (128, 64)])
def test_many_queries_of_other_shapes(native: NativeKernels, head_dim: int, block_tokens: int) -> None:
    for dtype in DTYPES:
        dims = Dims(head_dim=head_dim, block_tokens=block_tokens, dtype=dtype)
        assert_attends(native, dims, [[Asked(170, num_queries=100)]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_shared_beginnings(native: NativeKernels, dtype: torch.dtype) -> None:
    shared = [Asked(length, num_shared=min(9, length // 16)) for length in range(130, 190, 4)]
    branch = [Asked(length, num_shared=length // 16) for length in (16, 17, 40, 144, 700)]
    partly = [
        Asked(305, num_shared=19),
        Asked(300, num_shared=19),
    ]  # the last shared block is whole for one only
    assert_attends(native, Dims(9, 3, 64, dtype=dtype), [[*shared, *partly, *branch, Asked(50), Asked(145)]])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_batch(at_level: NativeKernels, data: st.DataObject) -> None:
    kv_heads = data.draw(st.integers(1, 4))
    block_tokens = data.draw(st.sampled_from([1, 4, 7, 16]))
    dims = Dims(
        kv_heads * data.draw(st.integers(1, 5)),
        kv_heads,
        2 * data.draw(st.integers(8, 64)),
        block_tokens,
        data.draw(st.sampled_from(DTYPES)),
    )
    lengths = data.draw(st.lists(st.integers(1, 90), min_size=1, max_size=12))
    singles = [Asked(length, 1, data.draw(st.integers(0, length // block_tokens))) for length in lengths]
    num_queries = data.draw(st.integers(2, 90))
    chunk = Asked(num_queries + data.draw(st.integers(0, 90)), num_queries)
    window = data.draw(st.none() | st.integers(1, 60))
    assert_attends(at_level, dims, [singles, [chunk]], window, seed=data.draw(st.integers(0, 9)))
