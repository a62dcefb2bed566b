"""Step of the tokenizer: which implementation each runtime would use."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hfbench.models.problem import quoted
from hfbench.models.resolution.config_class import tokenizer_entry
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, State, Trace, by_runtime
from hfbench.models.runtimes import Names

REMOTE = "remote code"
GENERIC = "TokenizersBackend"
MISTRAL_COMMON = "MistralCommonBackend"
ANY_CLASS = frozenset({"PreTrainedTokenizerFast", "PreTrainedTokenizer", "PythonBackend", GENERIC, MISTRAL_COMMON})
"""Class names that stand for the generic tokenizer, whatever the family."""

FILES = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model")


def choose_tokenizer(subject: Subject, trace: Trace) -> None:
    """Tell the tokenizer class in transformers and vLLM's tokenizer mode."""
    looked = "tokenizer_config.json, model_type, tekken.json, tokenizer files"
    files = [name for name in subject.by_name if name in FILES or name.endswith(".tiktoken")]
    mode = _mode_in_vllm(subject)
    model_type = (subject.config or {}).get("model_type")
    model_type = model_type if isinstance(model_type, str) else ""
    transformers, vllm = trace.fates["transformers"].names, trace.fates["vllm"].names
    if fault := subject.faults.get("tokenizer_config.json"):
        trace.step("tokenizer", looked, "tokenizer_config.json cannot be read", fault, "error")
        trace.block(Stage.MODEL, fault, "transformers", "vllm")
        return
    if not files and not subject.tokenizer_config:
        trace.step("tokenizer", looked, "no tokenizer files", "vLLM needs --tokenizer or --skip-tokenizer-init", "note")
        trace.note("the folder holds no tokenizer")
        return
    chosen, why = _class_in_transformers(subject, model_type, transformers)
    in_vllm = chosen
    if mode == "mistral":
        in_vllm = "Mistral's own tokenizer"
    elif model_type in vllm.wrong_tokenizers:
        in_vllm = f"{GENERIC}, because the published class of {model_type} is known to be wrong"
    told = by_runtime({"transformers": chosen, "vLLM": in_vllm})
    state: State = "ok"
    if "tokenizer.json" not in subject.by_name and mode != "mistral" and files:
        why = "; ".join(filter(None, [why, "there is no tokenizer.json: a slow or converted tokenizer is used"]))
        state = "note"
    if chosen.startswith(REMOTE):
        state = "warning"
        trace.note("AutoTokenizer needs trust_remote_code, the model does not", "transformers")
        if mode != "mistral" and model_type not in vllm.wrong_tokenizers:
            trace.block(Stage.MODEL, f"{vllm.title} needs --trust-remote-code for the tokenizer, {chosen}", "vllm")
    trace.step("tokenizer", looked, told, why, state)


def _mode_in_vllm(subject: Subject) -> str:
    names = [each.rpartition("/")[2] for each in subject.by_name]
    own = any(fnmatchcase(name, "tekken.json") or fnmatchcase(name, "tokenizer.model.v*") for name in names)
    return "mistral" if own and subject.consolidated() else "hf"


def _class_in_transformers(subject: Subject, model_type: str, names: Names) -> tuple[str, str]:
    config = subject.tokenizer_config
    named = config.get("tokenizer_class") or (subject.config or {}).get("tokenizer_class")
    named = named.removesuffix("Fast") if isinstance(named, str) and named not in ANY_CLASS else None
    family = (names.tokenizers.get(model_type) or "").removesuffix("Fast")
    remote = tokenizer_entry(subject)
    known = set(names.tokenizers.values())
    if remote is not None and not remote.fault and named not in known and not family:
        return f"{REMOTE}, {quoted(remote.reference)}", "needs trust_remote_code"
    if family == MISTRAL_COMMON:
        if "tekken.json" in subject.by_name:
            return MISTRAL_COMMON, "when mistral-common is installed, else " + GENERIC
        return GENERIC, f"{model_type} has no tokenizer class of its own without tekken.json"
    if named and family and named != family:
        if model_type in names.wrong_tokenizers:
            return family, f"the published class {quoted(named)} is known to be wrong for {model_type}"
        if named not in known:
            return GENERIC, f"{quoted(named)} is no tokenizer class of transformers"
        return named, f"tokenizer_config.json names it; the family's own is {family}"
    if named:
        return (named, "") if named in known else (GENERIC, f"{quoted(named)} is no tokenizer class of transformers")
    return family or GENERIC, "" if family else "the generic tokenizer, made from tokenizer.json"
