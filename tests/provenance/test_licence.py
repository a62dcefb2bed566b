"""Licences: where they are read, what they are called, and what the lists let pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.provenance.facts import Licence
from hfbench.provenance.licence import LicenceRefused, normalised, read_licence, require_licence


@pytest.mark.parametrize(
    ("name", "text", "id"),
    [
        ("README.md", "---\nlicense: apache-2.0\n---\n", "Apache-2.0"),
        ("README.md", "---\r\nlanguage: en\r\nlicense: MIT\r\n---\r\n", "MIT"),
        ("README.md", '---\nlicense: "cc-by-nc-4.0"  # see LICENSE\n---\n', "CC-BY-NC-4.0"),
        ("README.md", "---\nlicense: [mit, gpl-3.0]\n---\n", "MIT AND GPL-3.0-only"),
        ("README.md", "---\nlicense:\n- mit\n- apache-2.0\ntags: [x]\n---\n", "MIT AND Apache-2.0"),
        ("README.md", "---\nlicense: other\nlicense_name: Tongyi Qianwen\n---\n", "LicenseRef-tongyi-qianwen"),
        ("README.md", "---\nlicense: other\n---\n", "LicenseRef-other"),
        ("README.md", "---\nlicense: llama3.1\n---\n", "LicenseRef-llama3.1"),
        ("README.md", "license: mit\n", ""),
        ("README.md", "---\nlicense_link: https://x\n---\n", ""),
        ("config.json", '{"license": "gemma"}', "LicenseRef-gemma"),
        ("config.json", '{"license": ', ""),
        ("LICENSE", "\n     Apache License\n       Version 2.0, January 2004\n", "Apache-2.0"),
        ("LICENSE.txt", "LLAMA 3.1 COMMUNITY LICENSE AGREEMENT\n", "LicenseRef-llama3.1"),
        ("LICENSE", "MIT License\n\nCopyright", "MIT"),
        ("LICENSE", "GNU AFFERO GENERAL PUBLIC LICENSE\n   Version 3, 19 November 2007", "AGPL-3.0-only"),
        ("LICENSE", "All rights reserved.", "LicenseRef-other"),
    ],
)
def test_a_licence_is_read_where_models_tell_it(tmp_path: Path, name: str, text: str, id: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    found = read_licence(tmp_path)
    assert (found.id, found.source) == (id, name if id else "")


def test_the_card_tells_before_the_licence_file(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    (tmp_path / "LICENSE").write_text("MIT License")
    assert read_licence(tmp_path).id == "CC-BY-4.0"


@pytest.mark.parametrize(
    ("id", "allow", "deny", "told"),
    [
        ("Apache-2.0", [], [], ""),
        ("", [], ["mit"], ""),
        ("Apache-2.0", ["apache-2.0", "mit"], [], ""),
        ("Apache-2.0", ["MIT"], [], "is not among those allowed: MIT"),
        ("", ["MIT"], [], "tells no licence"),
        ("CC-BY-NC-4.0", [], ["cc-by-nc-*"], "is denied by 'cc-by-nc-*'"),
        ("Apache-2.0", ["*"], ["Apache-2.0"], "is denied"),
        ("MIT AND CC-BY-NC-4.0", ["mit"], [], "CC-BY-NC-4.0 (README.md) is not among"),
        ("LicenseRef-llama3.1", ["llama3.1"], [], ""),
        ("LicenseRef-llama3.1", [], ["LicenseRef-llama*"], "is denied"),
        ("MIT", ["*"], [], ""),
    ],
)
def test_lists_let_licences_pass_or_say_why_not(id: str, allow: list[str], deny: list[str], told: str) -> None:
    licence = Licence(id=id, told=id, source="README.md" if id else "")
    if not told:
        require_licence(licence, allow=allow, deny=deny, model="m")
        return
    with pytest.raises(LicenceRefused) as caught:
        require_licence(licence, allow=allow, deny=deny, model="m")
    assert told in str(caught.value)


@given(st.text(max_size=60))
def test_any_word_becomes_a_name_of_spdx_that_stays_as_it_is(told: str) -> None:
    once = normalised(told)
    assert normalised(once) == once
    assert once.isascii()
    assert " " not in once


@given(st.binary(max_size=400))
def test_any_card_is_read_without_an_error(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    folder = tmp_path_factory.mktemp("card")
    (folder / "README.md").write_bytes(b"---\nlicense:" + raw)
    read_licence(folder)
