"""Step of the context length, as vLLM derives it by default."""

from __future__ import annotations

from hfbench.models.context import context_of
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import State, Trace, joined
from hfbench.models.runtimes import rules


def read_context(subject: Subject, trace: Trace) -> None:
    """Tell the longest context vLLM allows by default, and how it comes about."""
    if subject.config is None:
        return
    context = context_of(subject.config, "vllm")
    prefix = context.key.rpartition(".")[0]
    names = joined(list(rules("context")["keys"][:3]), "or")
    looked = f"config.json: {prefix}{'.' if prefix else ''}{names} and their like"
    if context.length is None or context.limit is None:
        found = f"no key tells it; vLLM assumes {rules('context')['assumed']:,}"
        trace.step("context", looked, found, "give --max-model-len", "warning")
        return
    whys = list(context.whys)
    limit = subject.tokenizer_config.get("model_max_length")
    if isinstance(limit, (int, float)) and not isinstance(limit, bool) and 0 < limit < context.limit:
        whys.append(f"the tokenizer says {limit:,}; vLLM heeds that for pooling models only, others take the smaller")
    state: State = "note" if whys else "ok"
    by = f", the default of {context.by}" if context.by else ""
    found = f"{context.limit:,} tokens ({context.key} {context.length:,}{by})"
    trace.step("context", looked, found, "; ".join(whys), state)
