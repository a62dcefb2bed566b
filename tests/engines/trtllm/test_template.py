"""Templates: those shipped are sound, a wrong one is told with its line and key, and a user's own comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.actions.engine_templates import EngineTemplates
from hfbench.engines.trtllm.template import TemplateError, find_template, line_of, load_templates, read_template
from hfbench.errors import UsageError
from hfbench.jobs.run import Run

SOUND = 'title = "Mine"\n\n[convert]\ntool = "quantize"\nqformat = "fp8"\n\n[build]\ngemm_plugin = "auto"\n'


def written(folder: Path, name: str, text: str | bytes) -> Path:
    """A file of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_shipped_template_is_sound() -> None:
    found = load_templates(Path("/nowhere"))
    assert not found.failed
    assert {"dense-bf16", "dense-fp16", "fp8", "int4-awq", "int8-kv", "tensor-parallel-2"} <= set(found.loaded)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (SOUND.replace("gemm_plugin", "gemm_plugn"), 8, "has no flag 'gemm_plugn'"),
        (SOUND.replace('"auto"', '"fast"'), 8, "gemm_plugin takes"),
        (SOUND.replace('"auto"', "5"), 8, "gemm_plugin needs text, not 5"),
        (SOUND + "max_output_len = 5\n", 9, "max_output_len is obsolete"),
        (SOUND + "max_batch_size = 5\n", 9, "max_batch_size is set from --batch"),
        (SOUND.replace('qformat = "fp8"', 'qformat = "fp9"'), 5, "qformat takes"),
        (SOUND.replace("qformat", "gemm_plugin"), 5, "quantize has no flag gemm_plugin"),
        (SOUND.replace('"quantize"', '"quantise"'), 4, "tool is one of"),
        (SOUND.replace("title", "titel"), 1, "unknown key 'titel'"),
        ("tp = 0\n" + SOUND, 1, "tp is from 1 to 1024"),
        ('dtype = "bf16"\n' + SOUND, 1, "dtype is one of"),
        ('quantisation = "fp7"\n' + SOUND, 1, "no scheme is called 'fp7'"),
        ("title = 5\n", 1, "title needs text"),
        (SOUND.replace('tool = "quantize"', 'script = "../../etc"'), 4, "script is a path below"),
        ("build = 5\n" + SOUND.partition("[build]")[0], 1, "build needs a table"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, line: int, found: str) -> None:
    path = written(tmp_path, "mine.toml", text)
    with pytest.raises(TemplateError) as caught:
        read_template(path)
    assert found in caught.value.found
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("mine.toml", b"title = \xff", "byte 8 is not UTF-8"),
        ("mine.toml", "title = ", "is not TOML"),
        ("mine.toml", f"tp = {'9' * 5000}", "too long or too deep"),
        ("mine.toml", f"a{'.a' * 100_000} = 1", "more than 100 dots on one line"),
        ("mine.toml", "# " + "x" * 300_000, ""),
        ("Mine!.toml", SOUND, "is no name of a template"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(tmp_path: Path, name: str, text: str | bytes, found: str) -> None:
    with pytest.raises(TemplateError) as caught:
        read_template(written(tmp_path, name, text))
    assert found in caught.value.found
    assert "\n" not in str(caught.value)


def test_one_wrong_file_takes_no_other_away(tmp_path: Path) -> None:
    written(tmp_path, "mine.toml", SOUND)
    written(tmp_path, "broken.toml", "[")
    written(tmp_path, "fp8.toml", SOUND)
    result = EngineTemplates.spec.build({"folder": str(tmp_path)}).perform(Run())  # type: ignore[attr-defined]
    assert result.failed
    assert len(result.failures) == 1
    assert {each.name: each.title for each in result.templates}["fp8"] == "Mine"
    assert "mine" in {each.name for each in result.templates}


def test_a_folder_of_templates_that_is_none_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        EngineTemplates(folder=tmp_path / "gone").perform(Run())


def test_a_template_is_found_by_name_by_path_or_with_the_nearest_name(tmp_path: Path) -> None:
    assert find_template(str(written(tmp_path, "mine.toml", SOUND))).title == "Mine"
    with pytest.raises(TemplateError, match=r"Did you mean 'int4-awq'"):
        find_template("int4-awg")


def test_a_line_is_found_by_section_and_key_alone() -> None:
    text = '# build.x = 1\nx = 1\n[build] # here\n"y" = 2\n x = 3\n[other]\nx = 4\n'
    assert [line_of(text, key) for key in ("x", "build.x", "build.y", "build", "other.x", "other.z")] == [
        2,
        5,
        4,
        3,
        7,
        0,
    ]
