"""A check opens nothing outside the model's folder, writes nothing, runs nothing of the model and calls nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cases_pickles import bin_only, called, torch_zip
from small_model import TEMPLATE, TENSORS, Edit, all_of, config, gone, linked, make, put, sharded, tokens, weights

CHILD = """
import os, sys

seen = []
WATCHED = {"open", "os.listdir", "os.scandir", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen",
           "pickle.find_class", "socket.connect", "socket.getaddrinfo", "os.remove", "os.rename", "os.mkdir", "import"}

def watch(event, args):
    if event in WATCHED:
        seen.append((event, args))

from hfbench.checks.run import check
from hfbench.checks.base import rules
rules()  # what is imported for the rules themselves is not of interest
sys.addaudithook(watch)
report = check(sys.argv[1])
events = list(seen)

def plain(event, args):
    if event == "open":
        path, mode, flags = args
        if isinstance(path, int):
            return None
        return [event, os.path.realpath(os.fsdecode(path)), (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)]
    if event in ("os.listdir", "os.scandir"):
        return [event, os.path.realpath(os.fsdecode(args[0]) if args[0] is not None else ".") , 0]
    if event == "subprocess.Popen":
        return [event, [str(each) for each in args[1]], 0]
    if event == "import":
        return [event, str(args[1] or ""), 0]
    return [event, repr(args)[:200], 0]

import json
told = [each for each in (plain(*each) for each in events) if each]
json.dump({"verdict": report.verdict, "ids": [each.id for each in report.findings], "events": told}, sys.stdout)
"""

ROOT = Path(__file__).resolve().parents[2]
OWN = tuple(map(os.path.realpath, (sys.prefix, sys.base_prefix, ROOT / "hfbench", "/proc/self", "/dev/null")))
"""Where Python, its packages and hfbench lie; and what the system tells of the process itself."""

MODULES = ("json", "jinja2", "sitecustomize", "usercustomize", "hfbench", "re", "numpy", "torch", "c", "modeling")
"""What a check might import by mistake."""

RAN = "ran"
"""The file that hostile code of these models would make beside them."""


def code(folder: Path) -> str:
    return f"open({str(folder.parent / RAN)!r}, 'w').close()\n"


def poisoned(folder: Path) -> None:
    """Every module that a check might import, as a file of the model."""
    for name in MODULES:
        (folder / f"{name}.py").write_text(code(folder))
    (folder / "conftest.py").write_text(code(folder))
    (folder / "x.pth").write_text(f"import os; {code(folder)}")


def evil(folder: Path) -> None:
    """A pickle that would make the file, in every place where one is looked for."""
    target = str(folder.parent / RAN)
    raw = b"\x80\x04\x8c\x02io\x8c\x04open\x93" + b"\x8c" + bytes([len(target)]) + target.encode() + b"\x8c\x01w\x86R."
    for name in ("pytorch_model.bin", "optimizer.pt", "training_args.bin", "model.pkl", "sub/x.pth"):
        put(name, raw)(folder)
    put("archive.pt", torch_zip(raw))(folder)


def secret(folder: Path) -> Path:
    """A folder of somebody else beside the model: what must not be read."""
    other = folder.parent / "other"
    if not other.is_dir():
        make(other)
        (other / "chat_template.jinja").write_text(TEMPLATE)
        (other / "additional_chat_templates").mkdir()
        (other / "additional_chat_templates" / "tool.jinja").write_text(TEMPLATE)
        (other / "pytorch_model.bin").write_bytes(called("os", "system"))
    return other


def link(name: str, to: str = "") -> Edit:
    def edit(folder: Path) -> None:
        linked(name, str(secret(folder) / (to or name)))(folder)

    return edit


def mapped(file: str) -> Edit:
    def edit(folder: Path) -> None:
        secret(folder)
        sharded(weight_map={"lm_head.weight": file})(folder)

    return edit


def below_a_link(folder: Path) -> None:
    """An index that names a file in a folder of the model which is a link."""
    (folder / "sub").symlink_to(secret(folder))
    sharded(weight_map={"lm_head.weight": "sub/model.safetensors"})(folder)


HOSTILE: dict[str, Edit] = {
    **{
        f"{name} is a link": link(name)
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "pytorch_model.bin")
    },
    "chat_template.jinja is a link": link("chat_template.jinja"),
    "the folder of templates is a link": link("additional_chat_templates"),
    "a folder is a link": link("sub", "."),
    "generation_config.json is a link": link("generation_config.json", "config.json"),
    "added_tokens.json is a link": link("added_tokens.json", "config.json"),
    "the index is a link": link("model.safetensors.index.json", "config.json"),
    "the index leads above": mapped("../other/model.safetensors"),
    "the index leads above from below": mapped("a/../../other/model.safetensors"),
    "the index leads to the root": mapped("/etc/passwd"),
    "the index leads below a link": below_a_link,
    "the index of pickles leads above": all_of(
        gone("model.safetensors"), put("pytorch_model.bin.index.json", {"weight_map": {"a": "../other/x.bin"}})
    ),
    "code of its own": all_of(
        config(model_type="my", auto_map={"AutoConfig": "c.C", "AutoModel": "modeling.M"}), poisoned
    ),
    "code elsewhere": config(model_type="my", auto_map={"AutoConfig": "../other/c.C", "AutoModel": "/etc/passwd.C"}),
    "a base elsewhere": all_of(
        gone("model.safetensors"), put("adapter_config.json", {"base_model_name_or_path": "../other"})
    ),
    "a tokenizer elsewhere": tokens(tokenizer_file="../other/tokenizer.json", name_or_path="../other"),
    "a template that includes": tokens(chat_template="{% include '/etc/passwd' %}" + TEMPLATE),
    "a template that reaches": tokens(chat_template="{{ cycler.__init__.__globals__.os.system('true') }}"),
    "a template that reaches in pieces": tokens(chat_template="{{ ''|attr('__cl' ~ 'ass__')|attr('__mro' ~ '__') }}"),
    "pickles": evil,
    "pickles alone": all_of(gone("model.safetensors"), evil),
    "an unreadable set": all_of(bin_only(b"GGUF"), put("consolidated.safetensors", weights(TENSORS)), poisoned),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_nothing_is_read_written_or_run_but_what_a_check_is_for(case: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "model")
    poisoned(folder)
    HOSTILE[case](folder)
    told = _watched(folder, folder)
    outside = [
        (event, what)
        for event, what, _ in told["events"]
        if event in ("open", "os.listdir", "os.scandir") and not what.startswith((str(folder.resolve()), *OWN))
        if (event, what) != ("os.listdir", str(ROOT))  # where Python looks for the package
    ]
    assert not outside
    assert not [what for event, what, writes in told["events"] if event == "open" and writes and what != "/dev/null"]
    started = [what for event, what, _ in told["events"] if event == "subprocess.Popen"]
    assert all(command == [sys.executable, "-P", "-m", "hfbench.tokens.render_child"] for command in started)
    imported = [what for event, what, _ in told["events"] if event == "import"]
    assert not [what for what in imported if what.startswith(str(folder.resolve()))]
    quiet = {"open", "os.listdir", "os.scandir", "subprocess.Popen", "import", "os.posix_spawn", "os.fork"}
    assert {event for event, _, _ in told["events"]} <= quiet
    assert not (tmp_path / RAN).exists()


def test_what_is_watched_would_be_seen(tmp_path: Path) -> None:
    """The same watch over the folder itself: the files of a plain model are opened."""
    folder = make(tmp_path / "model")
    told = _watched(folder, tmp_path)
    opened = {Path(what).name for event, what, _ in told["events"] if event == "open"}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= opened
    assert told["verdict"] == "ok"
    assert [what[-1] for event, what, _ in told["events"] if event == "subprocess.Popen"]


def _watched(folder: Path, cwd: Path) -> dict[str, Any]:
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.run(
        [sys.executable, "-P", "-c", CHILD, str(folder)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )
    assert child.returncode == 0, child.stderr[-2000:]
    told: dict[str, Any] = json.loads(child.stdout)
    return told
