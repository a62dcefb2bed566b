"""Weights: the format of their files, the index, which files count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cases_pickles import PLAIN, bin_only, torch_zip
from rule_case import Case, error, info, passes, warning
from small_model import (
    TENSORS,
    Edit,
    all_of,
    fifo,
    gone,
    linked,
    put,
    same,
    sharded,
    stored,
    weights,
)

FILE = "model.safetensors"
ONE = {"a": ("F32", [1])}
LORA = {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": ("BF16", [4, 8])}
ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "org/base"}
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 4976698672\n"


def _without_metadata(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": json.loads(index.read_text())["weight_map"]}))


def header(text: str | bytes, data: int = 0, length: int | None = None) -> Edit:
    """Write weights with a header letter by letter."""
    raw = text.encode() if isinstance(text, str) else text
    return put(FILE, (len(raw) if length is None else length).to_bytes(8, "little") + raw + bytes(data))


def entry(dtype: str = "F32", shape: object = (1,), offsets: object = (0, 4)) -> str:
    return json.dumps({"dtype": dtype, "shape": shape, "data_offsets": offsets})


def tensors(**entries: str) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in entries.items()) + "}"


def closed(name: str) -> Edit:
    """Take all permissions of a file."""
    return all_of(lambda folder: (folder / name).touch(), lambda folder: (folder / name).chmod(0))


def put_below(name: str) -> Edit:
    """Make a FIFO in a folder of the model."""
    folder = name.rpartition("/")[0]
    return all_of(put(f"{folder}/notes.txt", ""), fifo(name))


STRUCTURE: list[Case] = [
    error("HB101", "an empty file", put(FILE, b"")),
    error("HB101", "seven bytes", put(FILE, b"1234567")),
    error("HB102", "a header of 2^64 bytes", header("{}", length=2**64 - 1)),
    error("HB103", "a header longer than the file", header("{}", length=5000)),
    error("HB104", "a header of no bytes", header("")),
    error("HB104", "a comment", header("{/**/}")),
    error("HB104", "garbage after the object", header("{}x")),
    error("HB104", "ten thousand lists", header('{"a":' + "[" * 10_000 + "]" * 10_000 + "}")),
    warning("HB105", "a space before the brace", header(" {}")),
    error("HB106", "a name twice", header(f'{{"a":{entry()},"a":{entry()}}}', 4)),
    error("HB107", "no offsets", header('{"a":{"dtype":"F32","shape":[1]}}', 4)),
    error("HB107", "a number as entry", header('{"a":1}')),
    error("HB108", "a dtype in small letters", header(tensors(a=entry("f32")), 4)),
    error("HB109", "true as a size", header(tensors(a=entry(shape=[True])), 4)),
    error("HB109", "a negative size", header(tensors(a=entry(shape=[-1])), 4)),
    error("HB109", "a size of half", header(tensors(a=entry(shape=[0.5])), 4)),
    error("HB110", "a product over 64 bits", header(tensors(a=entry(shape=[2**40, 2**40])), 4)),
    error("HB111", "three values of 4 bits", header(tensors(a=entry("F4", [3], [0, 2])), 2)),
    error("HB112", "an end before the begin", header(tensors(a=entry(offsets=[4, 0])), 4)),
    error("HB112", "negative offsets", header(tensors(a=entry(offsets=[-4, 0])), 4)),
    error("HB113", "eight bytes for one number", header(tensors(a=entry(offsets=[0, 8])), 8)),
    error("HB114", "the same bytes twice", header(tensors(a=entry(), b=entry()), 4)),
    error("HB115", "four bytes between", header(tensors(a=entry(), b=entry(offsets=[8, 12])), 12)),
    error("HB116", "data cut short", header(tensors(a=entry()), 2)),
    error("HB117", "bytes after the last tensor", header(tensors(a=entry()), 5)),
    error("HB118", "a number in the metadata", put(FILE, weights(ONE, {"epoch": 3}))),
    warning("HB118", "null as metadata", header(f'{{"__metadata__":null,"a":{entry()}}}', 4)),
    error("HB119", "an HTML page", put(FILE, "<!DOCTYPE html><html>")),
    error("HB119", "an archive of torch", put(FILE, torch_zip(PLAIN))),
    *[passes(f"HB{number}", "the small model", same) for number in range(101, 120)],
    passes("HB105", "spaces after the object", header("{}   ")),
    passes("HB111", "four values of 4 bits", header(tensors(a=entry("F4", [4], [0, 2])), 2)),
    passes(
        "HB107", "an unknown further field", header('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}', 4)
    ),
]

VALUES: list[Case] = [
    warning("HB121", "a whole model without a format", stored(metadata={})),
    info("HB121", "weights alone without a format", all_of(stored(metadata={}), gone("tokenizer.json"))),
    warning("HB121", "a format nobody knows", stored(metadata={"format": "mine"})),
    passes("HB121", "the format pt", same),
    warning("HB122", "a NaN in a norm", stored(fill={"model.norm.weight": b"\xc0\x7f"})),
    warning("HB122", "an infinity in float32", stored({"x": ("F32", [1])}, fill={"x": b"\0\0\x80\x7f"})),
    warning("HB122", "a NaN in float16", stored({"x": ("F16", [1])}, fill={"x": b"\1\x7c"})),
    warning("HB122", "a NaN in 8 bits", stored({"x": ("F8_E4M3", [2])}, fill={"x": b"\x00\xff"})),
    passes("HB122", "the largest of 8 bits", stored({"x": ("F8_E4M3", [2])}, fill={"x": b"\x7e\xfe"})),
    passes("HB122", "the largest float16", stored({"x": ("F16", [1])}, fill={"x": b"\xff\x7b"})),
    passes("HB122", "integers", stored({"x": ("I32", [1])}, fill={"x": b"\0\0\x80\x7f"})),
]

ENTRIES: list[Case] = [
    error("HB130", "weights", put(FILE, POINTER)),
    error("HB130", "config.json", put("config.json", POINTER)),
    error("HB130", "a tokenizer", put("tokenizer.json", POINTER)),
    error("HB130", "a template", put("chat_template.jinja", POINTER)),
    info("HB130", "a picture", put("figure.png", POINTER)),
    passes("HB130", "a text about pointers", put("README.md", "version of git-lfs " * 8)),
    error("HB131", "a FIFO as config", fifo("config.json")),
    error("HB131", "a FIFO as weights", fifo(FILE)),
    error("HB131", "a FIFO as Mistral's weights", fifo("consolidated.safetensors")),
    info("HB131", "a FIFO as a text", fifo("notes.txt")),
    warning("HB131", "a FIFO below", put_below("logs/x.bin")),
    passes("HB131", "plain files", same),
    error("HB132", "weights that lead nowhere", linked(FILE, "../../blobs/gone")),
    error("HB132", "a link to itself", linked(FILE, FILE)),
    info("HB132", "a text that leads nowhere", linked("README.md", "gone.md")),
    warning("HB132", "code that leads nowhere", linked("modeling.py", "gone.py")),
    passes("HB132", "a link inside the folder", all_of(put("real.bin", PLAIN), linked("also.bin", "real.bin"))),
    error("HB133", "config of the system", linked("config.json", "/etc/hostname")),
    error("HB133", "a device", linked(FILE, "/dev/zero")),
    info("HB133", "a folder elsewhere", linked("logs", "/tmp")),
    passes("HB133", "plain files", same),
    error("HB134", "config without permission", closed("config.json")),
    error("HB134", "weights without permission", closed(FILE)),
    passes("HB134", "a text without permission", closed("README.md")),
    passes("HB134", "plain files", same),
    error("HB135", "a tokenizer of a gigabyte", lambda folder: (folder / "tokenizer.json").open("r+b").truncate(2**30)),
    passes("HB135", "plain files", same),
]

INDEX: list[Case] = [
    error("HB140", "no weight_map", sharded(weight_map=None)),
    error("HB140", "an empty weight_map", put("model.safetensors.index.json", {"weight_map": {}})),
    error("HB140", "null as a file", sharded(weight_map={"x": None})),
    error("HB140", "not JSON", all_of(sharded(), put("model.safetensors.index.json", "{"))),
    error("HB141", "the folder above", sharded(weight_map={"x": "../x.safetensors"})),
    error("HB141", "from the root", sharded(weight_map={"x": "/etc/passwd"})),
    error("HB141", "above from below", sharded(weight_map={"x": "sub/../../x.safetensors"})),
    error("HB142", "the second shard", sharded(drop="model-00002-of-00002.safetensors")),
    error(
        "HB142",
        "a pickled shard",
        all_of(gone(FILE), put("pytorch_model.bin.index.json", {"weight_map": {"a": "pytorch_model-1.bin"}})),
    ),
    warning("HB143", "two shards", sharded(drop="model.safetensors.index.json")),
    error("HB144", "a tensor of no file", sharded(weight_map={"ghost": "model-00001-of-00002.safetensors"})),
    error("HB145", "the other shard", sharded(weight_map={"lm_head.weight": "model-00001-of-00002.safetensors"})),
    warning("HB147", "two bytes more", sharded(metadata={"total_size": 1714})),
    warning("HB147", "a text", sharded(metadata={"total_size": "1712"})),
    warning("HB138", "none", all_of(sharded(), _without_metadata)),
    warning("HB138", "null", sharded(metadata=None)),
    warning("HB138", "a list", sharded(metadata=[])),
    passes("HB138", "an empty object", sharded(metadata={})),
    warning("HB148", "a key twice", all_of(sharded(), lambda f: _doubled(f / "model.safetensors.index.json"))),
    *[passes(f"HB{number}", "a right index", sharded()) for number in range(140, 150)],
]


def _doubled(path: Any) -> None:
    path.write_text(path.read_text().replace('"metadata"', '"metadata": {}, "metadata"', 1))


def unlisted(folder: Any) -> None:
    """Leave one tensor out of the index."""
    sharded()(folder)
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    del index["weight_map"]["lm_head.weight"]
    path.write_text(json.dumps(index))


INDEX += [
    warning("HB146", "one left out", unlisted),
    error(
        "HB149",
        "one in both",
        all_of(sharded(), put("model-00002-of-00002.safetensors", weights(dict(list(TENSORS.items())[5:])))),
    ),
]

SETS: list[Case] = [
    error("HB150", "only training arguments", bin_only(PLAIN, "training_args.bin")),
    error("HB150", "a file without tensors", put(FILE, weights({}))),
    passes("HB150", "weights", same),
    error("HB151", "an adapter", all_of(gone(FILE), put("adapter_model.safetensors", weights(ONE)))),
    error("HB151", "a configuration of one alone", all_of(gone(FILE), put("adapter_config.json", ADAPTER))),
    error("HB151", "one under the name of a model", put(FILE, weights(LORA))),
    error("HB151", "one under a name of its own", all_of(gone(FILE), put("lora.safetensors", weights(LORA)))),
    passes("HB151", "a model with tensors of one", stored(LORA)),
    passes("HB151", "an adapter beside a model", put("adapter_model.safetensors", weights(ONE))),
    warning("HB152", "shards and one file", all_of(sharded(), put(FILE, weights(TENSORS)))),
    warning("HB152", "consolidated and one file", put("consolidated.safetensors", weights(ONE))),
    passes("HB152", "one file", same),
    warning("HB153", "another file", put("other.safetensors", weights(ONE))),
    warning("HB153", "a file the index does not name", all_of(sharded(), put("other.safetensors", weights(ONE)))),
    passes("HB153", "one file", same),
    info("HB154", "another name", all_of(gone(FILE), put("weights.safetensors", weights(TENSORS)))),
    passes("HB154", "the usual name", same),
    error("HB136", "nothing as GGUF", bin_only(b"", "m.gguf")),
    error("HB136", "a page as GGUF", bin_only(b"<!DOCTYPE html>", "m.gguf")),
    error("HB136", "a page as ONNX", bin_only(b"<html>", "model.onnx")),
    error("HB136", "words as HDF5", bin_only(b"words and words", "tf_model.h5")),
    warning("HB136", "a page beside", put("m.gguf", "<!DOCTYPE html>")),
    passes("HB136", "GGUF", bin_only(b"GGUF" + bytes(20), "m.gguf")),
    passes("HB136", "ONNX", bin_only(b"\x08\x07", "model.onnx")),
    info("HB155", "a pickle", bin_only(PLAIN)),
    passes("HB155", "safetensors", same),
    info("HB156", "a copy below", put("original/model.safetensors", weights(TENSORS))),
    passes("HB156", "no copy", put("original/params.json", {})),
    warning("HB157", "consolidated below", put("sub/deep/consolidated.safetensors", weights(ONE))),
    passes("HB157", "another name below", put("sub/model.safetensors", weights(ONE))),
    info("HB158", "beside config.json", put("params.json", {"dim": 8})),
    error("HB158", "alone", all_of(put("params.json", {"dim": 8}), gone("config.json"))),
    passes("HB158", "with its weights", all_of(put("params.json", {}), put("consolidated.safetensors", weights(ONE)))),
    warning("HB159", "both formats", all_of(put("params.json", {}), put("consolidated.safetensors", weights(ONE)))),
    warning(
        "HB159",
        "weights of one, config of the other",
        all_of(gone(FILE), put("consolidated.safetensors", weights(ONE))),
    ),
    passes("HB159", "one format", same),
]

SETS += [
    warning("HB160", "consolidated of zeros", put("consolidated.safetensors", bytes(64))),
    warning("HB160", "a stray page", put("other.safetensors", "<!DOCTYPE html><html>")),
    passes("HB160", "a whole second set", put("consolidated.safetensors", weights(ONE))),
    passes("HB160", "one file", same),
]

CASES = [*STRUCTURE, *VALUES, *ENTRIES, *INDEX, *SETS]
