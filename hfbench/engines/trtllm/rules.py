"""What can be wrong with a plan before it is built, one rule a function; each compares several options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from hfbench.engines.runtimes.cards import Cards
from hfbench.engines.runtimes.names import known_names
from hfbench.engines.runtimes.precision import below, dtypes, judge, scheme_named
from hfbench.engines.runtimes.subject import ServedModel
from hfbench.engines.trtllm.flags import conversion
from hfbench.engines.trtllm.recipe import Recipe
from hfbench.models.problem import counted, listed

PLANS = "trtllm_plans"
FP8_GEMMS = ("gemm_swiglu_plugin", "low_latency_gemm_plugin", "low_latency_gemm_swiglu_plugin")
HOPPER = "9.0"


@dataclass(frozen=True, kw_only=True)
class PlanFault:
    """One finding: a rule, a sentence and what to do. An `error` stops the build before it starts."""

    rule: str
    severity: Literal["error", "warning"]
    found: str
    remedy: str = ""


Rule = Callable[[Recipe, ServedModel, Cards], Iterator[PlanFault]]


def judge_plan(recipe: Recipe, model: ServedModel, cards: Cards) -> list[PlanFault]:
    """Every fault, errors first."""
    found = [each for rule in RULES for each in rule(recipe, model, cards)]
    return sorted(found, key=lambda each: each.severity)


def architecture(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """The plan backend has models of its own, fewer than the PyTorch backend."""
    names = known_names(PLANS)
    if not any(each in names.names for each in model.architectures):
        which = listed(list(model.architectures), 2) if model.architectures else "none is named"
        yield PlanFault(
            rule="architecture",
            severity="error",
            found=f"TensorRT-LLM's plan backend ({names.version}) has no model for {which}",
            remedy="serve it with the PyTorch backend: hfbench serve command MODEL --runtime trtllm",
        )


def length(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """A sequence is no longer than what the model was trained for, after RoPE scaling."""
    context, asked = model.context("vllm"), _integer(recipe, "max_seq_len")
    limit = max(filter(None, (context.limit, context.length)), default=None) if context.told is not None else None
    if limit is not None and asked > limit:
        yield PlanFault(
            rule="length",
            severity="error",
            found=f"max_seq_len {asked:,} is more than the {limit:,} tokens of the model ({context.key})",
            remedy=f"give --context of at most {limit}",
        )
    if _integer(recipe, "max_input_len") > asked:
        found = f"max_input_len {_integer(recipe, 'max_input_len'):,} is more than max_seq_len {asked:,}"
        yield PlanFault(rule="length", severity="error", found=found, remedy="prompts are part of the sequence")


def tokens(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """A pass holds at least one token of each sequence, and whole prompts where they are not cut."""
    most, batch = _integer(recipe, "max_num_tokens"), _integer(recipe, "max_batch_size")
    prompt = _integer(recipe, "max_input_len")
    if most < batch:
        found = f"max_num_tokens {most:,} is less than max_batch_size {batch:,}"
        yield PlanFault(rule="tokens", severity="error", found=found, remedy=f"give --set max_num_tokens={batch}")
    if most < prompt and recipe.value("use_paged_context_fmha") == "disable":
        found = f"max_num_tokens {most:,} is less than a prompt of {prompt:,}, and prompts are not cut"
        remedy = f"give --set max_num_tokens={prompt}, or --set use_paged_context_fmha=enable"
        yield PlanFault(rule="tokens", severity="error", found=found, remedy=remedy)
    usual = recipe.value("opt_num_tokens")
    if isinstance(usual, int) and usual > most:
        found = f"opt_num_tokens {usual:,} is more than max_num_tokens {most:,}"
        yield PlanFault(rule="tokens", severity="error", found=found, remedy="leave opt_num_tokens away")
    if recipe.value("remove_input_padding") == "disable" and _given(recipe, "max_num_tokens"):
        found = "max_num_tokens has no effect with remove_input_padding=disable"
        yield PlanFault(rule="tokens", severity="warning", found=found)


def ranks(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """tp x pp processes, a GPU each; heads and layers divide among them."""
    tp, pp, world = recipe.tp, recipe.pp, recipe.world
    if cards.present is not None and cards.present < world:
        here = f"{cards.present} here" + (f" ({cards.why})" if cards.why and not cards.present else "")
        found = f"tp {tp} x pp {pp} take {world} GPUs, there are {here}"
        yield PlanFault(rule="ranks", severity="error", found=found, remedy="use fewer ranks")
    if model.heads and model.heads % tp:
        fitting = [str(each) for each in range(1, min(64, model.heads) + 1) if model.heads % each == 0]
        found = f"{model.heads} heads do not divide by tp {tp}"
        yield PlanFault(rule="ranks", severity="error", found=found, remedy=f"use --tp {' or '.join(fitting[:6])}")
    elif model.kv_heads and model.kv_heads % tp and tp % model.kv_heads:
        found = f"{model.kv_heads} KV heads do not divide by tp {tp}"
        yield PlanFault(rule="ranks", severity="error", found=found, remedy=f"use a --tp that divides {model.kv_heads}")
    if model.layers and pp > model.layers:
        found = f"{counted(model.layers, 'layer')} cannot be {pp} stages"
        yield PlanFault(rule="ranks", severity="error", found=found, remedy=f"use --pp of at most {model.layers}")
    elif model.layers and model.layers % pp:
        found = f"{counted(model.layers, 'layer')} do not divide by pp {pp}: stages differ in length"
        yield PlanFault(rule="ranks", severity="warning", found=found)
    workers = _integer(recipe, "workers")
    if workers > world:
        found = f"workers {workers} are more than the {world} ranks to build"
        yield PlanFault(rule="ranks", severity="error", found=found, remedy=f"give --set workers={world}")


def number_types(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """The card computes in the dtype, and plug-ins compute in the same."""
    dtype = _dtype(recipe, model)
    told = dtypes().get(dtype)
    if told and cards.capability and below(cards.capability, told.native):
        found = f"{dtype} needs compute capability {told.native}, {cards.name} has {cards.capability}"
        yield PlanFault(
            rule="dtype", severity="error", found=found, remedy=f"use --dtype or a template in {told.instead}"
        )
    for plugin in ("gemm_plugin", "gpt_attention_plugin", "moe_plugin", "lora_plugin"):
        asked = recipe.value(plugin)
        if asked in ("float16", "bfloat16", "float32") and dtype in dtypes() and asked != dtype:
            found = f"{plugin} is {asked}, and the model computes in {dtype}"
            yield PlanFault(rule="dtype", severity="error", found=found, remedy=f"give --set {plugin}=auto")


def quantisation(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """The scheme runs on the card, plug-ins of a packing have weights of it, and nothing is packed twice."""
    name = recipe.template.quantisation
    scheme = scheme_named(name) if name else model.scheme
    if scheme is not None:
        ran = judge(scheme, PLANS, cards.capability)
        if ran.status == "no":
            remedy = "use another template, or a card that has it"
            yield PlanFault(rule="quantisation", severity="error", found=f"{ran.why} ({ran.source})", remedy=remedy)
    if name and model.quantization is not None:
        found = (
            f"the weights are packed already ({model.quantization.method}), and {recipe.template.name} would pack them"
        )
        remedy = "use a dense template, or the model as it was before"
        yield PlanFault(rule="quantisation", severity="error", found=found, remedy=remedy)
    packed = scheme.name if scheme else ""
    gemm = recipe.value("gemm_plugin")
    if gemm in ("fp8", "nvfp4") and packed != gemm:
        found = f"gemm_plugin is {gemm}, and the weights are {packed or 'not packed'}"
        yield PlanFault(rule="quantisation", severity="error", found=found, remedy="give --set gemm_plugin=auto")
    for plugin in FP8_GEMMS:
        if recipe.value(plugin) != "fp8":
            continue
        if packed != "fp8":
            found = f"{plugin} is fp8, and the weights are {packed or 'not packed'}"
            yield PlanFault(rule="quantisation", severity="error", found=found, remedy=f"give --set {plugin}=disable")
        elif cards.capability and below(cards.capability, HOPPER):
            found = f"{plugin}=fp8 is for compute capability {HOPPER}, this card has {cards.capability} (from memory)"
            yield PlanFault(rule="quantisation", severity="warning", found=found)


def caches(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """Options of the KV cache that exclude each other."""
    paged = recipe.value("kv_cache_type", "paged") == "paged"
    if not paged and _given(recipe, "use_paged_context_fmha") and recipe.value("use_paged_context_fmha") == "enable":
        kind = recipe.value("kv_cache_type")
        found = f"use_paged_context_fmha needs a paged cache, kv_cache_type is {kind} (from memory)"
        yield PlanFault(rule="cache", severity="error", found=found, remedy="give --set kv_cache_type=paged")
    size = _integer(recipe, "tokens_per_block")
    if size & (size - 1):
        found = f"tokens_per_block is {size}, not a power of two"
        yield PlanFault(rule="cache", severity="error", found=found, remedy="give 32, 64 or 128")
    if recipe.value("streamingllm") == "enable":
        found = "streamingllm=enable is parsed and then refused by the build: it is no longer supported"
        yield PlanFault(rule="cache", severity="error", found=found, remedy="leave streamingllm away")


def speculation(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """Draft tokens and a way to make them belong together."""
    mode, drafts = recipe.value("speculative_decoding_mode"), _integer(recipe, "max_draft_len")
    if mode and not drafts and mode != "lookahead_decoding":
        found = f"speculative_decoding_mode is {mode}, and max_draft_len is 0"
        yield PlanFault(rule="speculation", severity="error", found=found, remedy="give --set max_draft_len=N")
    if drafts and not mode:
        found = f"max_draft_len is {drafts}, and no speculative_decoding_mode is given"
        yield PlanFault(
            rule="speculation", severity="error", found=found, remedy="give --set speculative_decoding_mode="
        )


def adapters(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """LoRA weights need their plug-in."""
    if (recipe.value("lora_dir") or recipe.value("lora_target_modules")) and recipe.value("lora_plugin") == "disable":
        found = "LoRA is asked for, and lora_plugin is disabled"
        yield PlanFault(rule="lora", severity="error", found=found, remedy="give --set lora_plugin=auto")


def calibration(recipe: Recipe, model: ServedModel, cards: Cards) -> Iterator[PlanFault]:
    """Conversions that calibrate fetch their texts from the Hub unless a folder is named."""
    tool = recipe.template.tool
    by_tool = bool(conversion()["tools"][tool].get("calibrates")) and recipe.converts("qformat") != "full_prec"
    calibrates = by_tool or bool(recipe.converts("int8_kv_cache")) or recipe.converts("smoothquant") is not None
    if calibrates and not recipe.converts("calib_dataset"):
        yield PlanFault(
            rule="calibration",
            severity="warning",
            found="the conversion fetches texts for calibration from the Hub (cnn_dailymail)",
            remedy="give --set convert.calib_dataset=FOLDER to use your own",
        )


RULES: tuple[Rule, ...] = (
    architecture, length, tokens, ranks, number_types, quantisation, caches, speculation, adapters, calibration,
)  # fmt: skip


def _dtype(recipe: Recipe, model: ServedModel) -> str:
    """What the model computes in: a conversion with `auto` takes float32 down to float16."""
    dtype = recipe.dtype if recipe.dtype != "auto" else model.dtype
    return "float16" if recipe.dtype == "auto" and dtype == "float32" else dtype


def _integer(recipe: Recipe, flag: str) -> int:
    value = recipe.value(flag)
    return value if isinstance(value, int) else 0


def _given(recipe: Recipe, flag: str) -> bool:
    return any(each.flag == flag for each in recipe.build)
