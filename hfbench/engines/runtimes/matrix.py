"""A model against every runtime: whether it is carried out, by which table, on this card, and what starts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from hfbench.engines.runtimes.cards import Cards
from hfbench.engines.runtimes.names import Listed, known_names
from hfbench.engines.runtimes.precision import Ran, below, dtypes, judge
from hfbench.engines.runtimes.row import Row, State
from hfbench.engines.runtimes.subject import ServedModel
from hfbench.models.problem import listed
from hfbench.models.runtimes import TITLES, Runtime

SERVES = {"vllm": "vllm", "sglang": "sglang", "tensorrt_llm": "trtllm"}
"""Runtimes with a serve command, and how `serve.command` calls them."""

GENERATING = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""How names of architectures end that make text, which is all that hfbench times and builds."""
EXPORT_NEEDS = {"aoti": ("torch",), "onnx": ("onnx", "onnxscript", "onnxruntime"), "compile": ("torch",)}


def rows(model: ServedModel, cards: Cards) -> list[Row]:
    """Every runtime in the order of the table, judged for one kind of card."""
    return [make(model, cards) for make in ROWS]


def _transformers(model: ServedModel, cards: Cards) -> Row:
    return _resolved(model, cards, "transformers", TITLES["transformers"], "bench.generate", {"mode": "eager"})


def _torch_compile(model: ServedModel, cards: Cards) -> Row:
    return _through_transformers(
        model,
        cards,
        "torch_compile",
        "torch.compile",
        "bench.generate",
        {"mode": "compile"},
        why="compiles what transformers loads",
    )


def _aoti(model: ServedModel, cards: Cards) -> Row:
    return _exported(model, cards, "aoti", "AOTInductor")


def _onnx(model: ServedModel, cards: Cards) -> Row:
    return _exported(model, Cards(), "onnx", "ONNX Runtime")  # hfbench runs it on the CPU


def _vllm(model: ServedModel, cards: Cards) -> Row:
    return _served(_resolved(model, cards, "vllm", TITLES["vllm"], "", {}), model)


def _sglang(model: ServedModel, cards: Cards) -> Row:
    return _served(_by_names(model, cards, "sglang", "SGLang", "sglang", "has a model of its own for"), model)


def _plans(model: ServedModel, cards: Cards) -> Row:
    row = _by_names(model, cards, "trtllm_plans", "TensorRT-LLM plans", "trtllm_plans", "its plan backend has")
    note = "the plan backend ends with TensorRT-LLM 1.2.1; later ones have the PyTorch backend alone"
    row = replace(row, notes=(*row.notes, note))
    if row.state == "error":
        return row
    values = {"model": str(model.folder), "builder": "trtllm"}
    return replace(row, launch="job", action="engine.build", values=values)


def _trtllm(model: ServedModel, cards: Cards) -> Row:
    return _served(_resolved(model, cards, "tensorrt_llm", "TensorRT-LLM PyTorch", "", {}), model)


def _llama_cpp(model: ServedModel, cards: Cards) -> Row:
    if any(each.name.endswith(".gguf") for each in model.subject.files):
        return Row(
            runtime="llama_cpp", title="llama.cpp", state="ok", reason="holds a GGUF file, which it reads as it stands"
        )
    row = _by_names(model, Cards(), "llama_cpp", "llama.cpp", "llama_cpp", "its converter to GGUF knows")
    if row.state == "ok" and model.quantization is not None:
        method = model.quantization.method or "of no method named"
        why = f"{row.reason}; packed weights ({method}) are unpacked, where the converter knows them"
        return replace(row, state="warning", reason=why)
    return row


def _megatron(model: ServedModel, cards: Cards) -> Row:
    return _resolved(model, cards, "megatron_core", TITLES["megatron_core"], "", {})


ROWS: tuple[Callable[[ServedModel, Cards], Row], ...] = (
    _transformers,
    _torch_compile,
    _aoti,
    _onnx,
    _vllm,
    _sglang,
    _plans,
    _trtllm,
    _llama_cpp,
    _megatron,
)


def _resolved(
    model: ServedModel, cards: Cards, runtime: Runtime, title: str, action: str, values: dict[str, str]
) -> Row:
    """A runtime that resolving judges."""
    verdict = model.verdict(runtime)
    state: State = "error" if not verdict.loads else "warning" if verdict.warning else "ok"
    reason = verdict.warning or verdict.reason
    ran = None if runtime == "megatron_core" else precision(model, runtime, cards)
    state, reason = _with_precision(state, reason, ran)
    launchable = state in ("ok", "warning") and bool(action) and generates(model)
    return Row(
        runtime=runtime,
        title=title,
        state=state,
        reason=reason,
        version=verdict.version,
        rules="installed" if verdict.installed else "shipped",
        remote_code=model.needs_code and runtime in ("transformers", "vllm"),
        precision=_told(ran),
        notes=verdict.notes,
        launch="job" if launchable else "",
        action=action if launchable else "",
        values={"model": str(model.folder), **values} if launchable else {},
    )


def _through_transformers(
    model: ServedModel, cards: Cards, runtime: str, title: str, action: str, values: dict[str, str], *, why: str
) -> Row:
    """What runs a model that transformers loads."""
    base = _resolved(model, cards, "transformers", title, action, values)
    reason = {"ok": why, "error": "transformers does not load it"}.get(base.state, base.reason)
    return replace(base, runtime=runtime, reason=reason)


def _exported(model: ServedModel, cards: Cards, builder: str, title: str) -> Row:
    """What hfbench's own builders export from a model that transformers loads."""
    row = _through_transformers(
        model,
        cards,
        builder,
        title,
        "engine.build",
        {"builder": builder},
        why="exports a prefill and a decode step of what transformers loads",
    )
    if row.state in ("ok", "warning") and not generates(model):
        which = listed(list(model.architectures), 2) if model.architectures else "none is named"
        why = f"hfbench builds engines of architectures that make text, and this is another: {which}"
        return replace(row, state="error", reason=why)
    if row.state in ("ok", "warning") and model.quantization is not None:
        why = f"{title} exports plain weights, and these are packed ({model.quantization.method or 'method not named'})"
        return replace(row, state="error", reason=why, launch="", action="", values={})
    lacking = [name for name in EXPORT_NEEDS[builder] if find_spec(name) is None]
    if lacking and row.state == "ok":
        return replace(row, state="warning", reason=f"{row.reason}; here {', '.join(lacking)} is missing")
    return row


def _by_names(model: ServedModel, cards: Cards, runtime: str, title: str, table: Listed, does: str) -> Row:
    """A runtime judged by the architectures that a table or its installed package names."""
    names = known_names(table)
    row = Row(
        runtime=runtime,
        title=title,
        state="ok",
        reason="",
        version=names.version,
        rules="installed" if names.installed else f"shipped, read {names.read}",
        notes=(names.source,),
    )
    found = next((each for each in model.architectures if each in names.names), None)
    if found is None:
        which = listed(list(model.architectures), 2) if model.architectures else "none is named"
        return replace(row, state="error", reason=f"its table has no such architecture: {which}")
    if fault := _files_fault(model):
        return replace(row, state="error", reason=fault)
    ran = precision(model, runtime, cards)
    state, reason = _with_precision("ok", f"{does} {found}", ran)
    notes = (*row.notes, "judged by the name of the architecture alone")
    told = replace(row, state=state, reason=reason, notes=notes)
    return replace(told, precision=_told(ran), remote_code=model.needs_code)


def generates(model: ServedModel) -> bool:
    """Whether an architecture is named that makes text."""
    return any(name.endswith(GENERATING) for name in model.architectures)


def _files_fault(model: ServedModel) -> str:
    """What is wrong with the files, where transformers and vLLM both know the class and neither loads it."""
    both = [model.verdict("vllm"), model.verdict("transformers")]
    return both[0].reason if all(each.model_class and not each.loads for each in both) else ""


def precision(model: ServedModel, runtime: str, cards: Cards) -> Ran | None:
    """What a card makes of the model's numbers in a runtime; None where there is nothing to say."""
    if model.quantization is not None:
        if model.scheme is None:
            method = model.quantization.method or "no method named"
            return Ran(status="unknown", why=f"the table does not list the quantisation ({method})")
        return judge(model.scheme, runtime, cards.capability)
    dtype = dtypes().get(model.dtype)
    if dtype is None or not cards.capability or not below(cards.capability, dtype.native):
        return None
    why = f"{dtype.name} from compute capability {dtype.native}, this card is {cards.capability}"
    why += f": give --dtype {dtype.instead}" if runtime in dtype.refuse else ": it is emulated and slow"
    return Ran(status="slower", why=why, source="from memory", unverified=dtype.unverified)


def _with_precision(state: State, reason: str, ran: Ran | None) -> tuple[State, str]:
    if ran is None or state == "error":
        return state, reason
    if ran.status == "no":
        return "error", ran.why
    if ran.status == "slower":
        return "warning", f"{reason}; {ran.why}"
    return state, reason


def _told(ran: Ran | None) -> str:
    if ran is None:
        return ""
    marks = ", ".join(filter(None, [ran.source, "unverified" if ran.unverified else ""]))
    return f"{ran.why} ({marks})" if marks else ran.why


def _served(row: Row, model: ServedModel) -> Row:
    """With the command that serves it, unless it cannot be."""
    if row.state == "error" and not row.remote_code:
        return row
    values = {"model": model.given, "runtime": SERVES[row.runtime]}
    return replace(row, launch="command", action="serve.command", values=values)
