"""A small GGUF file in llama.cpp's layout, tiny models, and the judges: torch, a process that runs models, Megatron."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tiny_models import Tiny, make_tiny

from hfbench.convert.walls.asking import Judging
from hfbench.jobs.run import Run

HEADS, KV_HEADS, HIDDEN, INNER, LAYERS = 4, 2, 64, 96, 2
HEAD_DIM = HIDDEN // HEADS


@dataclass
class TinyGguf:
    """Writes a file; `changes` replaces metadata (None leaves a key out) and `tensors` replaces tensors."""

    path: Path
    weights: dict[str, Any] = field(default_factory=dict)

    def write(self, changes: dict[str, Any] | None = None, tensors: dict[str, Any] | None = None) -> Path:
        import gguf

        writer = gguf.GGUFWriter(self.path, "llama")
        for key, value in (metadata() | (changes or {})).items():
            if value is not None:
                add(writer, key, value)
        for name, data in (self.weights | (tensors or {})).items():
            if data is not None:
                writer.add_tensor(name, data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return self.path


def add(writer: Any, key: str, value: Any) -> None:
    if key == "general.architecture":
        writer.kv_data[0].pop(key, None)
        writer.add_string(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def vocabulary() -> tuple[list[str], list[str]]:
    """Two special tokens, every byte, and three merges, in the alphabet of byte-level BPE."""
    from tokenizers.pre_tokenizers import ByteLevel

    merges = ["h e", "l l", "he ll"]
    return ["<s>", "</s>", *sorted(ByteLevel.alphabet()), "he", "ll", "hell"], merges


def metadata() -> dict[str, Any]:
    tokens, merges = vocabulary()
    return {
        "llama.block_count": LAYERS,
        "llama.context_length": 128,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.rope.freq_base": 100000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": HEAD_DIM,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 3] + [1] * (len(tokens) - 2),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.chat_template": "{{ messages }}",
    }


@pytest.fixture
def tiny_gguf(tmp_path: Path) -> TinyGguf:
    """Random float32 weights of every tensor a llama of this size has, tied, in the order given."""
    pytest.importorskip("gguf")
    import numpy

    source = numpy.random.default_rng(5)
    tokens, _ = vocabulary()
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(tokens), HIDDEN), "output_norm.weight": (HIDDEN,)}
    for number in range(LAYERS):
        shapes |= {
            f"blk.{number}.attn_norm.weight": (HIDDEN,),
            f"blk.{number}.attn_q.weight": (HIDDEN, HIDDEN),
            f"blk.{number}.attn_k.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"blk.{number}.attn_v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"blk.{number}.attn_output.weight": (HIDDEN, HIDDEN),
            f"blk.{number}.ffn_norm.weight": (HIDDEN,),
            f"blk.{number}.ffn_gate.weight": (INNER, HIDDEN),
            f"blk.{number}.ffn_up.weight": (INNER, HIDDEN),
            f"blk.{number}.ffn_down.weight": (HIDDEN, INNER),
        }
    weights = {name: source.standard_normal(shape, dtype=numpy.float32) for name, shape in shapes.items()}
    return TinyGguf(tmp_path / "tiny.gguf", weights)


class TorchJudge:
    """torch in a process of its own, asked by the names of the functions of `torch_judge.py`."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("torch_judge.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, call: str, *arguments: object) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps({"call": call, "with": [*map(_plain, arguments)]}), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


@pytest.fixture(scope="session")
def torch_judge() -> Iterator[TorchJudge]:
    """The one process with torch of all tests of conversions."""
    judge = TorchJudge()
    yield judge
    assert judge.process.stdin
    judge.process.stdin.close()
    judge.process.wait(30)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The folder of a tiny model by its name, made when it is first asked for."""
    pytest.importorskip("transformers")
    pytest.importorskip("torch").set_num_threads(1)
    top, made = tmp_path_factory.mktemp("tiny"), {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = make_tiny(name, top / name)
        return made[name]

    return folder


@pytest.fixture(scope="session")
def judging() -> Iterator[Judging]:
    """The process with torch and transformers, asked by many tests."""
    with pytest.MonkeyPatch.context() as patch, Judging(Run()) as found:
        patch.setenv("OMP_NUM_THREADS", "1")  # threads that wait for tiny matrices only burn time
        yield found


@pytest.fixture(scope="session")
def megatron_python() -> Path:
    """A Python with megatron-core: the one HFBENCH_TEST_MEGATRON names, else this one."""
    if named := os.environ.get("HFBENCH_TEST_MEGATRON"):
        return Path(named)
    if not find_spec("megatron") or not find_spec("megatron.core"):
        pytest.skip("megatron-core is not installed, and HFBENCH_TEST_MEGATRON names no Python that has it")
    return Path(sys.executable)
