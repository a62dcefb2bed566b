"""The step of the tensors: whether they are those of the model that the configuration builds."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.models.problem import counted, quoted
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, Trace
from hfbench.models.tensor_fit import Fit, fit_of

FURTHER = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "num_mtp_modules")
"""Keys that count layers for predicting further tokens, stored after the model's own."""

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")

LOADABLE = ("safetensors", "safetensors-sharded")


def compare_tensors(subject: Subject, trace: Trace) -> None:
    """Hold names, layers and the vocabulary against the configuration; a model whose tensors fit gets no step.

    `check` compares every shape and tells of single tensors that are missing.
    """
    fit = _fit(subject)
    faults = list(_faults(fit)) if fit else []
    if not faults:
        return
    why = "transformers refuses other shapes, and fills what is missing with random values or drops what is too much"
    trace.step("tensors", "the headers, against config.json", faults[0], why, "error", faults=faults)
    trace.block(Stage.WEIGHTS, f"the weights are not those of config.json: {faults[0]}")


def _fit(subject: Subject) -> Fit | None:
    config = subject.config
    if config is None or subject.config_only or config.get("is_encoder_decoder"):
        return None
    quantized = any(
        section.get("quantization_config") or section.get("compression_config") for _, section in subject.sections()
    )
    checkpoint = subject.checkpoint
    whole = checkpoint.format in LOADABLE and all(each.severity != "error" for each in checkpoint.problems)
    if quantized or not whole or "hf_quant_config.json" in subject.by_name:
        return None
    telling = [values for _, values in subject.sections() if any(name in values for name in (*LAYERS, "hidden_size"))]
    return fit_of(config, telling[-1] if telling else config, checkpoint.columns)


def _faults(fit: Fit) -> Iterator[str]:
    if strange := fit.stranger():
        yield f"no tensor is called {fit.laws.named()}, but {quoted(strange)}"
        return
    said = next((fit.values[name] for name in LAYERS if type(fit.values.get(name)) is int), None)
    if said is not None and fit.laws.counted and fit.numbers:
        extra = max((value for name in FURTHER if type(value := fit.values.get(name)) is int), default=0)
        held = max(fit.numbers) + 1
        if not said <= held <= said + extra:
            yield f"the configuration counts {said:,} layers, the weights hold {held:,}"
        elif gone := sorted(set(range(said)) - fit.numbers):
            yield f"the weights hold nothing of {counted(len(gone), 'layer')}, such as number {gone[0]}"
    if (rows := fit.other_rows()) is not None:
        yield f"vocab_size is {rows[0]:,}, the embedding has {rows[1]:,} rows"


__all__ = ["compare_tensors"]
