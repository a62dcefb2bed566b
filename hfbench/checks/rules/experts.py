"""The experts of a mixture against the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.subject import Subject
from hfbench.models.problem import quoted

PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts")
"""Names that families give the experts each token is sent to."""

_NUMBERED = re.compile(r"\d+\.[\w.]*?\bexperts\.(\d{1,5})\.")
_TOGETHER = re.compile(r"\d+\.[\w.]*?\bexperts\.(?:gate_up_proj|down_proj|gate_proj|up_proj)(?:\.weight)?\Z")


@rule("HB241", "experts-differ")
def experts_differ(subject: Subject) -> Iterator[Found]:
    """The configuration counts other experts than the weights hold, or fewer than it sends each token to.

    Why: the router chooses experts with random values, or choosing more than there are fails at the first token.
    Remedy: fetch config.json and the weights again, from one revision.
    """
    said = subject.config.experts
    if not said or not subject.raw:
        return
    for name in PER_TOKEN:
        asked = subject.text.values.get(name)
        if type(asked) is int and asked > said:
            message = f"{name} is {asked:,}, there are {said:,} experts"
            yield Found(message=message, file="config.json", evidence={"experts": said, name: asked})
    for number, (held, name) in sorted(_held(subject).items()):
        if held != said:
            message = f"the configuration counts {said:,} experts, layer {number} holds {held:,}, as of {quoted(name)}"
            evidence = {"config": said, "weights": held, "tensor": name}
            yield Found(message=message, file="config.json", evidence=evidence)
            return  # the other layers are alike


def _held(subject: Subject) -> dict[int, tuple[int, str]]:
    """The experts of each layer that has some, and one of their tensors; nothing where it is not certain."""
    fit, said = subject.fit, subject.config.layers
    if fit is None or fit.root is None or not said or not subject.complete:
        return {}
    start, columns = f"{fit.root}{fit.laws.layers}", subject.checkpoint.columns
    found: dict[int, tuple[int, str]] = {}
    for row, name in enumerate(columns.names):
        if "experts." not in name or not name.startswith(start):
            continue
        number = int(layer) if (layer := name[len(start) :].partition(".")[0]).isdecimal() else said
        if number >= said:
            continue
        below = name[len(start) :]
        if match := _NUMBERED.match(below):
            held = int(match[1]) + 1
        elif _TOGETHER.match(below) and len(shape := columns.shapes[columns.shape_ids[row]]) == 3:
            held = shape[0]
        else:
            continue
        if held > found.get(number, (0, ""))[0]:
            found[number] = (held, name)
    return found
