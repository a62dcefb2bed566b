"""The declaration of bench.generate: what is refused before anything is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hfbench.actions.base import InvalidParams
from hfbench.actions.bench_generate import Generate

SPEC = Generate.spec  # type: ignore[attr-defined]


def test_a_model_is_all_that_must_be_said() -> None:
    request = SPEC.build({"model": "here"})
    assert (request.device, request.dtype, request.budget, request.ci) == ("auto", "auto", 60.0, 0.02)
    assert SPEC.lease == "device"
    assert SPEC.extra == "torch"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("new_tokens", 1, "below the least value 2"),
        ("batch", 0, "below the least value 1"),
        ("prompt", 0, "below the least value 1"),
        ("budget", "soon", "is not a duration"),
        ("ci", 0, "below the least value"),
        ("dtype", "int4", "int4"),
        ("attention", "flash", "flash"),
        ("mode", "tensorrt", "tensorrt"),
        ("compile_mode", "fastest", "fastest"),
        ("temperature", 1, "unknown field 'temperature'"),
    ],
)
def test_a_wrong_field_is_named_with_its_bound(field: str, value: object, told: str) -> None:
    with pytest.raises(InvalidParams, match=field) as caught:
        SPEC.build({"model": "here", field: value})
    assert told in str(caught.value)


def test_the_declaration_loads_nothing_heavy() -> None:
    code = "import sys, hfbench.actions.bench_generate, hfbench.actions.demo, hfbench.actions.gpus; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "numpy", "gguf", "pynvml", "textual"} & set(loaded)
