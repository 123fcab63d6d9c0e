"""Every form of a matrix multiplies like the weight it was made from, and none is taken that this torch lacks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from inference.models.errors import ModelNotUsable
from inference.models.fused import int8, linears
from inference.models.fused.linears import Form, Linear


def _random(*size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(sum(size)))


def _forms(dtype: torch.dtype) -> list[Form]:
    wanted = [
        (linears.packed, linears.PACKED),
        (int8.both_bytes, int8.W8A8),
        (int8.weight_bytes, int8.INT8),
    ]
    return [linears.PLAIN, *(form for pack, form in wanted if linears.works(pack, dtype))]


def _error(form: Form, dtype: torch.dtype, num_rows: int, bias: torch.Tensor | None) -> float:
    """Of the product, as a part of what fp32 gives."""
    weight, states = _random(96, 64).to(dtype), _random(num_rows, 64).to(dtype)
    product = form.pack(weight, None if bias is None else bias.to(dtype))(states)
    assert product.dtype is dtype
    expected = functional.linear(states.float(), weight.float(), bias)
    return float((product.float() - expected).norm() / expected.norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_rows", [1, 4, 5, 33])
def test_every_form_multiplies_like_the_weight(dtype: torch.dtype, num_rows: int) -> None:
    limits = {linears.PLAIN: 0.005, linears.PACKED: 0.005, int8.W8A8: 0.02, int8.INT8: 0.02}
    for form in _forms(dtype):
        for bias in (None, _random(96)):
            assert _error(form, dtype, num_rows, bias) < limits[form], form.description


def test_fp32_loses_nothing_when_packed() -> None:
    assert linears.works(linears.packed, torch.float32)
    assert _error(linears.PACKED, torch.float32, 7, _random(96)) < 1e-6


def test_a_row_does_not_know_its_neighbours() -> None:
    """Each row of states has its own scale: a loud neighbour must not make it coarse."""
    if not linears.works(int8.both_bytes, torch.float32):
        pytest.skip("this processor has no such product")
    product = int8.both_bytes(_random(96, 64), None)
    states = _random(2, 64)
    alone = product(states[:1])
    states[1] *= 1e6
    assert torch.equal(product(states)[:1], alone)


def test_int8_keeps_every_number_within_half_a_step() -> None:
    weight = _random(5000, 64) * torch.logspace(-3, 3, 5000)[:, None]
    weight[7] = 0
    numbers, scales = int8.quantised(weight)
    assert numbers.dtype is torch.int8
    assert bool(((numbers * scales[:, None] - weight).abs() <= scales[:, None] * 0.5001).all())
    assert not numbers[7].any()
    assert int(numbers.abs().max()) == int8.LARGEST


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@pytest.mark.parametrize("form", [int8.W8A8, int8.INT8])
def test_broken_states_stay_broken_and_alone(form: Form, broken: float) -> None:
    if not linears.works(form.pack, torch.float32):
        pytest.skip("this processor has no such product")
    states = _random(3, 64)
    states[1, 5] = broken
    product = form.pack(_random(96, 64), None)(states)
    assert not product[1].isfinite().any()
    assert bool(product[[0, 2]].isfinite().all())


@pytest.mark.parametrize(
    ("flags", "is_served"), [("avx512_vnni", True), ("avx_vnni", True), ("avx512f", False)]
)
def test_states_become_bytes_only_where_their_sums_are_exact(
    flags: str, is_served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(int8, "works", lambda *_: True)
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags : fpu avx2 {flags}\n")
    assert int8.int8_form("int8", torch.float32, "cpu", cpuinfo) is int8.INT8
    if is_served:
        assert int8.int8_form("w8a8", torch.float32, "cpu", cpuinfo) is int8.W8A8
    else:
        with pytest.raises(ModelNotUsable, match="w8a8 needs a processor with VNNI"):
            int8.int8_form("w8a8", torch.float32, "cpu", cpuinfo)


def test_int8_is_refused_on_an_accelerator() -> None:
    with pytest.raises(ModelNotUsable, match="int8 is for processors"):
        int8.int8_form("int8", torch.bfloat16, "cuda")


def test_what_this_torch_lacks_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert linears.best_form(torch.float32, "cpu") is linears.PACKED
    assert linears.best_form(torch.float32, "cuda") is linears.PLAIN
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    assert linears.best_form(torch.float32, "cpu") is linears.PLAIN


def test_what_multiplies_wrongly_is_not_taken() -> None:
    def saturating(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
        return lambda states: functional.linear(states, weight, bias).clamp(-2, 2)

    assert linears.works(linears.plain, torch.float32)
    assert not linears.works(saturating, torch.float32)
