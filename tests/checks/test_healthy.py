"""No false alarm: what transformers itself saves is ok, in all the layouts in which healthy models lie about."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from healthy_models import CAUSAL, OTHERS, save

from hfbench.checks.run import Report, check

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

COMMIT = "a" * 40

Weights = dict[str, Any]


def told(report: Report) -> list[tuple[str, str, str]]:
    """What speaks against a model: nothing should."""
    return [(each.id, each.file, each.message) for each in report.findings if each.severity != "info"]


@pytest.mark.parametrize("name", [*CAUSAL, *OTHERS])
def test_what_transformers_saves_is_ok(name: str, tmp_path: Path) -> None:
    report = check(str(save(tmp_path / name.replace(" ", "-"), name)))
    assert (report.verdict, told(report)) == ("ok", [])


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("healthy") / "llama", "llama")


@pytest.fixture(scope="module")
def state(llama: Path) -> Weights:
    from safetensors.torch import load_file

    loaded: Weights = load_file(llama / "model.safetensors")
    return loaded


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def configured(folder: Path, drop: str = "", **changes: Any) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if key not in drop.split()}))


def stored(folder: Path, tensors: Weights, name: str = "model.safetensors") -> None:
    from safetensors.torch import save_file

    (folder / name).parent.mkdir(exist_ok=True)
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / name, metadata={"format": "pt"})


def projections(state: Weights, made: Callable[[str, Any], Weights]) -> Weights:
    """The tensors with every projection replaced by what a quantization makes of it."""
    found: Weights = {}
    for name, tensor in state.items():
        found |= made(name.removesuffix(".weight"), tensor) if "_proj" in name else {name: tensor}
    return found


def sharded(folder: Path, state: Weights) -> None:
    without_weights(folder)
    names = sorted(state)
    parts = {f"model-0000{n + 1}-of-00002.safetensors": names[n::2] for n in range(2)}
    for file, held in parts.items():
        stored(folder, {name: state[name] for name in held}, file)
    total = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    weight_map = {name: file for file, held in parts.items() for name in held}
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True))


def sharded_below(folder: Path, state: Weights) -> None:
    sharded(folder, state)
    moved = "model-00002-of-00002.safetensors"
    (folder / "parts").mkdir()
    (folder / moved).rename(folder / "parts" / moved)
    path = folder / "model.safetensors.index.json"
    path.write_text(path.read_text().replace(f'"{moved}"', f'"parts/{moved}"'))


def pickled(folder: Path, state: Weights) -> None:
    without_weights(folder)
    torch.save(state, folder / "pytorch_model.bin")


def pickled_first(folder: Path, state: Weights) -> None:
    without_weights(folder)
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def pickled_in_shards(folder: Path, state: Weights) -> None:
    without_weights(folder)
    names = sorted(state)
    parts = {f"pytorch_model-0000{n + 1}-of-00002.bin": names[n::2] for n in range(2)}
    for file, held in parts.items():
        torch.save({name: torch.nn.Parameter(state[name]) for name in held}, folder / file)
    weight_map = {name: file for file, held in parts.items() for name in held}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))


def trained(folder: Path, state: Weights) -> None:
    """A trainer's folder: its own files beside the model, and an earlier checkpoint."""
    parameter = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.AdamW([parameter])
    parameter.sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), folder / "optimizer.pt")
    torch.save({"last_epoch": 3, "base_lrs": [1e-4]}, folder / "scheduler.pt")
    torch.save({"cpu": torch.random.get_rng_state(), "python": (3, (1, 2), None)}, folder / "rng_state.pth")
    (folder / "trainer_state.json").write_text('{"epoch": 1.0, "log_history": [{"loss": NaN}]}')
    (folder / "checkpoint-500").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(folder / name, folder / "checkpoint-500")
    (folder / "README.md").write_text("# A model\n")
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs diff=lfs merge=lfs -text\n")
    (folder / "zero_to_fp32.py").write_text("import os\nos.system('true')\n")


def copied_below(folder: Path, state: Weights) -> None:
    """The weights once more, as their authors have them."""
    (folder / "original").mkdir()
    torch.save(state, folder / "original" / "consolidated.00.pth")
    (folder / "original" / "params.json").write_text('{"dim": 32}')
    stored(folder, state, "metal/model.safetensors")


def in_other_formats(folder: Path, state: Weights) -> None:
    (folder / "model-Q4_K_M.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(56))
    (folder / "tf_model.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40))
    (folder / "flax_model.msgpack").write_bytes(b"\x83" + bytes(40))
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"\x08\x07")
    (folder / "openvino").mkdir()
    (folder / "openvino" / "openvino_model.bin").write_bytes(bytes(range(64)))
    torch.save(state, folder / "pytorch_model.bin")


def cloned(folder: Path, state: Weights) -> None:
    for name in (".git/lfs/objects", ".cache/huggingface/download"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x").write_text("x")
    (folder / "figure.png").write_bytes(b"\x89PNG")
    (folder / ".DS_Store").write_bytes(bytes(8))
    (folder / "logs").symlink_to("/tmp")


def linked_inside(folder: Path, state: Weights) -> None:
    (folder / "store").mkdir()
    (folder / "model.safetensors").rename(folder / "store" / "w")
    (folder / "model.safetensors").symlink_to("store/w")


def adapted(folder: Path, state: Weights) -> None:
    """An adapter beside the model it was trained for."""
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    stored(folder, {name: torch.zeros(4, 32)}, "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "org/tiny"}')


def of_an_older_release(folder: Path, state: Weights) -> None:
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    configured(
        folder,
        drop="dtype rope_parameters transformers_version",
        torch_dtype="bfloat16",
        rope_theta=500000.0,
        rope_scaling={**scaling, "original_max_position_embeddings": 64},
        pretraining_tp=1,
        use_cache=True,
        auto_map={},
        quantization_config=None,
        _name_or_path="org/tiny",
    )


def with_several_ends(folder: Path, state: Weights) -> None:
    configured(folder, eos_token_id=[2, 5])
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 5], "do_sample": true, "temperature": 0.6}')


def with_norms_in_float32(folder: Path, state: Weights) -> None:
    stored(folder, {name: tensor.float() if "norm" in name else tensor for name, tensor in state.items()})


def with_words_of_its_own(folder: Path, state: Weights) -> None:
    """Files of the slow tokenizers beside the fast one."""
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "special_tokens_map.json").write_text('{"eos_token": "</s>", "bos_token": {"content": "<s>"}}')
    (folder / "added_tokens.json").write_text('{"<pad>": 3}')


def with_sentencepiece_alone(folder: Path, state: Weights) -> None:
    (folder / "tokenizer.json").unlink()
    pieces = [b"<unk>", b"<s>", b"</s>", b"<pad>", *(b"t%d" % number for number in range(4, 64))]
    entries = [b"\x0a" + bytes([len(piece)]) + piece + b"\x15\0\0\0\0" for piece in pieces]
    raw = b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in entries)
    (folder / "tokenizer.model").write_bytes(raw + b"\x12\x02\x18\x01")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tokenizer_class": "LlamaTokenizer"}))


def with_code_that_is_not_needed(folder: Path, state: Weights) -> None:
    configured(folder, auto_map={"AutoConfig": "configuration.Config", "AutoModelForCausalLM": "modeling.Model"})
    for name in ("configuration.py", "modeling.py"):
        (folder / name).write_text("raise SystemExit\n")


def in_gptq(folder: Path, state: Weights) -> None:
    def packed(name: str, tensor: Any) -> Weights:
        rows, columns = tensor.shape
        groups = -(-columns // 32)
        return {
            f"{name}.qweight": torch.zeros(columns // 8, rows, dtype=torch.int32),
            f"{name}.qzeros": torch.zeros(groups, rows // 8, dtype=torch.int32),
            f"{name}.scales": torch.zeros(groups, rows, dtype=torch.float16),
            f"{name}.g_idx": torch.zeros(columns, dtype=torch.int32),
        }

    stored(folder, projections(state, packed))
    configured(folder, quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 32}, dtype="float16")


def in_fp8(folder: Path, state: Weights) -> None:
    def packed(name: str, tensor: Any) -> Weights:
        scale = torch.ones(1, 1)
        return {f"{name}.weight": tensor.to(torch.float8_e4m3fn), f"{name}.weight_scale_inv": scale}

    stored(folder, projections(state, packed))
    configured(folder, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})


def in_nf4(folder: Path, state: Weights) -> None:
    def packed(name: str, tensor: Any) -> Weights:
        return {
            f"{name}.weight": torch.zeros(tensor.numel() // 2, 1, dtype=torch.uint8),
            f"{name}.weight.absmax": torch.zeros(8, dtype=torch.uint8),
            f"{name}.weight.quant_map": torch.zeros(16),
            f"{name}.weight.quant_state.bitsandbytes__nf4": torch.zeros(50, dtype=torch.uint8),
        }

    stored(folder, projections(state, packed))
    configured(folder, quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})


def in_packed_integers(folder: Path, state: Weights) -> None:
    def packed(name: str, tensor: Any) -> Weights:
        rows, columns = tensor.shape
        return {
            f"{name}.weight_packed": torch.zeros(rows, columns // 8, dtype=torch.int32),
            f"{name}.weight_scale": torch.ones(rows, 1, dtype=torch.bfloat16),
            f"{name}.weight_shape": torch.tensor([rows, columns]),
        }

    stored(folder, projections(state, packed))
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int"}}}
    configured(folder, quantization_config={"quant_method": "compressed-tensors", "config_groups": groups})


def in_fp8_of_modelopt(folder: Path, state: Weights) -> None:
    def packed(name: str, tensor: Any) -> Weights:
        scales = {f"{name}.weight_scale": torch.ones(1), f"{name}.input_scale": torch.ones(1)}
        return {f"{name}.weight": tensor.to(torch.float8_e4m3fn), **scales}

    stored(folder, projections(state, packed))
    told = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (folder / "hf_quant_config.json").write_text(json.dumps(told))


LAYOUTS: list[Callable[[Path, Weights], object]] = [
    sharded,
    sharded_below,
    pickled,
    pickled_first,
    pickled_in_shards,
    trained,
    copied_below,
    in_other_formats,
    cloned,
    linked_inside,
    adapted,
    of_an_older_release,
    with_several_ends,
    with_norms_in_float32,
    with_words_of_its_own,
    with_sentencepiece_alone,
    with_code_that_is_not_needed,
    in_gptq,
    in_fp8,
    in_nf4,
    in_packed_integers,
    in_fp8_of_modelopt,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: each.__name__)
def test_a_healthy_model_is_ok_however_it_lies(
    layout: Callable[[Path, Weights], object], llama: Path, state: Weights, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(llama, tmp_path / "model"))
    layout(folder, state)
    report = check(str(folder))
    assert (report.verdict, told(report)) == ("ok", [])


def test_a_healthy_model_is_ok_in_a_cache_by_every_name(llama: Path, tmp_path: Path) -> None:
    repo = tmp_path / "hub" / "models--org--tiny"
    snapshot = repo / "snapshots" / COMMIT
    for each in (repo / "blobs", repo / "refs", snapshot, repo / ".no_exist" / COMMIT):
        each.mkdir(parents=True)
    for file in llama.iterdir():
        blob = hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, repo / "blobs" / blob)
        (snapshot / file.name).symlink_to(f"../../blobs/{blob}")
    (repo / "refs" / "main").write_text(COMMIT)
    (repo / ".no_exist" / COMMIT / "adapter_config.json").touch()
    for given in ("org/tiny", f"org/tiny@{COMMIT}", str(repo), str(snapshot)):
        report = check(given, cache_dir=tmp_path / "hub")
        assert (given, report.verdict, told(report)) == (given, "ok", [])
    link = tmp_path / "link"
    link.symlink_to(snapshot)
    assert check(str(link)).verdict == "ok"
    local = tmp_path / "local"  # as older releases of the hub's library filled a folder: with links into the cache
    local.mkdir()
    for file in snapshot.iterdir():
        (local / file.name).symlink_to(file.resolve())
    assert told(check(str(local))) == []


def test_a_family_that_ties_by_itself_and_one_that_never_does(tmp_path: Path) -> None:
    """A head that is missing on purpose, and one that is not: the same tensors, another configuration."""
    folder = save(tmp_path / "tied", "llama tied")
    assert check(str(folder)).verdict == "ok"
    configured(folder, tie_word_embeddings=False)
    assert "HB224" in [each.id for each in check(str(folder)).findings]
