"""What an engine is asked to be: fields of a request, and the shapes and device they come to."""

from __future__ import annotations

from typing import Protocol

from hfbench.engines.builders.base import Asked, Builder
from hfbench.errors import UsageError
from hfbench.gpu.devices import choose_device


class Request(Protocol):
    """What to build; the action engine.build declares these fields with their help and bounds."""

    @property
    def model(self) -> str: ...
    @property
    def builder(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def min_prompt(self) -> int: ...
    @property
    def max_prompt(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def attention(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def template(self) -> str: ...
    @property
    def set(self) -> tuple[str, ...]: ...
    @property
    def tp(self) -> int: ...
    @property
    def pp(self) -> int: ...
    @property
    def keep_unproven(self) -> bool: ...
    @property
    def require_signature(self) -> bool: ...
    @property
    def replace(self) -> bool: ...


def asked_of(request: Request, builder: Builder) -> Asked:
    """The request with its device; UsageError for shapes that do not fit into each other."""
    shapes = (request.min_prompt, request.max_prompt, request.context)
    if request.min_prompt > request.max_prompt:
        found = f"min_prompt {request.min_prompt} is greater than max_prompt {request.max_prompt}"
        raise UsageError(found, where="engine.build", remedy="lower min_prompt")
    if request.context <= request.max_prompt:
        found = f"a context of {shapes[2]} has no room for a token after a prompt of {shapes[1]}"
        raise UsageError(found, where="engine.build", remedy=f"give --context {shapes[1] + 1} or more")
    if builder.name != "trtllm":
        _refuse_options_of_trtllm(request)
    return Asked(
        model=request.model,
        builder=request.builder,
        batch=request.batch,
        min_prompt=request.min_prompt,
        max_prompt=request.max_prompt,
        context=request.context,
        dtype=builder.auto_dtype if request.dtype == "auto" else request.dtype,
        gpu=choose_device(request.device).gpu,
        attention=request.attention,
        threads=request.threads,
        template=request.template,
        settings=request.set,
        tp=request.tp,
        pp=request.pp,
    )


def _refuse_options_of_trtllm(request: Request) -> None:
    """UsageError for an option that only plans have: passed over, it would make another engine than was asked for."""
    given = {"template": request.template, "set": request.set, "tp": request.tp > 1, "pp": request.pp > 1}
    if names := [f"--{name}" for name, value in given.items() if value]:
        found = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} for builder trtllm, not for {request.builder}"
        raise UsageError(found, where="engine.build", remedy="leave it out, or give --builder trtllm")
