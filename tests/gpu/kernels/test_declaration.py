"""What a kernel file declares: what does not fit together is named, and signatures are those of the compiler."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from kernel_files import write

from hfbench.gpu.kernels.declaration import Config, Kernel, Tolerance, specialise
from hfbench.gpu.kernels.loading import load, shipped

pytest.importorskip("triton")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return load(write(tmp_path))[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"configs": ()}, "configs is empty: give one Config at least"),
        ({"configs": (Config(constants={}),)}, "nothing says what 'BLOCK' is: no constant of default w4 s3"),
        ({"configs": (Config(constants={"BLOCK": 1, "Q": 1}),)}, "fn has no parameter 'Q'"),
        ({"configs": (Config(constants={"BLOCK": 1}),) * 2}, "two configurations are called 'BLOCK=1 w4 s3'"),
        ({"signature": {"x": "*T", "y": "*T"}}, "nothing says what 'n' is: no constant of BLOCK=64 w4 s3"),
        ({"signature": {"x": "*T:8", "y": "*T", "n": "i32"}}, "signature: 'x' is '*T:8'"),
        ({"signature": {"x": "T*", "y": "*T", "n": "i32"}}, "signature: 'x' is 'T*'"),
        ({"outputs": ()}, "outputs is empty"),
        ({"outputs": ("z",)}, "'z' is an output and not in the signature"),
        ({"dtypes": ("fp16", "fp12")}, "the element type 'fp12' is not known"),
        ({"dtypes": ("bf16",)}, "no tolerance for bf16"),
        ({"dtypes": ()}, "dtypes is empty"),
        ({"shapes": ()}, "shapes is empty"),
        ({"reference": None}, "reference is a NoneType; give a function"),
        ({"fn": len}, "fn is no function under @triton.jit but a builtin_function_or_method"),
    ],
)
def test_what_does_not_fit_together_is_named(kernel: Kernel, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        dataclasses.replace(kernel, **change)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("value", [-1e-9, float("nan"), float("inf"), "1e-3", None])
def test_a_tolerance_that_nothing_can_be_compared_with_is_refused(value: Any) -> None:
    for name in ("relative", "absolute"):
        with pytest.raises(ValueError, match=f"the {name} tolerance is .*; give a number from 0 on"):
            Tolerance(**{"relative": 0.0, name: value})


def test_an_autotuned_function_is_told_from_a_compiled_one(kernel: Kernel) -> None:
    import triton

    tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=["n"], do_bench=lambda *_, **__: 0)(kernel.fn)
    with pytest.raises(ValueError, match=r"hand over its \.fn and list the configurations"):
        dataclasses.replace(kernel, fn=tuned)
    assert dataclasses.replace(kernel, fn=tuned.fn).fn is kernel.fn


def test_a_signature_for_one_element_type_is_what_the_compiler_takes(kernel: Kernel) -> None:
    once = dataclasses.replace(kernel, signature={"x": "*T:16", "y": "*fp32", "n": "1"})
    found = specialise(once, once.config("BLOCK=128 w8 s3"), "bf16")
    assert list(found.types.items()) == [("x", "*bf16"), ("y", "*fp32"), ("n", "constexpr"), ("BLOCK", "constexpr")]
    assert found.constants == {"n": 1, "BLOCK": 128}
    assert found.attributes == {(0,): [["tt.divisibility", 16]]}


def test_labels_tell_configurations_apart() -> None:
    plain = Config(constants={"BM": 64, "BN": 32}, num_warps=8, num_stages=2)
    assert plain.label == "BM=64,BN=32 w8 s2"
    assert dataclasses.replace(plain, name="64x32", options={"maxnreg": 128}).label == "64x32 w8 s2 maxnreg=128"


USUAL = {"penalties": "fp32", "top_k_top_p": "fp32", "dequant_fp8": "bf16"}
"""Logits are fp32 where they are sampled, and checkpoints in FP8 are of models in bf16."""


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_kernel_counts_bytes_and_operations(name: str) -> None:
    pytest.importorskip("torch")
    from hfbench.gpu.kernels.declaration import Case

    kernel, _ = load(shipped()[name])
    assert kernel.name == name
    assert kernel.dtypes[0] == USUAL.get(name, "fp16"), "the usual type comes first"
    sizes = [math_of(kernel, Case(shape=shape, dtype="fp16")) for shape in kernel.sizes or kernel.shapes]
    assert all(moved > 0 and flops > 0 for moved, flops in sizes)
    half, full = (kernel.bytes_moved(Case(shape=kernel.shapes[-1], dtype=dtype)) for dtype in ("fp16", "fp32"))
    pointers = {spelled.partition(":")[0] for spelled in kernel.signature.values() if spelled.startswith("*")}
    assert full == 2 * half if pointers == {"*T"} else half < full < 2 * half


def math_of(kernel: Kernel, case: Any) -> tuple[int, int]:
    return kernel.bytes_moved(case), kernel.flops(case)


def test_the_models_of_the_library_are_their_formulas() -> None:
    pytest.importorskip("torch")
    from hfbench.gpu.kernels.declaration import Case

    matmul, rmsnorm = (load(shipped()[name])[0] for name in ("matmul", "rmsnorm"))
    cube = Case(shape={"M": 4, "N": 8, "K": 16}, dtype="fp32")
    assert (matmul.flops(cube), matmul.bytes_moved(cube)) == (2 * 4 * 8 * 16, 4 * (4 * 16 + 16 * 8 + 4 * 8))
    rows = Case(shape={"R": 3, "C": 5}, dtype="bf16")
    assert rmsnorm.bytes_moved(rows) == 2 * (3 * 5 + 3 * 5 + 5)
