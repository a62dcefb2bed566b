"""What hostile files can ask of time and memory: each is judged by the command in a process of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cases_pickles import bin_only, torch_zip
from small_model import TEMPLATE, Edit, all_of, config, make, put, sharded, tokenizer, tokens

MEMORY = 300 * 2**20
"""Bytes: more than any check may hold, its children each for itself."""

SECONDS = 5.0
"""Of CPU time, in the check and its children together: more than any of these may take."""

FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
FIRST = "model-00001-of-00002.safetensors"
ENTRY = '"x{n}": {{"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}'
LARGE = b'{"a":{"dtype":"U8","shape":[10000000000000],"data_offsets":[0,10000000000000]}}'
TERABYTES = len(LARGE).to_bytes(8, "little") + LARGE
DOUBLES = "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


def header(begin: bytes, filler: bytes, end: bytes, size: int = 98_000_000, data: int = 0) -> Edit:
    """Weights whose header is a text of so many bytes, filled up in the middle."""

    def edit(folder: Path) -> None:
        count = (size - len(begin) - len(end)) // len(filler)
        with open(folder / FILE, "wb") as file:
            file.write((len(begin) + len(end) + count * len(filler)).to_bytes(8, "little") + begin)
            for _ in range(count // 100_000):
                file.write(filler * 100_000)
            file.write(filler * (count % 100_000) + end)
            file.truncate(file.tell() + data)

    return edit


def entries(count: int, spelled: str, *, size: int = 0, last: str = "") -> Edit:
    """Weights with so many tensors, each spelled by a format of its number and its extent."""

    def edit(folder: Path) -> None:
        every = [spelled.format(n=n, b=n * size, e=(n + 1) * size) for n in range(count)]
        text = "{" + ",".join([*every, last] if last else every) + "}"
        with open(folder / FILE, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text.encode())
            file.truncate(8 + len(text) + count * size)

    return edit


def text(name: str, begin: str, filler: str, end: str, count: int) -> Edit:
    return put(name, begin + filler * count + end)


def sparse(name: str, size: int, begin: bytes = b"") -> Edit:
    """A file that is nearly all a hole."""

    def edit(folder: Path) -> None:
        with open(folder / name, "wb") as file:
            file.write(begin)
            file.truncate(size)

    return edit


def zipped(members: Iterator[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members:
            archive.writestr(name, raw)
    return buffer.getvalue()


def nested(levels: int) -> bytes:
    raw = torch_zip(b"N.")
    for _ in range(levels):
        raw = torch_zip(raw, "x/inner.zip")
    return raw


def many_files(folder: Path) -> None:
    for number in range(12_000):
        (folder / f"{number}.txt").touch()


def many_pickles(folder: Path) -> None:
    for number in range(200):
        (folder / f"{number}.bin").write_bytes(b"\x80\x02" + b"N0" * 20_000 + b".")


def deep_folders(folder: Path) -> None:
    for _ in range(100):
        folder /= "d"
        folder.mkdir()


def late(make: Callable[[], Edit]) -> Edit:
    """An edit whose contents are made when it is needed: made at once they would take seconds of every process."""
    return lambda folder: make()(folder)


HOSTILE: dict[str, tuple[Edit, str]] = {
    "a header of NUL": (sparse(FILE, 99_000_008, (99_000_000).to_bytes(8, "little")), "HB104"),
    "a header of spaces": (header(b"{", b" ", b"}"), "HB150"),
    "a name of 98 megabytes": (header(b'{"', b"x", b'":1}'), "HB104"),
    "a list of 49 million numbers": (header(b'{"a":[', b"1,", b"1]}"), "HB104"),
    "a shape of 49 million sizes": (
        header(b'{"a":{"dtype":"U8","data_offsets":[0,1],"shape":[', b"1,", b"1]}}", data=1),
        "HB104",
    ),
    "98 million brackets": (header(b'{"a":', b"[", b""), "HB104"),
    "metadata of 98 megabytes": (header(b'{"__metadata__":{"a":"', b"x", b'"}}'), "HB104"),
    "metadata of millions of keys": (header(b'{"__metadata__":{', b'"a":"b",', b'"c":"d"}}'), "HB104"),
    "a size of 98 million digits": (header(b'{"a":{"shape":[', b"9", b"]}}"), "HB104"),
    "millions of empty entries": (header(b"{", b'"a":{},', b'"b":{}}'), "HB107"),
    "ten terabytes of data": (sparse(FILE, len(TERABYTES) + 10**13, TERABYTES), "HB220"),
    "an odd entry after 400,000": (entries(400_000, ENTRY, last='"y":1'), "HB107"),
    "an index of 300,000 ghosts": (
        late(lambda: all_of(sharded(), put(INDEX, {"weight_map": {f"x{n}": FIRST for n in range(300_000)}}))),
        "HB144",
    ),
    "an index of 300,000 files": (
        all_of(
            sharded(), late(lambda: put(INDEX, {"weight_map": {f"x{n}": f"{n}.safetensors" for n in range(300_000)}}))
        ),
        "HB140",
    ),
    "an index of nothing but brackets": (late(lambda: put(INDEX, '{"weight_map":' + "[" * 1_000_000)), "HB140"),
    "a configuration of lists": (late(lambda: text("config.json", '{"a":[', "[],", "[]]}", 600_000)), "HB203"),
    "a configuration of brackets": (late(lambda: text("config.json", "", "[", "", 1_100_000)), "HB203"),
    "a configuration of one text": (late(lambda: text("config.json", '{"a":"', "x", '"}', 39_000_000)), "HB210"),
    "a configuration of digits": (late(lambda: text("config.json", '{"a":', "9", "}", 39_000_000)), "HB208"),
    "a configuration larger than any": (sparse("config.json", 10**12), "HB135"),
    "a thousand million layers": (config(num_hidden_layers=10**9), "HB220"),
    "added tokens without end": (late(lambda: put("added_tokens.json", {f"x{n}": n for n in range(500_000)})), "HB501"),
    "a vocabulary of 300,000": (late(lambda: put("tokenizer.json", tokenizer(300_000))), "HB504"),
    "100,000 equal added tokens": (
        late(lambda: put("tokenizer.json", tokenizer(16, [{"id": 3, "content": f"x{n}"} for n in range(100_000)]))),
        "HB503",
    ),
    "a pickle without end": (late(lambda: bin_only(b"\x80\x02" + b"N0" * 8_000_000 + b".")), "HB712"),
    "marks without end": (late(lambda: bin_only(b"\x80\x02" + b"(" * 8_000_000 + b"t.")), "HB712"),
    "a memo without end": (late(lambda: bin_only(b"\x80\x04" + b"N\x94" * 4_000_000 + b".")), "HB712"),
    "a text of a terabyte": (late(lambda: bin_only(b"\x80\x04\x8d" + (2**40).to_bytes(8, "little") + b"x.")), "HB712"),
    "200 pickles": (many_pickles, "HB712"),
    "an archive that swells": (
        late(lambda: bin_only(zipped((f"{n}.pkl", bytes(50_000_000)) for n in range(4)))),
        "HB712",
    ),
    "archives in archives": (late(lambda: bin_only(nested(20))), "HB712"),
    "an archive of 50,000 entries": (late(lambda: bin_only(zipped((str(n), b"") for n in range(50_000)))), "HB712"),
    "five templates that do not end": (late(lambda: tokens(chat_template=dict.fromkeys("abcde", LOOPS))), "HB602"),
    "a template that doubles": (late(lambda: tokens(chat_template=DOUBLES)), "HB603"),
    "a template of a megabyte": (late(lambda: tokens(chat_template="x" * 2**20 + TEMPLATE)), "HB601"),
    "12,000 files": (many_files, ""),
    "a hundred folders deep": (deep_folders, ""),
}  # fmt: skip


MEASURE = """
import json, resource, subprocess, sys
run = subprocess.run([sys.executable, "-m", "hfbench", "check", sys.argv[1], "--json"], stdout=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
told = json.loads(run.stdout)
print(json.dumps([run.returncode, told, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
"""Between this process and the command: a child's peak begins with the memory of the process that starts it."""


def judged(folder: Path) -> tuple[dict[str, Any], float, int]:
    """The report of the command, CPU seconds and the most bytes that it or a child of it held."""
    run = subprocess.run([sys.executable, "-c", MEASURE, str(folder)], stdout=subprocess.PIPE, timeout=240, check=True)
    code, report, seconds, memory = json.loads(run.stdout)
    assert code in (0, 1), report
    return report, seconds, memory


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_judged_in_bounds(case: str, tmp_path: Path) -> None:
    edit, id = HOSTILE[case]
    folder = make(tmp_path / "model")
    edit(folder)
    report, seconds, memory = judged(folder)
    (folder / FILE).unlink(missing_ok=True)  # a hundred megabytes that pytest would keep
    ids = {each["id"] for each in report["findings"]}
    assert id in ids or (not id and report["verdict"] == "ok"), ids
    assert seconds < SECONDS
    assert memory < MEMORY


def test_a_million_tensors_are_judged_in_bounds(tmp_path: Path) -> None:
    folder = make(tmp_path / "model")
    spelled = '"model.layers.{n}.x":{{"dtype":"U8","shape":[2],"data_offsets":[{b},{e}]}}'
    entries(1_000_000, spelled, size=2)(folder)
    report, _, memory = judged(folder)
    (folder / FILE).unlink()
    assert report["verdict"] == "refuse"
    assert memory < MEMORY
