"""Step of the rotary position embedding: what the configuration says, and what each runtime makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.models.resolution.rope_rules import KEYS, Reading, layers_of, read_in_transformers, read_in_vllm
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, State, Trace, joined, shown
from hfbench.models.runtimes import Names, Runtime, rules

LEGACY_NAMES = ("rotary_emb_base", "rotary_pct", "rotary_emb_fraction")


def read_rope(subject: Subject, trace: Trace) -> None:
    """Tell RoPE before and after."""
    names = trace.fates["transformers"].names
    root_type = (subject.config or {}).get("model_type")
    told = False
    for prefix, section in subject.sections():
        model_type = _family(section.get("model_type") or (f"{root_type}_text" if prefix else root_type), names)
        defaults = names.rope.get(model_type)
        before = {key: section[key] for key in KEYS if key in section}
        if defaults is None and not (before.get("rope_scaling") or before.get("rope_parameters")):
            continue
        told = True
        _tell(prefix, section, before, (model_type, defaults), trace)
    if not told:
        found = "no key of RoPE in the configuration" if subject.config is not None else "no configuration"
        trace.step(
            "rope", "rope_scaling, rope_parameters, rope_theta", found, "positions are told otherwise", "skipped"
        )


def _family(model_type: object, names: Names) -> str:
    """The model type whose class reads RoPE: of composite models that kept a flat file, the language part's."""
    found = model_type if isinstance(model_type, str) else ""
    return f"{found}_text" if found not in names.rope and f"{found}_text" in names.rope else found


def _tell(
    prefix: str,
    section: Mapping[str, Any],
    before: dict[str, Any],
    family: tuple[str, Mapping[str, Any] | None],
    trace: Trace,
) -> None:
    model_type, defaults = family
    first = read_in_transformers(section, model_type, defaults or {})
    second = read_in_vllm(section, first)
    details = {"before": before, "after": {"transformers": first.parameters, "vllm": second.parameters}}
    looked = f"config.json: {prefix or 'the root'}".rstrip(".")
    as_it_stands = before == {"rope_parameters": second.parameters}
    found = _after(second) if as_it_stands else f"{_spelled(before) or 'nothing'} -> {_after(second)}"
    own = bool(defaults and defaults["own"]) and model_type not in rules("rope")["families"]
    if own or defaults is None:
        # What is shown is a likely reading, so nothing is refused for it.
        why = "the family's class has rules of its own" if own else "the class in use is not known"
        trace.step("rope", looked, found, f"{why}; shown is the general rule, a guess", "note", **details)
        return
    state = _report(first, "transformers", trace)
    state = _worse(state, _report(second, "vllm", trace))
    _tell_megatron(second.parameters, trace)
    notes = [*first.notes, *(note for note in second.notes if note not in first.notes)]
    if not any(name in before for name in ("rope_theta", *LEGACY_NAMES)) and not _given_theta(before):
        theta = next((each.get("rope_theta") for each in layers_of(first.parameters or {})), None)
        notes.append(f"rope_theta is not told: {shown(theta)} is taken in silence, the default of the family's class")
    if notes:
        state = _worse(state, "note")
    faults = [*first.faults, *second.faults, *first.later_faults, *second.later_faults]
    why = "; ".join(dict.fromkeys([*faults, *notes])) or _same(first, second)
    trace.step("rope", looked, found, why, state, **details)


def _tell_megatron(parameters: Mapping[str, Any] | None, trace: Trace) -> None:
    """megatron-core has llama3 scaling with all but the factor fixed."""
    fixed = rules("rope")["megatron_core"]["llama3"]
    for each in layers_of(dict(parameters or {})):
        if each.get("rope_type") == "llama3" and any(each.get(key) != value for key, value in fixed.items()):
            told = joined([f"{key} {shown(value)}" for key, value in fixed.items()])
            trace.block(Stage.CONFIGURATION, f"megatron-core fixes llama3 scaling at {told}", "megatron_core")


def _report(reading: Reading, runtime: Runtime, trace: Trace) -> State:
    title = trace.fates[runtime].names.title
    for fault in reading.faults:
        trace.block(Stage.CONFIGURATION, f"{title} refuses the configuration: {fault}", runtime)
    for fault in reading.later_faults:
        trace.block(Stage.MODEL, f"{title} cannot build the model: {fault}", runtime)
    for note in reading.notes:
        trace.note(f"rope: {note}", runtime)
    return "error" if reading.faults or reading.later_faults else "ok"


def _worse(one: State, other: State) -> State:
    order: tuple[State, ...] = ("skipped", "ok", "note", "warning", "error")
    return max(one, other, key=order.index)


def _given_theta(before: Mapping[str, Any]) -> bool:
    given = before.get("rope_scaling") or before.get("rope_parameters")
    return isinstance(given, dict) and any("rope_theta" in each for each in layers_of(given))


def _same(first: Reading, second: Reading) -> str:
    if first.parameters == second.parameters:
        return "both runtimes read it alike"
    return f"transformers keeps {_after(first)}"


def _after(reading: Reading) -> str:
    return _spelled(reading.parameters or {}) or "nothing"


def _spelled(parameters: Mapping[str, Any], most: int = 8, depth: int = 1) -> str:
    parts = []
    for key, value in list(parameters.items())[:most]:
        inner = f"{{{_spelled(value, most, depth - 1)}}}" if isinstance(value, dict) and depth else shown(value)
        parts.append(f"{shown(key)[1:-1]} {inner}")
    more = f" and {len(parameters) - most} more" if len(parameters) > most else ""
    return ", ".join(parts) + more
