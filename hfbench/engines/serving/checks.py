"""What can be wrong with a serve command, one check a function; each tells what it compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hfbench.engines.runtimes.cards import Cards
from hfbench.engines.runtimes.names import known_names
from hfbench.engines.runtimes.precision import below, dtypes, judge, scheme_named
from hfbench.engines.runtimes.subject import ServedModel
from hfbench.engines.serving.asked import ServeFinding, Wanted
from hfbench.engines.serving.flags import Server
from hfbench.errors import HfbenchError
from hfbench.models.problem import counted, listed
from hfbench.text import did_you_mean
from hfbench.units import show_bytes

CODE_NEEDED = ("remote code", "trust-remote-code")
HALVES = {"half": "float16", "float": "float32"}
KV_TYPES = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "fp8": "fp8", "fp4_e2m1": "fp4", "bf16": "bfloat16"}

Check = Callable[[Server, ServedModel, Wanted, Cards], Iterator[ServeFinding]]


def check_all(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> list[ServeFinding]:
    """Every check in order."""
    return [found for check in CHECKS for found in check(server, model, wanted, cards)]


def architecture(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether the server has a model of this kind."""
    if server.runtime == "sglang":
        names = known_names("sglang")
        found = next((each for each in model.architectures if each in names.names), "")
        which = listed(list(model.architectures), 2) if model.architectures else "none is named"
        told = (
            f"SGLang {names.version} has a model for {found}" if found else f"SGLang {names.version} has none: {which}"
        )
        yield ServeFinding(
            check="architecture",
            severity="ok" if found else "error",
            found=told,
            remedy="" if found else "use a runtime that has it: hfbench runtimes MODEL",
        )
        return
    verdict = model.verdict("vllm" if server.runtime == "vllm" else "tensorrt_llm")
    by_code = model.needs_code and any(word in verdict.reason for word in CODE_NEEDED)
    if by_code:
        return  # what remote code is needed for is the next check's
    severity = "ok" if verdict.loads and not verdict.warning else "warning" if verdict.loads else "error"
    yield ServeFinding(
        check="architecture",
        severity=severity,  # type: ignore[arg-type]
        found=f"{server.title} {verdict.version}: {verdict.warning or verdict.reason}",
        remedy="" if verdict.loads else "hfbench resolve MODEL tells every step",
    )


def remote_code(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether code of the repository has to run, or would."""
    if model.needs_code and not wanted.trust_remote_code:
        yield ServeFinding(
            check="remote code",
            severity="error",
            found=f"the model needs code of its repository: {model.code}",
            remedy="read these files, then add --trust-remote-code",
        )
    elif wanted.trust_remote_code and model.code:
        needed = "needed" if model.needs_code else "not needed, and would run all the same"
        yield ServeFinding(check="remote code", severity="warning", found=f"these files run: {model.code} ({needed})")
    elif wanted.trust_remote_code:
        yield ServeFinding(
            check="remote code", severity="note", found="the repository has no code: --trust-remote-code does nothing"
        )
    else:
        yield ServeFinding(check="remote code", severity="ok", found="none is needed")


def length(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether the context asked for is one the model has."""
    context = model.context(server.context)
    if context.limit is None or context.origin == "assumed":
        severity = "warning" if wanted.max_len is None else "note"
        found = "no key of the configuration tells the context"
        yield ServeFinding(check="length", severity=severity, found=found, remedy="give --max-len")  # type: ignore[arg-type]
        return
    limit = context.limit
    how = f"{context.key} {context.length:,}" if context.length else context.key
    how += "".join(f", {why}" for why in context.whys)
    if wanted.max_len is None or wanted.max_len <= limit:
        asked = f"{wanted.max_len:,} of " if wanted.max_len else ""
        yield ServeFinding(check="length", severity="ok", found=f"{asked}{limit:,} tokens ({how})")
        return
    stretched = context.length is not None and wanted.max_len <= context.length
    longer = server.flags.get("longer")
    way = f", or set {longer.env} if you trust it" if longer and not stretched else ""
    yield ServeFinding(
        check="length",
        severity="note" if stretched else "error",
        found=f"{wanted.max_len:,} tokens are more than the {limit:,} of the model ({how})",
        remedy="" if stretched else f"give --max-len of at most {limit}{way}",
    )


def number_type(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether the server computes in the type, and the card knows it."""
    dtype = HALVES.get(wanted.dtype, wanted.dtype) or model.dtype
    dtype = model.dtype if dtype == "auto" else dtype
    names = model.verdict("vllm")
    if server.runtime == "vllm" and dtype == "float16" and _refuses_float16(model):
        yield ServeFinding(
            check="dtype",
            severity="error" if wanted.dtype else "note",
            found=f"vLLM {names.version} holds {model.config.get('model_type')} unstable in float16",
            remedy="give --dtype bfloat16",
        )
        return
    told = dtypes().get(dtype)
    if told is not None and cards.capability and below(cards.capability, told.native):
        refused = server.runtime in told.refuse
        found = f"{dtype} needs compute capability {told.native}, {cards.name} has {cards.capability}"
        found += " (from memory)" if told.unverified else ""
        remedy = f"give --dtype {told.instead}" if refused else ""
        yield ServeFinding(check="dtype", severity="error" if refused else "warning", found=found, remedy=remedy)
        return
    where = "as asked" if wanted.dtype and wanted.dtype != "auto" else "as the configuration says"
    yield ServeFinding(check="dtype", severity="ok", found=f"{dtype}, {where}")


def quantization(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether the packing of the weights, or the one asked for, runs in this server on this card."""
    told = model.quantization
    method = told.method if told else None
    if wanted.quantization and method and wanted.quantization != method and not _kin(wanted.quantization, method):
        yield ServeFinding(
            check="quantization",
            severity="error",
            found=f"the weights are packed by {method}, and --quantization says {wanted.quantization}",
            remedy="leave --quantization away: the server reads it from the model",
        )
        return
    scheme = scheme_named(wanted.quantization) if wanted.quantization else model.scheme
    if scheme is None:
        if told or wanted.quantization:
            named = wanted.quantization or method or "no method named"
            found = f"whether {named} runs on {cards.name} is not in the table"
            yield ServeFinding(check="quantization", severity="note", found=found)
        return
    ran = judge(scheme, server.runtime, cards.capability)
    severity = {"native": "ok", "slower": "note", "no": "error", "unknown": "note"}[ran.status]
    marks = ", ".join(filter(None, [ran.source, "unverified" if ran.unverified else ""]))
    found = f"{ran.why} ({marks})" if marks else ran.why
    remedy = "use another card, or a checkpoint packed otherwise" if ran.status == "no" else ""
    yield ServeFinding(check="quantization", severity=severity, found=found, remedy=remedy)  # type: ignore[arg-type]


def ranks(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether heads and layers divide, and whether there are as many GPUs."""
    world = wanted.tp * wanted.pp
    fault, remedy = _indivisible(model, wanted)
    if fault:
        yield ServeFinding(check="parallelism", severity="error", found=fault, remedy=remedy)
        return
    if cards.present == 0:
        why = f"there is no GPU here to compare with ({cards.why})"
        yield ServeFinding(check="parallelism", severity="note", found=why, remedy="name one with --gpu")
        return
    if cards.present is not None and world > cards.present:
        yield ServeFinding(
            check="parallelism",
            severity="error",
            found=f"tp {wanted.tp} x pp {wanted.pp} take {world} GPUs, this machine has {cards.present}",
            remedy="use fewer ranks, or name the GPU of another machine with --gpu",
        )
        return
    heads = f"{model.heads} heads, {model.kv_heads} of keys" if model.heads else "heads are not told"
    shared = model.kv_heads and wanted.tp > model.kv_heads
    note = f"; each KV head is kept {wanted.tp // (model.kv_heads or 1)} times" if shared else ""
    severity = "note" if shared or not model.heads else "ok"
    yield ServeFinding(check="parallelism", severity=severity, found=f"tp {wanted.tp}, pp {wanted.pp}: {heads}{note}")  # type: ignore[arg-type]


def memory(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether weights and one sequence of that length fit the card, as `hfbench fit` counts them."""
    from hfbench.estimate.report import Request, fit

    if cards.device is None or _indivisible(model, wanted)[0]:
        return
    request = Request(
        context=wanted.max_len or model.context(server.context).told,
        tp=wanted.tp,
        pp=wanted.pp,
        ep=wanted.ep,
        kv_dtype=KV_TYPES.get(wanted.kv_dtype),
        runtime=server.estimate,
    )
    try:
        report = fit(str(model.folder), request, device=cards.device)
    except HfbenchError as error:
        yield ServeFinding(check="memory", severity="note", found=f"not counted: {error.found}")
        return
    if report.total_bytes is None or report.device is None:
        yield ServeFinding(check="memory", severity="note", found="not counted: weights or cache are not known")
        return
    told = f"{show_bytes(report.total_bytes)} on each of {report.device.needed} x {cards.name}"
    told += f", {show_bytes(report.device.usable_bytes)} usable, one sequence of {report.context:,} tokens"
    told += "" if server.estimate == server.runtime else "; counted with the overheads of vLLM"
    if report.fits is False:
        yield ServeFinding(
            check="memory",
            severity="error",
            found=f"does not fit: {told}; {report.limiting} is in the way",
            remedy=_smaller(report.largest_context, report.limiting),
        )
        return
    yield ServeFinding(check="memory", severity="ok", found=f"fits: {told}")


def choices(server: Server, model: ServedModel, wanted: Wanted, cards: Cards) -> Iterator[ServeFinding]:
    """Whether the server takes the words that were given, and has such an option at all."""
    for key in ("dtype", "quantization", "kv_dtype", "memory_fraction", "max_seqs", "ep"):
        value = getattr(wanted, key)
        if value in ("", None) or (key == "ep" and value == 1):
            continue
        option, name = server.flags.get(key), f"--{key.replace('_', '-')}"
        if option is None or option.absent:
            found = option.absent if option else f"{server.title} has no option in this table for {name}"
            yield ServeFinding(check="options", severity="error", found=found, remedy=f"leave {name} away")
        elif option.choices and value not in option.choices:
            near = did_you_mean(str(value), option.choices)
            found = f"{option.flag} takes {', '.join(option.choices)}, not {value}"
            yield ServeFinding(check="options", severity="error", found=found, remedy=near)
        elif option.unverified:
            found = f"{option.flag} is from memory, not read in {server.title} {server.version}"
            yield ServeFinding(check="options", severity="note", found=found)


CHECKS: tuple[Check, ...] = (choices, architecture, remote_code, length, number_type, quantization, ranks, memory)


def _indivisible(model: ServedModel, wanted: Wanted) -> tuple[str, str]:
    """(what does not divide, remedy), both empty when all does."""
    heads, kv, layers = model.heads, model.kv_heads, model.layers
    if heads and heads % wanted.tp:
        fitting = [str(each) for each in range(1, min(heads, 64) + 1) if heads % each == 0]
        return f"{heads} heads do not divide by tp {wanted.tp}", f"use --tp {' or '.join(fitting[:6])}"
    if kv and wanted.tp > 1 and kv % wanted.tp and wanted.tp % kv:
        return f"{kv} KV heads do not divide by tp {wanted.tp}", f"use a --tp that divides {kv}, or a multiple of it"
    if layers and wanted.pp > layers:
        return f"{counted(layers, 'layer')} cannot be {wanted.pp} stages", f"use --pp of at most {layers}"
    return "", ""


def _refuses_float16(model: ServedModel) -> bool:
    from hfbench.models.runtimes import known

    return model.config.get("model_type") in known("vllm").float16_refused


def _kin(one: str, other: str) -> bool:
    """Names of one scheme, such as awq and awq_marlin."""
    scheme = scheme_named(one)
    return scheme is not None and scheme is scheme_named(other)


def _smaller(context: int | None, limiting: str | None) -> str:
    if context and limiting != "weights":
        return f"give --max-len of at most {context}, or more ranks with --tp"
    return "use more ranks with --tp, a larger card, or a checkpoint packed smaller"
