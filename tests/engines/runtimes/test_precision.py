"""Which number formats run where: the table against what it says of its sources, and checkpoints against the table."""

from __future__ import annotations

import pytest

from hfbench.engines.runtimes.cards import capability_of, given_capability
from hfbench.engines.runtimes.precision import below, judge, scheme_named, scheme_of, schemes, table
from hfbench.errors import UsageError
from hfbench.estimate.devices import devices
from hfbench.models.resolution.quantization import Quantization


def packed(method: str | None = None, **given: object) -> Quantization:
    """What a configuration tells of its packing."""
    return Quantization("config.json: quantization_config", given, method)


def test_every_scheme_names_sources_and_capabilities_that_can_be_read() -> None:
    for scheme in schemes():
        assert scheme.runtimes
        for support in scheme.runtimes.values():
            assert support.source
            assert support.never or not below(support.least, "1.0")
        assert not scheme.native or scheme.native in ("7.5", "8.9", "10.0")
    assert {row["from"] for row in table()["dtype"]} <= set(table()["sources"])


@pytest.mark.parametrize(
    ("quantization", "name"),
    [
        (packed("fp8"), "fp8"),
        (packed("awq", bits=4), "int4-awq"),
        (packed("gptq", bits=4), "int4-gptq"),
        (packed("compressed-tensors", format="nvfp4-pack-quantized"), "nvfp4"),
        (packed("compressed-tensors", config_groups={"group_0": {"format": "float-quantized"}}), "fp8"),
        (packed("modelopt_fp4", quantization={"quant_algo": "nvfp4"}), "nvfp4"),
        (packed("mxfp4"), "mxfp4"),
        (packed("bitsandbytes", load_in_4bit=True), "bitsandbytes"),
        (packed("compressed-tensors", format="of tomorrow"), None),
        (packed("aqlm"), None),
        (packed(None, format=["a list"], config_groups=[1], quant_algo=5), None),
        (None, None),
    ],
)
def test_a_checkpoint_is_told_by_algorithm_format_or_method(quantization: Quantization, name: str | None) -> None:
    found = scheme_of(quantization)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("scheme", "runtime", "capability", "status"),
    [
        ("fp8", "transformers", "8.6", "no"),
        ("fp8", "transformers", "8.9", "native"),
        ("fp8", "vllm", "8.0", "slower"),
        ("fp8", "tensorrt_llm", "8.0", "no"),
        ("nvfp4", "vllm", "9.0", "slower"),
        ("nvfp4", "tensorrt_llm", "9.0", "no"),
        ("nvfp4", "sglang", "10.0", "native"),
        ("nvfp4", "sglang", "12.0", "native"),
        ("int4-awq", "vllm", "7.5", "slower"),
        ("int4-awq", "vllm", "8.0", "native"),
        ("int4-gptq", "vllm", "6.1", "no"),
        ("mxfp4", "trtllm_plans", "10.0", "no"),
        ("fp8", "vllm", "", "unknown"),
        ("mxfp8", "vllm", "10.0", "unknown"),
    ],
)
def test_a_scheme_runs_from_its_least_capability_and_natively_from_another(
    scheme: str, runtime: str, capability: str, status: str
) -> None:
    found = scheme_named(scheme)
    assert found is not None
    assert judge(found, runtime, capability).status == status


def test_capabilities_are_compared_as_numbers() -> None:
    assert below("9.0", "10.0")
    assert not below("12.0", "8.9")
    with pytest.raises(UsageError, match="no compute capability"):
        given_capability("sm_90")


def test_every_nvidia_card_of_the_device_table_has_a_capability() -> None:
    unknown = [device.name for device in devices() if not capability_of(device.name)]
    assert all(name.startswith("MI") for name in unknown)
    assert capability_of("NVIDIA H100 80GB HBM3") == "9.0"
    assert capability_of("NVIDIA L40S") == capability_of("NVIDIA L40") == "8.9"
    assert capability_of("NVIDIA A100-SXM4-80GB") == "8.0"
