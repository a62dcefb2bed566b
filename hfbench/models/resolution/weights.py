"""Steps of the weight files and of the output head."""

from __future__ import annotations

from hfbench.models.problem import counted, listed
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, State, Trace, by_runtime
from hfbench.models.resolution.weight_files import Selection, in_others, in_transformers, in_vllm, passed_over
from hfbench.models.runtimes import Runtime

HEADS = ("lm_head.weight", "output.weight", "model.lm_head.weight", "language_model.lm_head.weight")
"""Names a stored output head goes by."""


def choose_weight_files(subject: Subject, trace: Trace) -> None:
    """Tell the files each runtime reads and passes over; nothing is blocked in a folder without any weights."""
    looked = "weight files and indexes"
    if subject.config_only:
        why = "each runtime is judged on the configuration alone"
        trace.step("weights", looked, "the folder holds no weights", why, "note")
        for fate in trace.fates.values():
            fate.notes.append("no weights in the folder: judged on the configuration alone")
        return
    others = in_others(subject)
    selections: dict[Runtime, Selection] = {
        "transformers": in_transformers(subject),
        "vllm": in_vllm(subject),
        "tensorrt_llm": others,
        "megatron_core": others,
    }
    for runtime, selection in selections.items():
        fate = trace.fates[runtime]
        fate.files = list(selection.files)
        fate.ignored = passed_over(subject, selection)
        fate.alarm = selection.alarm
        if selection.fault:
            trace.block(Stage.WEIGHTS, selection.fault, runtime)
    pair = (selections["transformers"], selections["vllm"])
    state: State = "ok"
    if any(each.fault for each in pair):
        state = "error" if all(each.fault for each in pair) else "warning"
    elif set(pair[0].files) != set(pair[1].files):
        state = "warning"
    titles = ("transformers", "vLLM")
    told = by_runtime({title: _summary(each) for title, each in zip(titles, pair, strict=True)})
    whys = [by_runtime({title: each.fault or each.why for title, each in zip(titles, pair, strict=True)})]
    if alarms := [each.alarm for each in pair if each.alarm]:
        whys.append(f"security: {alarms[0]}")
        state = "error"
    adapters = [name for name in pair[1].files if name.startswith("adapter_model")]
    if adapters:
        whys.append(f"{listed(adapters)} is an adapter, not a model: vLLM takes it for weights")
        state = "error" if len(adapters) == len(pair[1].files) else "warning"
    read = {name for each in pair for name in each.files}
    if ignored := [name for name in subject.weights if name not in read]:
        whys.append(f"neither reads {listed(ignored)}")
    files = {title: list(each.files) for title, each in zip(titles, pair, strict=True)}
    trace.step("weights", looked, told, "; ".join(whys), state, files=files, ignored=ignored)


def tell_head(subject: Subject, trace: Trace) -> None:
    """Tell whether the output head is tied to the embedding, stored, or missing."""
    if subject.config is None or subject.config_only or not len(subject.checkpoint.columns):
        return
    tied = _tied(subject)
    names = set(subject.checkpoint.columns.names)
    stored = next((name for name in HEADS if name in names), None)
    looked = "config.json: tie_word_embeddings; the headers"
    told = {True: "tied", False: "not tied", None: "not told"}[tied]
    found = f"{told}, {f'{stored} is stored' if stored else 'no output head is stored'}"
    if tied and stored:
        why = "both runtimes compare the two after loading: a different head is kept, the same one is tied"
        trace.step("output head", looked, found, why, "note")
    elif tied is False and not stored and _generates(trace) and _complete(subject):
        why = "transformers starts with a random head, and says so only in its loading report"
        trace.step("output head", looked, found, why, "error")
        trace.note(why, "transformers")
    else:
        why = (
            "the embedding serves as head"
            if tied
            else ""
            if stored or _complete(subject)
            else "a missing file may hold it"
        )
        trace.step("output head", looked, found, why)


def _complete(subject: Subject) -> bool:
    """False when a missing file may hold the head."""
    return all(problem.severity != "error" for problem in subject.checkpoint.problems)


def _tied(subject: Subject) -> bool | None:
    values = [section.get("tie_word_embeddings") for _, section in subject.sections()]
    return next((value for value in values if isinstance(value, bool)), None)


def _generates(trace: Trace) -> bool:
    model_class = trace.fates["transformers"].model_class or ""
    return model_class.endswith(("ForCausalLM", "LMHeadModel"))


def _summary(selection: Selection) -> str:
    if not selection.files:
        return "none"
    return listed(selection.files, 2) if len(selection.files) < 3 else counted(len(selection.files), "file")
