"""Step of the dtype: what the model would be loaded in, and where that comes from."""

from __future__ import annotations

from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import State, Trace, joined, shown
from hfbench.models.runtimes import rules


def read_dtype(subject: Subject, trace: Trace) -> None:
    """Tell the dtype the model would be loaded in, and where it comes from."""
    if subject.config is None:
        return
    dtype, source = _dtype(subject)
    names = trace.fates["vllm"].names
    state: State = "ok"
    whys = []
    if dtype in ("float32", "float"):
        whys.append("vLLM goes down to bfloat16 on a GPU, transformers keeps float32")
        state = "note"
    model_type = subject.config.get("model_type")
    if isinstance(model_type, str) and model_type in names.float16_refused and dtype in ("float16", "half"):
        whys.append(f"vLLM holds {model_type} unstable in float16: it takes bfloat16, and --dtype float16 is refused")
        state = "warning"
        trace.note(whys[-1], "vllm")
    trace.step(
        "dtype", "config.json: dtype, torch_dtype, then the headers", f"{dtype} ({source})", "; ".join(whys), state
    )


def _dtype(subject: Subject) -> tuple[str, str]:
    config = subject.config or {}
    for part in rules("dtypes")["parts"]:
        section = config.get(part) if part else config
        for key in ("dtype", "torch_dtype"):
            value = section.get(key) if isinstance(section, dict) else None
            if isinstance(value, str):
                return shown(value)[1:-1], f"{part}.{key}".lstrip(".")
    if subject.config_only:
        return "float32", "nothing tells it, and there are no weights to ask"
    columns, headers = subject.checkpoint.columns, rules("dtypes")["headers"]
    found = sorted({headers[each] for each in columns.dtypes if each in headers})
    if not found:
        return "float32", "nothing tells it"
    if len(found) == 1:
        return found[0], "the headers of the weights"
    common = "float64" if "float64" in found else "float32"
    return common, f"what {joined(found)} of the headers have in common"
