"""Variations of each kind of fault, made at random: the verdict and its reason follow from how they were made."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import pickle
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases_pickles import PLAIN, called, tarred, torch_zip
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_model import CONFIG, TENSORS, added, make, put, sharded, tokenizer, weights

from hfbench.checks.base import rules
from hfbench.checks.finding import Finding
from hfbench.checks.run import Report, report_on
from hfbench.checks.subject import Options, subject_of

SOME = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])

QUICK = [each for id, each in rules().items() if not id.startswith("HB60")]
"""All rules but those that start a process."""


def judged(prepare: Callable[[Path], object]) -> Report:
    """The report on the small model after an edit; nothing of it is left."""
    with tempfile.TemporaryDirectory() as folder:
        model = make(Path(folder) / "model")
        prepare(model)
        return report_on(subject_of(model, options=Options()), QUICK)


def ids(report: Report, *severities: str) -> set[str]:
    return {each.id for each in report.findings if not severities or each.severity in severities}


FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
ESCAPES = ["../x.safetensors", "/x.safetensors", "a/../../x", "..", "sub\\..\\x", "\\x", "/etc/passwd", "a/../b"]
NO_NAMES = ["", ".", "a\0b", None, 3, ["x"], {}, True]

fates = st.lists(
    st.one_of(
        st.sampled_from(["right", "right", "right", "other", "gone", "left out"]),
        st.sampled_from(ESCAPES).map(lambda file: ("escape", file)),
        st.sampled_from(NO_NAMES).map(lambda file: ("no name", file)),
    ),
    min_size=len(TENSORS),
    max_size=len(TENSORS),
)


@SOME
@given(fates, st.integers(0, 2), st.sampled_from([0, 0, 2, -2]))
def test_an_index_is_held_against_the_headers(fates: list[Any], ghosts: int, off: int) -> None:
    names = list(TENSORS)
    right = {name: FIRST if number < 6 else SECOND for number, name in enumerate(names)}
    weight_map: dict[str, Any] = {f"ghost{number}": FIRST for number in range(ghosts)}
    expected = set()
    for name, fate in zip(names, fates, strict=True):
        other = SECOND if right[name] == FIRST else FIRST
        if isinstance(fate, tuple):
            weight_map[name] = fate[1]
            expected.add("HB141" if fate[0] == "escape" else "HB140")
        elif fate != "left out":
            weight_map[name] = {"right": right[name], "other": other, "gone": "model-9.safetensors"}[fate]
    safe = {name: file for name, file in weight_map.items() if isinstance(file, str) and file.startswith("model")}
    read = {file for file in safe.values() if file in (FIRST, SECOND)}
    held = [name for name in names if right[name] in read]
    expected |= {"HB142"} if "model-9.safetensors" in safe.values() else set()
    expected |= (
        {"HB144"}
        if any(right.get(name) != file and name not in held for name, file in safe.items() if file in read)
        else set()
    )
    expected |= {"HB145"} if any(safe.get(name, right[name]) != right[name] for name in held) else set()
    expected |= {"HB146"} if any(name not in safe for name in held) else set()
    total = 1712 + off
    stored = 896 * (FIRST in read) + 816 * (SECOND in read)
    whole = "model-9.safetensors" not in safe.values()
    expected |= {"HB147"} if safe and whole and total != stored else set()
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}

    report = judged(lambda folder: (sharded()(folder), put("model.safetensors.index.json", index)(folder)))
    watched = {f"HB{number}" for number in range(141, 148)} - {"HB143"}
    assert ids(report) & watched == expected - {"HB140"}, report.findings
    assert "HB140" not in expected or "HB140" in ids(report)


sizes = st.fixed_dictionaries(
    {
        "hidden_size": st.sampled_from([8, 16]),
        "intermediate_size": st.sampled_from([16, 24]),
        "num_hidden_layers": st.integers(1, 3),
        "num_attention_heads": st.sampled_from([2, 4]),
        "num_key_value_heads": st.sampled_from([1, 2]),
        "vocab_size": st.sampled_from([16, 20]),
        "tie_word_embeddings": st.booleans(),
    }
)
REASONS = {
    "hidden_size": {"HB222"},
    "intermediate_size": {"HB222"},
    "num_hidden_layers": {"HB220"},
    "num_attention_heads": {"HB222", "HB214"},
    "num_key_value_heads": {"HB222", "HB214"},
    "vocab_size": {"HB221"},
    "tie_word_embeddings": {"HB224", "HB225", "HB226"},
}


def shapes(config: dict[str, Any]) -> dict[str, tuple[str, list[int]]]:
    """The tensors of a Llama of these sizes."""
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    head = hidden // config["num_attention_heads"]
    keys = head * config["num_key_value_heads"]
    layer = {
        "self_attn.q_proj": [hidden, hidden],
        "self_attn.k_proj": [keys, hidden],
        "self_attn.v_proj": [keys, hidden],
        "self_attn.o_proj": [hidden, hidden],
        "mlp.gate_proj": [wide, hidden],
        "mlp.up_proj": [wide, hidden],
        "mlp.down_proj": [hidden, wide],
        "input_layernorm": [hidden],
        "post_attention_layernorm": [hidden],
    }
    found = {"model.embed_tokens.weight": [config["vocab_size"], hidden], "model.norm.weight": [hidden]}
    for number in range(config["num_hidden_layers"]):
        found |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = [config["vocab_size"], hidden]
    return {name: ("BF16", shape) for name, shape in found.items()}


@SOME
@given(sizes, sizes, st.sampled_from(sorted(REASONS)))
def test_a_configuration_is_held_against_the_tensors(real: dict[str, Any], other: dict[str, Any], key: str) -> None:
    def prepare(said: dict[str, Any]) -> Callable[[Path], object]:
        return lambda folder: (
            put("config.json", {**CONFIG, **said})(folder),
            put("model.safetensors", weights(shapes(real)))(folder),
        )

    assert not ids(judged(prepare(real)), "error", "warning")
    wrong = {**real, key: other[key]}
    found = ids(judged(prepare(wrong)))
    assert bool(found & REASONS[key]) == (wrong != real), found


@SOME
@given(
    st.integers(4, 20),
    st.lists(st.tuples(st.integers(0, 24), st.sampled_from(["<a>", "<b>", "<c>", "w3"])), max_size=4),
)
def test_the_ids_of_a_tokenizer_are_held_against_the_embedding(size: int, extra: list[tuple[int, str]]) -> None:
    names = dict(extra)
    entries = [added(number, token) for number, token in names.items()]
    owner = {0: "<unk>", 1: "<s>", 2: "</s>", **{number: f"w{number}" for number in range(3, size)}}
    twice = len(names) != len(set(names.values()))
    clash = {number for number, token in names.items() if owner.get(number, token) != token}
    special = {number for number in clash if number < 3}
    every = {*range(size), *names}
    report = judged(put("tokenizer.json", tokenizer(size, entries)))
    assert ("HB504" in ids(report, "error")) == (max(every) >= 16), report.findings
    assert ("HB505" in ids(report)) == (len(every) <= max(every)), report.findings
    assert ("HB503" in ids(report)) == bool(clash or twice), report.findings
    assert ("HB503" in ids(report, "error")) == bool(special), report.findings


RUNS = [
    *(("os", name) for name in ("system", "popen", "execv", "remove")),
    *(("builtins", name) for name in ("eval", "exec", "__import__", "getattr", "compile")),
    *(("subprocess", name) for name in ("Popen", "run", "check_output")),
    *(("runpy", "run_path"), ("shutil", "rmtree"), ("webbrowser", "open"), ("importlib", "import_module")),
    *(("torch", "load"), ("numpy", "load"), ("torch.hub", "load"), ("ctypes", "CDLL"), ("pickle", "loads")),
    *(("operator", "attrgetter"), ("socket", "create_connection"), ("pathlib", "Path.unlink"), ("code", "interact")),
]
HARMLESS = [
    *(("torch._utils", "_rebuild_tensor_v2"), ("collections", "OrderedDict"), ("torch", "FloatStorage")),
    *(("numpy.core.multiarray", "_reconstruct"), ("_codecs", "encode"), ("builtins", "set")),
]
CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "bare": bytes,
    "zip": torch_zip,
    "zip under another name": lambda raw: torch_zip(raw, "x/weights"),
    "zip in zip": lambda raw: torch_zip(torch_zip(raw), "x/inner.zip"),
    "tar": tarred,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "after another": lambda raw: PLAIN + raw,
}
plain_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.binary(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)


def hidden(value: Any, call: bytes, protocol: int) -> bytes:
    """A pickle of a list of two: a value, and whatever a call gives."""
    raw = pickle.dumps(value, protocol)
    begin = raw[2:] if raw[:1] == b"\x80" else raw
    if begin[:1] == b"\x95":  # a frame, whose length would be wrong now
        begin = begin[9:]
    head = b"\x80" + bytes([max(protocol, 4)])
    return head + b"]" + begin[:-1] + b"a" + call.removeprefix(b"\x80\x04")[:-1] + b"a."


@SOME
@given(plain_values, st.sampled_from(RUNS), st.integers(0, 5), st.sampled_from(sorted(CONTAINERS)), st.booleans())
def test_a_call_is_found_wherever_it_hides_in_a_pickle(
    value: Any, name: tuple[str, str], protocol: int, container: str, memo: bool
) -> None:
    module, function = name
    call = called(module, function)
    if memo:  # the two names come out of the memo, in the other order
        first, second = (b"\x8c" + bytes([len(each)]) + each.encode() for each in (function, module))
        call = (
            b"\x80\x04"
            + first
            + b"r\xe7\x03\0\0"
            + second
            + b"r\xe8\x03\0\x000"
            + b"0j\xe8\x03\0\0j\xe7\x03\0\0\x93)R."
        )
    raw = CONTAINERS[container](hidden(value, call, protocol))
    found = judged(lambda folder: ((folder / "model.safetensors").unlink(), put("pytorch_model.bin", raw)(folder)))
    assert "HB710" in ids(found, "error"), found.findings


@SOME
@given(plain_values, st.sampled_from(HARMLESS), st.integers(0, 5), st.sampled_from(sorted(CONTAINERS)))
def test_what_only_rebuilds_tensors_is_no_call(
    value: Any, name: tuple[str, str], protocol: int, container: str
) -> None:
    raw = CONTAINERS[container](hidden(value, called(*name), protocol))
    found = judged(lambda folder: ((folder / "model.safetensors").unlink(), put("pytorch_model.bin", raw)(folder)))
    assert not ids(found, "error", "warning"), found.findings


NAMES = [
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"),
    *("chat_template.jinja", "chat_template.json", "model.safetensors.index.json", "pytorch_model.bin", "vocab.json"),
    *("special_tokens_map.json", "added_tokens.json", "hf_quant_config.json", "adapter_config.json", "tekken.json"),
    *("preprocessor_config.json", "processor_config.json", "tokenizer.model", "consolidated.safetensors"),
]


def closed_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has a hundred letters at most
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a FIFO": (os.mkfifo, {"HB131"}),
    "a socket": (closed_socket, {"HB131"}),
    "a folder": (Path.mkdir, {"HB131", "HB200"}),
    "a link to itself": (lambda path: path.symlink_to(path.name), {"HB132"}),
    "a link to nothing": (lambda path: path.symlink_to("gone"), {"HB132"}),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), {"HB133"}),
    "a link to a file of the system": (lambda path: path.symlink_to("/etc/passwd"), {"HB133"}),
    "a terabyte of nothing": (
        lambda path: os.close(_sparse(path, 10**12)),
        {"HB135", "HB104", "HB712", "HB501", "HB160"},
    ),
    "a git-lfs pointer": (
        lambda path: path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 9\n"),
        {"HB130"},
    ),
    "a page": (
        lambda path: path.write_text("<!DOCTYPE html><html><head><title>401</title></head><body>no</body></html>"),
        {"HB119", "HB140", "HB160", "HB203", "HB209", "HB501", "HB601", "HB712"},
    ),
}


def _sparse(path: Path, size: int) -> int:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.truncate(path, size)
    return descriptor


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_is_told_under_every_name(kind: str, name: str, tmp_path: Path) -> None:
    prepare, wanted = KINDS[kind]
    folder = make(tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    prepare(folder / name)
    found: list[Finding] = list(report_on(subject_of(folder, options=Options())).findings)
    told = {each.id for each in found if each.severity != "info" and name in (each.file, "tokenizer.model")}
    assert told & wanted, found


texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)


@SOME
@given(st.dictionaries(texts, st.one_of(texts, st.integers(), st.none(), st.lists(texts)), max_size=3))
def test_keys_that_nobody_knows_are_no_fault(more: dict[str, Any]) -> None:
    unknown = {f"_{key}": value for key, value in more.items()}
    assert not ids(judged(put("config.json", {**CONFIG, **unknown})), "error", "warning")


@SOME
@given(st.data())
def test_a_configuration_cut_anywhere_is_no_json(data: st.DataObject) -> None:
    text = json.dumps(CONFIG)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert "HB203" in ids(judged(put("config.json", text[:cut])), "error")


@SOME
@given(st.data())
def test_weights_cut_anywhere_are_told(data: st.DataObject) -> None:
    raw = weights(TENSORS)
    cut = data.draw(st.integers(0, len(raw) - 1))
    found = ids(judged(put("model.safetensors", raw[:cut])), "error")
    assert found & {"HB101", "HB103", "HB116"}, found
