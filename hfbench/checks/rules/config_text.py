"""The text of config.json and the types of its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.subject import Subject
from hfbench.models.files import MEGATRON_TRACKER
from hfbench.models.problem import listed


@rule("HB200", "no-config", codes=("config_missing",))
def no_config(subject: Subject) -> Iterator[Found]:
    """There is no config.json.

    Why: neither transformers nor vLLM can tell what kind of model the weights are.
    Remedy: fetch config.json from the model's page.
    """
    adapter = subject.weights.format == "none" and subject.has("adapter_config.json")
    if subject.weights.format == "adapter" or adapter:
        return  # another rule tells: adapters have none
    for found in passed_on(subject, "config_missing"):
        if subject.has("model_index.json"):
            parts = sorted({each.name.partition("/")[0] for each in subject.files if each.name.count("/") == 1})
            message = f"missing; this is a pipeline of diffusers, whose models lie in {listed(parts)}"
            yield replace(found, message=message, remedy="give the folder of one of its models")
        elif subject.has(MEGATRON_TRACKER):
            remedy = f"hfbench convert hf {subject.folder} --out DIR makes a Hugging Face folder of it"
            yield replace(found, message="missing; this is a Megatron checkpoint", remedy=remedy)
        else:
            yield found


@rule("HB201", "config-with-bom", codes=("config_bom",))
def config_with_bom(subject: Subject) -> Iterator[Found]:
    """config.json begins with a byte order mark.

    Why: transformers refuses it as invalid JSON.
    Remedy: save it as UTF-8 without BOM.
    """
    yield from passed_on(subject, "config_bom")


@rule("HB202", "config-not-utf8", codes=("config_encoding",))
def config_not_utf8(subject: Subject) -> Iterator[Found]:
    """config.json is not UTF-8.

    Why: transformers refuses it.
    Remedy: save it as UTF-8.
    """
    yield from passed_on(subject, "config_encoding")


@rule("HB203", "config-not-json", codes=("config_json",))
def config_not_json(subject: Subject) -> Iterator[Found]:
    """config.json is not JSON.

    Why: transformers and vLLM only say that it is not valid; the line and the column are told here.
    Remedy: mend the text, or fetch the file again.
    """
    yield from passed_on(subject, "config_json")


@rule("HB204", "config-not-an-object", codes=("config_not_object",))
def config_not_an_object(subject: Subject) -> Iterator[Found]:
    """The root of config.json is not an object.

    Why: transformers and vLLM fail on it with an error about a missing method.
    Remedy: fetch the file again.
    """
    yield from passed_on(subject, "config_not_object")


@rule("HB205", "not-a-number-in-config", severity="warning", codes=("config_nan",))
def not_a_number_in_config(subject: Subject) -> Iterator[Found]:
    """config.json holds NaN or an infinity.

    Why: Python reads it, other readers refuse the whole file.
    Remedy: write a finite number or null.
    """
    yield from passed_on(subject, "config_nan")


@rule("HB206", "duplicate-key-in-config", severity="warning", codes=("config_duplicate",))
def duplicate_key_in_config(subject: Subject) -> Iterator[Found]:
    """A key stands twice in config.json.

    Why: the last one counts in Python; other readers take the first or refuse the file.
    Remedy: remove one of the two.
    """
    yield from passed_on(subject, "config_duplicate")


@rule("HB207", "wrong-type-in-config", codes=("config_type",))
def wrong_type_in_config(subject: Subject) -> Iterator[Found]:
    """A value in config.json is of the wrong type.

    Why: transformers refuses it, or reads a text letter by letter.
    Remedy: write a value of the type that is named.
    """
    yield from passed_on(subject, "config_type")


@rule("HB208", "impossible-value-in-config", codes=("config_value", "config_depth"))
def impossible_value_in_config(subject: Subject) -> Iterator[Found]:
    """A value in config.json cannot be meant.

    Why: the model would be built with it and fail later, far from the cause.
    Remedy: write the value that the model was trained with.
    """
    yield from passed_on(subject, "config_value", "config_depth")


@rule(
    "HB209",
    "broken-side-file",
    severity="warning",
    codes=("side_json", "json_bom", "json_encoding", "json_syntax", "json_empty", "json_not_object", "json_file"),
)
def broken_side_file(subject: Subject) -> Iterator[Found]:
    """A JSON file beside config.json cannot be read.

    Why: runtimes that want it fail or pass over it in silence.
    Remedy: mend the text, or fetch the file again.
    """
    yield from passed_on(
        subject, "side_json", "json_bom", "json_encoding", "json_syntax", "json_empty", "json_not_object", "json_file"
    )
