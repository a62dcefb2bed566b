"""Every rule lets through what fits and holds what does not, naming both values and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from engine_toys import built_on, looked, machine_like, manifest_of

from hfbench.engines.compatibility.judge import judge, verdict_of
from hfbench.engines.compatibility.rule import RULES, Case, Row
from hfbench.engines.files import Looked
from hfbench.engines.manifest import Compat, EngineFile, GpuBuilt, Layout, Source
from hfbench.units import GIB

H100 = GpuBuilt(name="NVIDIA H100", compute_capability="9.0", sm_count=132, memory=80 * GIB)


@dataclass(frozen=True, kw_only=True)
class Story:
    """An engine, and how the machine differs from the one it was built on."""

    builder: str = "aoti"
    built: dict[str, Any] = field(default_factory=dict)
    here: dict[str, Any] = field(default_factory=dict)
    gpu: dict[str, Any] | None = None
    """Fields in which the GPU here differs."""
    machine: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, Any] = field(default_factory=dict)
    files: Looked = "right"
    sealed: bool = True

    def case(self) -> Case:
        """The case it tells."""
        built = built_on(**self.built)
        manifest = manifest_of(None, builder=self.builder, built_on=built, **({"seal": "5" * 64} | self.engine))
        here = machine_like(replace(built, **self.here))
        if self.gpu is not None and built.gpu:
            here = replace(here, gpus=(replace(built.gpu, **self.gpu),))
        here = replace(here, **self.machine)
        return Case(manifest=manifest, here=here, files=looked(manifest, self.files), sealed=self.sealed)


def trt(version: str, **more: Any) -> dict[str, Any]:
    """A builder with TensorRT-LLM."""
    return {"tensorrt": version, "tensorrt_llm": "1.2.1", **more}


def moved(builder: str, part: str, built: str, here: str) -> Story:
    """An engine of a builder that met another version of one part."""
    return Story(builder=builder, built={part: built}, here={part: here})


HUGE = 200 * GIB
CPU: dict[str, Any] = {"gpu": None, "cuda": ""}
TRTLLM = "trtllm"
TWO_RANKS = {"layout": Layout(world_size=2, tp=2)}
SLICE = {"gpu": replace(H100, mig="3g.40gb")}

PASSES: dict[str, list[Story]] = {
    "seal": [Story()],
    "files": [Story()],
    "source": [],
    "platform": [Story()],
    "machine": [Story()],
    "cpu-isa": [
        Story(),
        Story(here={"isa": ("avx", "avx2", "fma", "avx512f")}),
        Story(builder="compile", built=CPU),
    ],
    "world-size": [Story(engine=TWO_RANKS, machine={"gpus": (H100, H100)})],
    "processor": [Story(built=CPU)],
    "python": [Story(builder="compile"), Story(builder="compile", here={"python": "3.12.9"})],
    "torch": [
        Story(),
        Story(here={"torch": "2.13.1+cpu"}),
        Story(builder="compile"),
    ],
    "torch-abi": [Story()],
    "triton": [Story(builder="compile", built={"triton": "3.9.0"})],
    "transformers": [Story(builder="compile", built={"transformers": "5.24.0"})],
    "onnxruntime": [
        Story(builder="onnx", built={**CPU, "onnxruntime": "1.22.0"}, here={"onnxruntime": version})
        for version in ("1.22.0", "1.32.0")
    ],
    "openvino": [Story(builder="openvino", built={**CPU, "openvino": "2025.3.0"}, here={"openvino": "2026.4.1"})],
    "tensorrt": [
        Story(builder=TRTLLM, built=trt("10.14.1")),
        Story(builder=TRTLLM, built=trt("10.14.1.48"), here={"tensorrt": "10.14.1"}),
        *(
            Story(
                builder=TRTLLM,
                built=trt(built),
                here={"tensorrt": here},
                engine={"compat": Compat(version_compatible=True)},
            )
            for built, here in (("10.9.0", "10.14.1"), ("8.6.1", "10.0.1"), ("10.14.1", "11.3.0"))
        ),
    ],
    "tensorrt-llm": [Story(builder=TRTLLM, built=trt("10.14.1"))],
    "cuda": [Story(), Story(here={"cuda": "13.1"})],
    "driver": [Story(), Story(here={"driver": "590.10"}), Story(built={"cuda": "12.8"}, here={"driver": "525.60.13"})],
    "nccl": [Story(engine=TWO_RANKS)],
    "gpu": [Story()],
    "compute-capability": [
        Story(),
        Story(
            builder=TRTLLM,
            built={"gpu": replace(H100, compute_capability="8.0")},
            gpu={"compute_capability": "8.6"},
            engine={"compat": Compat(hardware_level="ampere_plus")},
        ),
        Story(builder=TRTLLM, engine={"compat": Compat(hardware_level="same_compute_capability")}),
    ],
    "gpu-model": [Story()],
    "sm-count": [Story()],
    "gpu-memory": [Story()],
    "mig": [Story(), Story(built=SLICE)],
    "dtype": [Story(), Story(engine={"dtype": "bf16"}, gpu={"compute_capability": "8.6"})],
}

HOLDS: dict[str, list[tuple[Story, str, str]]] = {
    "seal": [
        (Story(sealed=False), "mismatch", "edited after the engine was built"),
        (Story(sealed=False, engine={"seal": ""}), "mismatch", "no seal"),
    ],
    "files": [
        (Story(files="missing"), "mismatch", "not there: 'model.pt2'"),
        (Story(files="size"), "mismatch", "of another size"),
        (Story(files="content"), "mismatch", "other content"),
        (Story(files="unreadable"), "mismatch", "cannot be read"),
        (Story(files="not hashed"), "unknown", "nobody has hashed"),
    ],
    "source": [
        (Story(), "noted", "not on this machine"),
        (Story(builder="compile"), "mismatch", "that it reads its weights from is not on this machine"),
    ],
    "platform": [(Story(here={"platform": "win32"}), "mismatch", "built for linux, this is win32")],
    "machine": [
        (Story(here={"machine": "aarch64"}), "mismatch", "built for x86_64, this machine is aarch64"),
        (Story(built={"machine": ""}), "unknown", "does not tell"),
    ],
    "cpu-isa": [
        (Story(here={"isa": ("avx", "avx2")}), "mismatch", "lacks 'fma'"),
        (
            Story(built={"isa": (), "isa_level": "avx512 avx512_vnni"}, here={"isa": ("avx2",)}),
            "mismatch",
            "avx512_vnni",
        ),
        (
            Story(built={"isa": (), "isa_level": "avx2"}, here={"isa": ("avx2", "fma")}),
            "noted",
            "may use other features",
        ),
        (Story(built={"isa": (), "isa_level": ""}), "unknown", "does not tell"),
        (Story(here={"isa": ()}), "unknown", "/proc/cpuinfo"),
        (Story(machine={"elsewhere": True}), "unknown", "another machine"),
    ],
    "world-size": [
        (Story(engine=TWO_RANKS), "mismatch", "spread over 2 GPUs, this machine shows 1"),
        (Story(engine=TWO_RANKS, machine={"gpus_known": False, "gpu_reason": "no answer"}), "unknown", "no answer"),
    ],
    "processor": [(Story(built=CPU, here={"cpu": "another"}), "noted", "another processor")],
    "python": [(Story(builder="compile", here={"python": "3.11.7"}), "unknown", "by Python 3.12.4, this is 3.11.7")],
    "torch": [
        (Story(here={"torch": ""}), "mismatch", "torch is not installed"),
        (Story(here={"torch": "2.12.0+cu130"}), "mismatch", "may call what torch 2.12.0+cu130 lacks"),
        (Story(here={"torch": "2.14.0+cu130"}), "unknown", "nobody here has tried"),
        (Story(builder="compile", here={"torch": "2.13.0+cpu"}), "mismatch", "none of it would be found"),
    ],
    "torch-abi": [
        (Story(here={"abi": "pre-cxx11"}), "mismatch", "built for the C++ ABI cxx11, this torch has pre-cxx11"),
        (Story(here={"abi": ""}), "unknown", "only when it is imported"),
    ],
    "triton": [
        (
            Story(builder="compile", built={"triton": "3.9.0"}, here={"triton": "3.6.0"}),
            "mismatch",
            "3.9.0, here is 3.6.0",
        )
    ],
    "transformers": [
        (
            Story(builder="compile", built={"transformers": "5.24.0"}, here={"transformers": "5.25.0"}),
            "unknown",
            "5.24.0, here is 5.25.0",
        ),
        (
            Story(builder="compile", built={"transformers": "5.24.0"}, here={"transformers": ""}),
            "mismatch",
            "not installed",
        ),
    ],
    "onnxruntime": [
        (Story(builder="onnx", built={"onnxruntime": "1.32.0"}, here={"onnxruntime": ""}), "mismatch", "not installed"),
        (
            Story(builder="onnx", built={"onnxruntime": "1.32.0"}, here={"onnxruntime": "1.22.0"}),
            "unknown",
            "the older 1.22.0",
        ),
    ],
    "openvino": [
        (moved("openvino", "openvino", "2026.4.1", ""), "mismatch", "not installed"),
        (moved("openvino", "openvino", "2026.4.1", "2025.3.0"), "unknown", "the older 2025.3.0"),
    ],
    "tensorrt": [
        (Story(builder=TRTLLM, built=trt("10.14.1"), here={"tensorrt": ""}), "mismatch", "not installed"),
        (Story(builder=TRTLLM, built=trt("10.14.1"), here={"tensorrt": "10.14.2"}), "mismatch", "tag will not match"),
        *(
            (
                Story(
                    builder=TRTLLM,
                    built=trt(built),
                    here={"tensorrt": here},
                    engine={"compat": Compat(version_compatible=True)},
                ),
                "mismatch",
                words,
            )
            for built, here, words in (
                ("10.14.1", "10.9.0", "never load in older versions"),
                ("11.3.0", "10.14.1", "never load in older versions"),
                ("8.6.1", "11.3.0", "to one major version at most"),
            )
        ),
    ],
    "tensorrt-llm": [
        (
            moved(TRTLLM, "tensorrt_llm", "1.2.1", "1.3.0rc29"),
            "mismatch",
            "runs no plans any more",
        ),
        (moved(TRTLLM, "tensorrt_llm", "1.2.1", ""), "mismatch", "not installed"),
        (moved(TRTLLM, "tensorrt_llm", "1.2.1", "1.1.0"), "unknown", "neither compares"),
    ],
    "cuda": [
        (Story(here={"cuda": ""}), "mismatch", "built without CUDA"),
        (Story(here={"cuda": "12.8"}), "mismatch", "linked to the CUDA 13 runtime, here is CUDA 12.8"),
        (Story(built={"cuda": "13.1"}, here={"cuda": "13.0"}), "unknown", "may call what the runtime of 13.0 lacks"),
        (Story(builder="compile", here={"cuda": "13.1"}), "mismatch", "keyed by CUDA 13.0"),
    ],
    "driver": [
        (Story(here={"driver": "580.60.00"}), "mismatch", "needs driver 580.65.06 or newer, here is 580.60.00"),
        (Story(built={"cuda": "12.8"}, here={"driver": "525.60.12"}), "mismatch", "needs driver 525.60.13"),
        (
            Story(here={"driver": ""}, machine={"gpu_reason": "not loaded"}),
            "mismatch",
            "there is no driver: not loaded",
        ),
        (Story(here={"driver": ""}, machine={"gpus_known": False, "gpu_reason": "late"}), "unknown", "late"),
        (Story(built={"cuda": "13.1"}), "noted", "the driver is for CUDA 13.0, the engine for 13.1"),
        (Story(built={"cuda": "17.0", "driver": "900.1"}, here={"driver": "800.1"}), "unknown", "is not known"),
    ],
    "nccl": [
        (Story(engine=TWO_RANKS, here={"nccl": "1.9.0"}), "mismatch", "built with NCCL 2.28.9, here is 1.9.0"),
        (Story(engine=TWO_RANKS, here={"nccl": "2.20.5"}), "unknown", "may call what 2.20.5 lacks"),
        (Story(engine=TWO_RANKS, here={"nccl": ""}), "unknown", "may come with the system"),
    ],
    "gpu": [
        (Story(machine={"gpus": (), "gpu_reason": "no driver"}), "mismatch", "there is no GPU: no driver"),
        (Story(machine={"gpus": (), "gpus_known": False, "gpu_reason": "no answer"}), "unknown", "no answer"),
        (Story(machine={"elsewhere": True}), "unknown", "may see other GPUs"),
    ],
    "compute-capability": [
        (Story(gpu={"compute_capability": "10.0"}), "mismatch", "built for compute capability 9.0, this GPU has 10.0"),
        (
            Story(built={"gpu": replace(H100, compute_capability="8.0")}, gpu={"compute_capability": "8.6"}),
            "mismatch",
            "the same major version is not enough",
        ),
        (
            Story(
                builder=TRTLLM,
                gpu={"compute_capability": "7.5"},
                engine={"compat": Compat(hardware_level="ampere_plus")},
            ),
            "mismatch",
            "for Ampere and later",
        ),
        (
            Story(
                builder=TRTLLM,
                gpu={"compute_capability": "8.9"},
                engine={"compat": Compat(hardware_level="same_compute_capability")},
            ),
            "mismatch",
            "this GPU has 8.9",
        ),
    ],
    "gpu-model": [
        (Story(gpu={"name": "NVIDIA H200"}), "noted", "another model"),
        (Story(builder="compile", gpu={"name": "NVIDIA H200"}), "mismatch", "keyed by NVIDIA H100"),
    ],
    "sm-count": [(Story(gpu={"sm_count": 114}), "noted", "tuned for 132 multiprocessors, this GPU has 114")],
    "gpu-memory": [
        (
            Story(engine={"files": (EngineFile(name="w", size=HUGE, sha256="0" * 64),)}),
            "mismatch",
            "its files alone take 200 GiB a rank, this GPU has 80.0 GiB",
        ),
        (Story(gpu={"memory": 40 * GIB}), "noted", "cache and workspace may not"),
    ],
    "mig": [(Story(built=SLICE, gpu={"mig": ""}), "noted", "built on 3g.40gb, this is a whole card")],
    "dtype": [
        (
            Story(engine={"dtype": "bf16", "quantisation": "fp8"}, gpu={"compute_capability": "8.6"}),
            "mismatch",
            "needs compute capability 8.9",
        ),
        (Story(engine={"dtype": "nvfp4"}, gpu={"compute_capability": "8.9"}), "mismatch", "capability 10.0"),
    ],
}


def row_of(rule: str, story: Story) -> Row | None:
    """What one rule says of a story."""
    return RULES[rule].row(story.case())


@pytest.mark.parametrize(("rule", "story"), [(rule, each) for rule, stories in PASSES.items() for each in stories])
def test_what_fits_passes(rule: str, story: Story) -> None:
    row = row_of(rule, story)
    assert row is not None
    assert row.status == "ok", row.found
    assert row.id == rule
    assert row.rule


@pytest.mark.parametrize(
    ("rule", "story", "status", "words"), [(rule, *each) for rule, stories in HOLDS.items() for each in stories]
)
def test_what_does_not_fit_is_held_and_named(rule: str, story: Story, status: str, words: str) -> None:
    row = row_of(rule, story)
    assert row is not None
    assert (row.status, words in row.found) == (status, True), row.found
    if status == "mismatch":
        assert row.remedy


def test_every_rule_has_a_passing_and_a_holding_case() -> None:
    assert set(PASSES) == set(HOLDS) == set(RULES)
    assert [rule for rule, stories in HOLDS.items() if not stories] == []
    assert [rule for rule, stories in PASSES.items() if not stories] == ["source"]  # see below: it reads a folder


@pytest.mark.parametrize("builder", ["onnx", "openvino"])
def test_portable_models_are_not_held_by_the_processor(builder: str) -> None:
    versions = {"onnxruntime": "1.32.0", "openvino": "2026.4.1"}
    story = Story(builder=builder, built={**CPU, **versions}, here={"machine": "aarch64", "isa": ("asimd",)})
    assert judge(story.case()).verdict == "loads here"


def test_a_cpu_engine_asks_nothing_of_gpus() -> None:
    story = Story(built=CPU, machine={"gpus": (), "gpus_known": False})
    judged = judge(story.case())
    assert judged.verdict == "loads here"
    assert not {"gpu", "driver", "cuda", "compute-capability"} & {row.id for row in judged.rows}


def test_one_mismatch_decides_and_one_unknown_leaves_it_open() -> None:
    def row(status: Any) -> Row:
        return Row(status=status, built="", here="")

    assert verdict_of([row("ok"), row("noted")]) == "loads here"
    assert verdict_of([row("ok"), row("unknown")]) == "cannot tell"
    assert verdict_of([row("unknown"), row("mismatch")]) == "will not load"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder that stands for a checkpoint."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"x" * 8)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (lambda folder: None, "ok", ""),
        (lambda folder: (folder / "config.json").write_text("{ }"), "noted", "'config.json'"),
        (lambda folder: (folder / "model.safetensors").unlink(), "noted", "'model.safetensors'"),
    ],
)
def test_a_checkpoint_that_changed_is_noted(
    checkpoint: Path, change: Callable[[Path], object], status: str, words: str
) -> None:
    digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of {}
    weights = EngineFile(name="model.safetensors", size=8, sha256="0" * 64)
    source = Source(given="x", folder=str(checkpoint), config_sha256=digest, files=(weights,))
    change(checkpoint)
    row = row_of("source", Story(engine={"source": source}))
    assert row is not None
    assert (row.status, words in row.found) == (status, True)


@pytest.mark.parametrize(
    ("builder", "size", "status", "here"),
    [
        ("compile", 8, "ok", "of the same sizes, not hashed"),
        ("compile", 9, "mismatch", "changed"),
        ("aoti", 9, "noted", "changed"),
    ],
)
def test_an_engine_that_reads_its_checkpoint_is_held_by_what_changed_there(
    checkpoint: Path, builder: str, size: int, status: str, here: str
) -> None:
    weights = EngineFile(name="model.safetensors", size=size, sha256="0" * 64)
    source = Source(given="x", folder=str(checkpoint), files=(weights,))
    row = row_of("source", Story(builder=builder, engine={"source": source}))
    assert row is not None
    assert (row.status, row.here) == (status, here)


@pytest.mark.parametrize("name", ["x" * 100_000, "a\0b", "\ud800"])
def test_a_checkpoint_in_a_folder_that_cannot_be_is_not_here(name: str) -> None:
    row = row_of("source", Story(engine={"source": Source(given="x", folder=f"/{name}")}))
    assert row is not None
    assert (row.status, row.here) == ("noted", "not here")
