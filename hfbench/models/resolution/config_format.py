"""Steps that choose the format of the configuration: Hugging Face's config.json or Mistral's params.json."""

from __future__ import annotations

from hfbench.models.config import CONFIG, MISTRAL_CONFIG
from hfbench.models.problem import listed
from hfbench.models.resolution.subject import CONSOLIDATED, Subject
from hfbench.models.resolution.trace import Stage, Trace
from hfbench.models.runtimes import Runtime


def choose_format(subject: Subject, trace: Trace) -> bool:
    """Tell which configuration each runtime reads; True when vLLM takes Mistral's."""
    consolidated = subject.consolidated()
    params, config = subject.by_name.get(MISTRAL_CONFIG), subject.by_name.get(CONFIG)
    looked = f"{CONFIG}, {MISTRAL_CONFIG}, {CONSOLIDATED} in all subfolders"
    has_params = params is not None and params.code != "not_regular"
    has_config = config is not None and config.code != "not_regular"
    if consolidated and has_params:
        found = f"{MISTRAL_CONFIG} and {listed(consolidated)}"
        why = "vLLM uses the Mistral format here"
        why += "; transformers uses config.json" if has_config else "; transformers needs config.json and finds none"
        trace.step("config format", looked, found, why, "note" if has_config else "warning")
        _need_config(subject, trace, "transformers", "tensorrt_llm", "megatron_core")
        if fault := subject.faults.get(MISTRAL_CONFIG):
            trace.block(Stage.CONFIGURATION, fault, "vllm")
        return True
    if consolidated:
        found = f"{listed(consolidated)} without {MISTRAL_CONFIG}"
        why = "vLLM reads config.json, but weights and tokenizer in Mistral's format: the two may not fit together"
        trace.step("config format", looked, found, why, "warning")
        trace.note(why, "vllm")
    elif params is not None:
        why = f"{MISTRAL_CONFIG} is ignored: no {CONSOLIDATED}"
        trace.step("config format", looked, MISTRAL_CONFIG, why, "note" if has_config else "error")
        trace.note(why)
    elif has_config:
        fault = subject.faults.get(CONFIG)
        why = fault or "the Hugging Face format in every runtime"
        trace.step("config format", looked, CONFIG, why, "error" if fault else "ok")
    else:
        trace.step("config format", looked, "none of them", "no runtime can tell what the model is", "error")
    _need_config(subject, trace, "transformers", "vllm", "tensorrt_llm", "megatron_core")
    return False


def _need_config(subject: Subject, trace: Trace, *runtimes: Runtime) -> None:
    """Block the runtimes that read config.json when it is not there or cannot be read."""
    fault = subject.faults.get(CONFIG)
    if fault is None and subject.config is None:
        holds = listed(each.name for each in subject.files) or "nothing"
        fault = f"there is no {CONFIG} in {subject.folder}; it holds {holds}"
        if subject.shadows:
            fault += "; this local folder shadows the Hub repository of the same name"
    if fault is not None:
        trace.block(Stage.CONFIGURATION, fault, *runtimes)
