"""Resolution of what was made to hurt it: depth, width, length, code that points everywhere, folders that move."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.resolve import Resolve
from hfbench.codec import encode
from hfbench.jobs.run import Run
from hfbench.models.files import ModelFile
from hfbench.models.json_text import DEEPEST, cut_depth
from hfbench.models.resolution import remote_code, resolve
from hfbench.models.resolution.remote_code import Modules, read_auto_map
from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.resolution.trace import Step

LONG = "x" * 2**20

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 32,
    "rope_theta": 10000.0,
}


def nested(levels: int, key: str = "a", inside: Any = 1) -> str:
    """The text of objects within objects: `json.dumps` itself would give up."""
    return f'{{"{key}": ' * levels + json.dumps(inside) + "}" * levels


def step(found: Resolution, name: str) -> Step:
    return next(each for each in found.steps if each.step == name)


HOSTILE: dict[str, str | dict[str, Any]] = {
    "all of it deep": nested(900, "text_config", LLAMA),
    "deep rope": f'{{"model_type": "llama", "rope_scaling": {nested(900)}}}',
    "deep quantization": f'{{"model_type": "llama", "quantization_config": {nested(900, "quantization")}}}',
    "deep algorithm": '{"model_type": "llama", "quantization_config": {"producer": {"name": "modelopt"}, '
    f'"quantization": {{"quant_algo": {nested(600)}}}}}}}',
    "deep auto_map": f'{{"model_type": "mine", "auto_map": {nested(900, "AutoConfig")}}}',
    "long model_type": {"model_type": LONG},
    "long architectures": {"architectures": [LONG] * 20},
    "many architectures": {"architectures": [f"Q{number}ForCausalLM" for number in range(200_000)]},
    "long method": {"quantization_config": {"quant_method": LONG, "bits": LONG}},
    "long auto_map": {"model_type": "mine", "auto_map": {"AutoConfig": LONG, "AutoModel": "a/" * 2**19}},
    "dashes in auto_map": {"model_type": "mine", "auto_map": {"AutoConfig": "-" * 2**20}},
    "auto_map as text": {"model_type": "mine", "auto_map": LONG},
    "auto_map as list": {"model_type": "mine", "auto_map": [LONG, ["AutoConfig"]]},
    "auto_map of lists": {"model_type": "mine", "auto_map": {"AutoConfig": ["m.C"] * 100_000}},
    "many entries": {"auto_map": {f"Auto{number}": f"m{number}.C" for number in range(100_000)}},
    "wide rope": {"rope_scaling": {f"k{number}": number for number in range(200_000)}},
    "long rope": {"rope_scaling": {f"{LONG}{number}": LONG for number in range(8)}},
    "long dtype": {"torch_dtype": LONG},
    "long layer types": {"layer_types": [LONG] * 8},
    "long head": {"tie_word_embeddings": LONG},
    "long weights": {"transformers_weights": LONG},
    "huge head_dim": {"head_dim": 10**400 + 1},
    "huge theta": {"rope_theta": 10**400},
    "huge factor": {"rope_scaling": {"type": "linear", "factor": 10**400}, "max_position_embeddings": 10**300},
    "huge sizes": {"hidden_size": 10**3000 + 1, "num_attention_heads": 10**3000},
    "no numbers": {"rope_theta": float("nan"), "max_position_embeddings": float("inf")},
}


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_configuration_ends_in_sentences_of_bounded_length(tmp_path: Path, case: str) -> None:
    told = HOSTILE[case]
    (tmp_path / "config.json").write_text(told if isinstance(told, str) else json.dumps({**LLAMA, **told}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": LONG, "auto_map": [LONG, None]}))
    (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    begun = time.process_time()
    result = Resolve(model=str(tmp_path)).perform(Run())
    assert time.process_time() - begun < 10
    assert len(json.dumps(encode(result))) < 200_000
    lines = result.lines()
    assert len(lines) < 120
    assert all(len(line) <= 80 and line.isprintable() for line in lines)


def test_depth_is_cut_where_it_is_told_and_nowhere_else() -> None:
    sys_limit = sys.getrecursionlimit()
    value: dict[str, Any] = {"kept": 1}
    for _ in range(DEEPEST - 2):
        value = {"a": value, "b": [{"c": 1}]}
    assert not cut_depth(value)
    value = {"a": {"a": {"a": value}}}
    assert cut_depth(value)
    for _ in range(DEEPEST):
        value = value["a"]
    assert value == {}
    assert sys.getrecursionlimit() == sys_limit


def test_code_in_a_circle_and_beside_itself_is_named_once(tmp_path: Path) -> None:
    code = {"a.py": "from .b import x\nfrom . import c, d as e\n", "b.py": "from .a import y\n", "c.py": "import a\n"}
    found = entry(tmp_path, code, "a.C")
    assert found.files == ("a.py", "b.py", "c.py")
    assert found.missing == ("d.py",)


@pytest.mark.parametrize(
    "text",
    [
        "from ." + "a" * 2**21,
        "from ." + "a." * 2**20 + " imp",
        "from . import " + "a, " * 2**19,
        " " * 2**22 + "x",
        "\n".join(f"from .m{number} import x" for number in range(100_000)),
    ],
    ids=["long name", "many dots", "many names", "white space", "many lines"],
)
def test_source_of_megabytes_is_read_in_little_time(tmp_path: Path, text: str) -> None:
    begun = time.process_time()
    found = entry(tmp_path, {"a.py": text}, "a.C")
    assert time.process_time() - begun < 10
    assert found.files == ("a.py",)
    assert len(found.missing) <= remote_code.MOST_MODULES


def entry(folder: Path, code: dict[str, str], reference: str) -> remote_code.CodeEntry:
    files = {}
    for name, text in code.items():
        (folder / name).write_text(text)
        files[name] = ModelFile(name, folder / name, len(text), "code")
    [found] = read_auto_map({"AutoConfig": reference}, Modules(files, folder))
    return found


def test_no_more_source_is_read_than_the_bound_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    plain = remote_code.read_text

    def counted(path: Path, limit: int, folder: Path | None = None) -> str:
        read.append(path)
        return plain(path, limit, folder)

    monkeypatch.setattr(remote_code, "read_text", counted)
    monkeypatch.setattr(remote_code, "MOST_READ", 100)
    code = {f"m{number}.py": f"from .m{number + 1} import x  {'#' * 40}\n" for number in range(10)}
    files = {}
    for name, text in code.items():
        (tmp_path / name).write_text(text)
        files[name] = ModelFile(name, tmp_path / name, len(text), "code")
    modules = Modules(files, tmp_path)
    for _ in range(3):
        assert read_auto_map({"AutoConfig": "m0.C"}, modules)[0].files[0] == "m0.py"
    assert len(read) == 1


def test_code_behind_a_link_out_of_the_folder_is_named_and_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("from .secret import x\n")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "mine.py").symlink_to(outside)
    (folder / "config.json").write_text(json.dumps({**LLAMA, "model_type": "my", "auto_map": {"AutoConfig": "mine.C"}}))
    details = step(trace_model(str(folder)), "remote code").details
    assert details["files"] == ["mine.py"]
    assert details["missing"] == []


def test_the_code_of_a_processor_is_among_what_would_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "preprocessor_config.json").write_text('{"auto_map": {"AutoImageProcessor": "images.P"}}')
    (tmp_path / "images.py").write_text("")
    told = step(trace_model(str(tmp_path)), "remote code")
    assert told.details["files"] == ["images.py"]
    assert "images.py" in told.found


REFS: dict[str, Callable[[Path], object]] = {
    "empty": lambda ref: ref.write_text(""),
    "a folder": lambda ref: ref.mkdir(),
    "bytes": lambda ref: ref.write_bytes(b"\xff\xfe" * 40),
    "a path": lambda ref: ref.write_text("../../../../etc"),
    "a FIFO": lambda ref: os.mkfifo(ref),
    "a circle": lambda ref: ref.symlink_to(ref),
    "nothing": lambda ref: ref.symlink_to("nowhere"),
    "another commit": lambda ref: ref.write_text("2" * 40),
    "very long": lambda ref: ref.write_text("1" * 40 + "x" * 2**20),
}


@pytest.mark.parametrize("case", REFS)
def test_a_broken_ref_of_the_cache_is_told_and_leads_nowhere(cache: Path, case: str) -> None:
    ref = cache / "models--org--tiny" / "refs" / "main"
    ref.unlink()
    REFS[case](ref)
    found = trace_model("org/tiny", cache_dir=cache, offline=True)
    assert found.loads_nowhere
    assert step(found, "cache").state == "error"
    assert "1" * 40 in step(found, "cache").found


def test_a_ref_is_taken_to_the_letter_as_the_hub_library_takes_it(cache: Path) -> None:
    for text in ("1" * 40 + "\n", "1" * 40 + "\n# fetched today\n"):
        (cache / "models--org--tiny" / "refs" / "main").write_text(text)
        assert trace_model("org/tiny", cache_dir=cache).loads_nowhere


def test_a_cache_of_odd_entries_is_told(cache: Path) -> None:
    repository = cache / "models--org--tiny"
    shutil.rmtree(repository / "snapshots")
    (repository / "snapshots").write_text("no folder")
    assert trace_model("org/tiny", cache_dir=cache).loads_nowhere
    shutil.rmtree(repository)
    repository.write_text("no folder")
    assert "not in the cache" in step(trace_model("org/tiny", cache_dir=cache), "cache").found


def test_the_address_of_a_hub_is_told_without_what_is_secret_in_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://me:s3cret@hub.example.org")
    for reference in ("org/tiny", "org/other"):
        found = trace_model(reference, cache_dir=cache)
        assert step(found, "hub").looked_at == "https://hub.example.org"
        assert "s3cret" not in json.dumps([encode(each) for each in found.steps])


def test_a_folder_that_goes_away_while_it_is_read_is_a_reason(single: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = resolve.choose_weight_files

    def gone(subject: Any, trace: Any) -> None:
        shutil.rmtree(single)
        choose(subject, trace)

    monkeypatch.setattr(resolve, "choose_weight_files", gone)
    found = trace_model(str(single))
    assert found.loads_nowhere
    assert all(verdict.reason for verdict in found.runtimes.values())


@pytest.mark.unprivileged
def test_a_folder_that_may_be_listed_and_not_entered_is_told(single: Path) -> None:
    single.chmod(0o444)
    try:
        found = trace_model(str(single))
    finally:
        single.chmod(0o755)
    assert found.loads_nowhere


@pytest.mark.unprivileged
def test_a_cache_that_may_not_be_entered_is_told(cache: Path) -> None:
    cache.chmod(0)
    try:
        found = trace_model("org/tiny", cache_dir=cache)
    finally:
        cache.chmod(0o755)
    assert "not in the cache" in step(found, "cache").found
