"""Engines without a manifest tell what their files hold; junk of every kind is a sentence."""

from __future__ import annotations

import json
import os
import platform
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.engines.compatibility.bare import judge_found
from hfbench.engines.machine import Machine, read_machine
from hfbench.engines.reading.elf import ElfError, read_elf
from hfbench.engines.reading.found import Found, NoEngine
from hfbench.engines.reading.package import capability
from hfbench.engines.reading.recognise import read_engine

MakePackage = Callable[..., Path]


def told(found: Found) -> dict[str, str]:
    """The facts by label."""
    return {fact.label: fact.value for fact in found.facts}


@pytest.fixture(scope="module")
def here() -> Machine:
    """This machine, without its GPUs."""
    return read_machine(gpus=False)


def test_a_package_tells_its_metadata_and_what_its_code_asks_for(make_package: MakePackage) -> None:
    found = read_engine(make_package())
    assert told(found)["instruction set"] == "AVX2"
    assert told(found)["programs"] == "'model'"
    assert "libc.so.6" in found.needs
    assert found.glibc.startswith("2.")
    assert found.built_on is not None
    assert (found.built_on.machine, found.built_on.gpu) == ("x86_64", None)
    assert found.faults == ()


def test_a_package_for_a_gpu_tells_its_compute_capability(make_package: MakePackage) -> None:
    found = read_engine(make_package({"AOTI_DEVICE_KEY": "cuda", "AOTI_COMPUTE_CAPABILITY": "86"}))
    assert found.built_on is not None
    assert found.built_on.gpu is not None
    assert found.built_on.gpu.compute_capability == "8.6"


@pytest.mark.parametrize(("packed", "spelled"), [("90", "9.0"), ("120", "12.0"), ("", ""), ("8.9", "8.9"), ("x", "")])
def test_compute_capabilities_are_spelled_out(packed: str, spelled: str) -> None:
    assert capability(packed) == spelled


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of this processor")
def test_a_package_of_wider_vectors_is_refused_before_it_is_loaded(make_package: MakePackage, here: Machine) -> None:
    found = read_engine(make_package({"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": "AVX99"}))
    judged = judge_found(found, here)
    assert judged.verdict == "will not load"
    assert [row.id for row in judged.rows if row.status == "mismatch"] == ["cpu-isa"]


def test_a_package_without_a_manifest_is_never_said_to_load(make_package: MakePackage, here: Machine) -> None:
    judged = judge_found(read_engine(make_package()), here)
    assert judged.verdict == "cannot tell"
    assert {"glibc", "libraries", "machine"} <= {row.id for row in judged.rows if row.status == "ok"}


@pytest.mark.parametrize("metadata", [b"{", b"[]", b"\xff", b'{"AOTI_CPU_ISA": 1}', b"[" * 60_000, b" " * 100_000])
def test_damaged_metadata_is_a_fault(make_package: MakePackage, metadata: bytes) -> None:
    found = read_engine(make_package(metadata))
    assert "cannot be read" in "".join(found.faults)


def test_code_that_is_no_shared_object_is_a_fault(make_package: MakePackage, here: Machine) -> None:
    found = read_engine(make_package(code=b"hello"))
    assert "cut off" in found.faults[0]
    assert judge_found(found, here).verdict == "will not load"


def test_compressed_code_is_left_alone(make_package: MakePackage) -> None:
    found = read_engine(make_package(how=zipfile.ZIP_DEFLATED))
    assert (found.needs, found.faults) == ((), ())


def test_a_truncated_package_is_a_sentence(make_package: MakePackage) -> None:
    path = make_package()
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(NoEngine, match="no whole zip archive"):
        read_engine(path)


def test_a_zip_of_weights_is_no_engine(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"x")
    with pytest.raises(NoEngine, match="without compiled code"):
        read_engine(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_shared_object_with_any_bytes_changed_is_read_or_refused(shared_object: bytes, data: st.DataObject) -> None:
    from io import BytesIO

    changed = bytearray(shared_object)
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, min(len(changed), 4096) - 1))
        changed[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(changed)))
    try:
        read_elf(BytesIO(bytes(changed[:cut])))
    except ElfError as error:
        told = str(error)
        assert told


def test_a_trtllm_folder_tells_its_version_ranks_and_limits(trtllm_folder: Path, here: Machine) -> None:
    found = read_engine(trtllm_folder)
    assert told(found) == {
        "version": "1.2.1",
        "model": "LlamaForCausalLM",
        "dtype": "bfloat16",
        "quantisation": "FP8",
        "kv cache": "FP8",
        "ranks": "2: TP 2, PP 1",
        "shapes": "max_batch_size 64, max_input_len 1024, max_seq_len 2048",
        "plugins": "gemm_plugin=auto, paged_kv_cache=True",
    }
    assert any("compute capability" in each for each in found.silent)
    held = {row.id for row in judge_found(found, here).rows if row.status == "mismatch"}
    assert {"tensorrt", "tensorrt-llm"} <= held


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "rank1.engine").unlink(), "of 2 ranks these are not there: 'rank1.engine'"),
        (lambda folder: (folder / "rank1.engine").write_bytes(b""), "empty: 'rank1.engine'"),
        (lambda folder: (folder / "rank7.engine").write_bytes(b"x"), "more ranks than the world size of 2"),
        (lambda folder: (folder / "config.json").write_text('{"version": "1.0"}'), "it is a checkpoint's"),
        (
            lambda folder: (folder / "config.json").write_text(
                '{"pretrained_config":{"mapping":{"world_size":99999}}}'
            ),
            "world size of 99,999",
        ),
    ],
)
def test_a_trtllm_folder_that_is_not_whole_is_told(
    trtllm_folder: Path, change: Callable[[Path], object], words: str
) -> None:
    change(trtllm_folder)
    assert words in " ".join(read_engine(trtllm_folder).faults)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 5000, b'{"version": ' + b"9" * 5000 + b"}"])
def test_any_configuration_of_trtllm_is_read_or_is_a_sentence(trtllm_folder: Path, content: bytes) -> None:
    (trtllm_folder / "config.json").write_bytes(content)
    try:
        assert read_engine(trtllm_folder).kind == "trtllm"
    except NoEngine as error:
        sentence = str(error)
        assert "config.json" in sentence


def test_of_a_plan_nothing_is_known_and_that_is_said(tmp_path: Path, here: Machine) -> None:
    path = tmp_path / "model.plan"
    path.write_bytes(b"a made-up plan, not written by TensorRT")
    found = read_engine(path)
    assert told(found) == {"size": "39 B"}
    assert "private archive" in found.silent[0]
    assert "readelf" in found.silent[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.plan", b"", "is empty"),
        ("x.engine", b"\x7fELF....", "this is a program, no TensorRT plan"),
        ("x.engine", b"version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer"),
        ("x.txt", b"hello", "is no engine"),
        ("x.bin", b"GGUF....", "is a GGUF file, no engine"),
        ("x.pt2", b"", "no whole zip archive"),
        ("x.pt2", b"PK\x03\x04", "no whole zip archive"),
        ("x.xml", b"<html>", "it has no <net>"),
        ("x.onnx", b"", "is no ONNX model"),
        ("x.onnx", b"\x08\x0a\x3a\xff\xff\xff\x7f", "is cut off"),
        ("x.onnx", b"\x08", "is cut off"),
        ("x.onnx", b"hello world", "ONNX model"),
    ],
)
def test_junk_is_a_sentence(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(NoEngine) as caught:
        read_engine(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["x.pt2", "x.plan", "x.onnx", "x.xml", "x"])
def test_a_fifo_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(NoEngine, match="FIFO"):
        read_engine(tmp_path / name)


def test_nothing_and_an_empty_folder_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(NoEngine, match="is not there"):
        read_engine(tmp_path / "none")
    with pytest.raises(NoEngine, match="holds no engine"):
        read_engine(tmp_path)


def test_a_folder_with_one_engine_stands_for_it(make_package: MakePackage, tmp_path: Path) -> None:
    path = make_package()
    assert read_engine(path.parent).path == path
    (tmp_path / "y.onnx").write_bytes(b"x")
    with pytest.raises(NoEngine, match="several engines"):
        read_engine(path.parent)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["a.pt2", "a.onnx", "a.xml", "a.plan", "a.mega"]),
    start=st.sampled_from([b"", b"PK\x03\x04", b"\x08\x0a", b"<net ", b"\0\0\0\0\0\0\0\0\0\0\0\x01"]),
    rest=st.binary(max_size=80),
)
def test_any_file_is_read_or_is_a_sentence(tmp_path: Path, name: str, start: bytes, rest: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(start + rest)
    try:
        assert isinstance(read_engine(path), Found)
    except NoEngine as error:
        assert str(path) in str(error)  # noqa: PT017


def packed_cache(kinds: dict[str, list[bytes]]) -> bytes:
    """A cache as torch's own serializer packs it."""
    from base64 import b64encode

    def held(raw: bytes) -> bytes:
        return struct.pack(">Q", len(raw)) + raw

    body = struct.pack(">Q", 1)
    for kind, entries in kinds.items():
        body += held(b64encode(kind.encode())) + struct.pack(">Q", len(entries))
        body += b"".join(held(b64encode(b"key")) + held(entry) for entry in entries)
    return zlib.crc32(body).to_bytes(4, "big") + body


def test_a_packed_cache_tells_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "cache.bin"
    path.write_bytes(packed_cache({"inductor": [b"x", b"y"], "autotune": [b"z"]}))
    found = read_engine(path)
    assert (found.kind, told(found)) == ("compile", {"entries": "2 inductor, 1 autotune"})


def test_a_packed_cache_that_changed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cache.bin"
    raw = packed_cache({"inductor": [b"x"]})
    path.write_bytes(raw[:-1] + b"!")
    assert "checksum" in read_engine(path).faults[0]


def test_torch_packs_caches_as_the_reader_reads_them(tmp_path: Path) -> None:
    serializer = pytest.importorskip("torch.utils._appending_byte_serializer")

    def write(writer: Any, each: tuple[str, list[bytes]]) -> None:
        writer.write_str(each[0])
        writer.write_uint64(len(each[1]))
        for content in each[1]:
            writer.write_str("key")
            writer.write_bytes(content)

    packer = serializer.AppendingByteSerializer(serialize_fn=write)
    packer.extend([("inductor", [b"x" * 3000, b"y"])])
    assert packer.to_bytes() == packed_cache({"inductor": [b"x" * 3000, b"y"]})


def test_onnx_itself_writes_what_the_reader_reads(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    shape = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [shape], [out])
    opset = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=10, producer_name="hfbench")
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    assert told(read_engine(path)) == {
        "ir version": "10",
        "opsets": "ai.onnx 18, com.microsoft 1",
        "producer": "hfbench",
    }
    path.rename(tmp_path / "unnamed")
    assert read_engine(tmp_path / "unnamed").kind == "onnx"


def test_an_openvino_model_tells_its_writer_and_its_weights(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(
        '<?xml version="1.0"?>\n<net name="Model0" version="11">\n<layers/>\n'
        '<rt_info><Runtime_version value="2026.4.1-1" /></rt_info>\n</net>\n'
    )
    assert "m.bin cannot be read: not there" in " ".join(read_engine(path).faults)
    path.with_suffix(".bin").write_bytes(b"x" * 2048)
    found = read_engine(path)
    assert told(found) == {
        "name": "Model0",
        "ir version": "11",
        "writer": "2026.4.1-1",
        "weights": "m.bin, 2.00 KiB",
    }
    path.write_text(path.read_text().replace("</net>", ""))
    assert "</net> is missing" in read_engine(path).faults[0]


def test_json_is_no_engine(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({}))
    with pytest.raises(NoEngine, match="JSON text"):
        read_engine(tmp_path / "x.json")
