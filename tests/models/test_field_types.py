"""Types of configuration fields: as transformers' own classes take them, value by value."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from hfbench.models.field_types import fits, packed, unpacked, wanted
from hfbench.models.resolution.fields import type_faults
from hfbench.models.runtimes import shipped

VALUES: list[Any] = [None, True, 7, 7.5, "x", [], [1], ["a"], [1.5], {}, {"a": 1}]
NOT_TOLD = {"out_features", "out_indices", "model_type"}
"""Fields that a mixin makes after the class was read, and the one that is given."""


@pytest.mark.parametrize(
    ("annotation", "taken", "refused"),
    [
        ("int", [0, -7], [True, 1.0, "1", None, [], {}]),
        ("float", [0.5], [1, None, "1", True]),
        ("float | int", [0.5, 1], [True, None]),
        ("bool | None", [True, None], [0, "true"]),
        ("list[int] | tuple[int, ...]", [[], [1]], [["a"], [1.5], [True], 1, None]),
        ("int | list[int] | tuple[int, int]", [1, [1, 2]], [[1.5], "1"]),
        ("list[int | float]", [[1, 1.5]], [["a"]]),
        ("Literal['full', 'default'] | None", ["full", None], ["other", 1]),
        ("dict | PreTrainedConfig | None", [{}, None], ["x", []]),
        ("Optional[str]", ["x", None], [1]),
        ("no type at all ((", [None, 1], []),
    ],
)
def test_an_annotation_takes_what_a_strict_dataclass_takes(
    annotation: str, taken: list[Any], refused: list[Any]
) -> None:
    assert all(fits(value, annotation) for value in taken)
    assert not any(fits(value, annotation) for value in refused)


def test_what_is_needed_is_said_in_words() -> None:
    assert wanted("list[int] | tuple[int, ...] | None") == ["a list of int", "null"]
    assert wanted("dict | PreTrainedConfig") == ["an object"]


def test_a_packed_table_gives_back_what_it_was_made_from() -> None:
    declared = {"a": {"x": "int", "y": "bool"}, "b": {"x": "int"}, "c": {"x": "str", "z": ""}}
    assert unpacked(packed(declared), list(declared)) == {"x": {"a": "int", "b": "int", "c": "str"}, "y": {"a": "bool"}}


@pytest.mark.slow
def test_every_value_is_judged_as_transformers_itself_judges_it() -> None:
    transformers = pytest.importorskip("transformers")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    names = shipped("transformers")
    if transformers.__version__ != names.version:
        pytest.skip(f"the table is that of transformers {names.version}")
    chance = random.Random(20261130)
    judged, missed = 0, []
    for model_type in chance.sample(sorted(CONFIG_MAPPING.keys()), 60):
        kind = CONFIG_MAPPING[model_type]
        try:
            usual = json.loads(json.dumps(kind().to_dict(), default=str))
        except (ValueError, TypeError):
            continue  # a class that cannot be made without being told of its parts
        fields = sorted(usual.keys() & names.field_types.keys() - NOT_TOLD)
        for field in chance.sample(fields, min(8, len(fields))):
            for value in VALUES:
                given = {"model_type": model_type, field: value}
                try:
                    kind.from_dict(copy.deepcopy(given))
                    refused = False
                except Exception as error:
                    refused = type(error).__name__ == "StrictDataclassFieldValidationError"
                    if not refused:
                        continue
                faults = list(type_faults(given, model_type, names))
                assert refused or not faults, (given, faults)
                missed += [given] if refused and not faults else []
                judged += 1
    assert judged > 3000
    assert len(missed) < 0.01 * judged, missed  # classes with validators of their own, such as a range
