"""serve.command: the command that serves a model with vLLM, SGLang or TensorRT-LLM, checked before it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.serving.asked import ServeFinding
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

SIGNS = {"ok": "ok", "note": "~", "warning": "!", "error": "x"}
LABEL = 13
MOST_LINES = 6


@dataclass(frozen=True, kw_only=True)
class ServeCommandResult:
    """The command, empty when it is refused, and what was found; `failed` when it cannot work.

    `argv` are the words all the same, so that a refused command can be looked at. `read` is the day on which the
    flags were read in `source`, for `version`.
    """

    model: str
    runtime: str
    command: str
    argv: tuple[str, ...]
    findings: tuple[ServeFinding, ...]
    gpu: str
    capability: str
    version: str
    read: str
    source: str
    failed: bool

    @property
    def headline(self) -> str:
        """The command, or the first reason why there is none."""
        if self.command:
            return self.command
        return next(_sentence(each) for each in self.findings if each.severity == "error")

    def lines(self) -> list[str]:
        """Findings, then the command alone on its line: it is never wrapped, to be copied whole."""
        errors = sum(each.severity == "error" for each in self.findings)
        ends = self.command or f"no command: {counted(errors, 'finding')} against it"
        origin = f"flags of {self.runtime} {self.version}, read {self.read} in {self.source}"
        return [cut(self.model), *_told(self.findings), "", *paragraph(origin, 0), "", ends]


@action("serve.command", result=ServeCommandResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class ServeCommand:
    """Compose the command that serves a model, and check it: length, dtype, ranks, code, quantisation, memory."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    runtime: Literal["vllm", "sglang", "trtllm"] = param("Server to compose for", default="vllm")
    tp: int = param("Tensor-parallel ranks", default=1, ge=1, le=1024)
    pp: int = param("Pipeline stages", default=1, ge=1, le=1024)
    ep: int = param("Expert-parallel ranks", default=1, ge=1, le=4096)
    max_len: int | None = param("Longest sequence; default that of the model", default=None, ge=1, unit="token")
    dtype: str = param("Type of the weights as the server names it; default auto", default="")
    quantization: str = param("Method as the server names it; default as the model says", default="")
    kv_dtype: str = param("Type of the KV cache as the server names it", default="")
    trust_remote_code: bool = param("Let code of the repository run", default=False)
    memory_fraction: float | None = param("Share of the card's memory the server may take", default=None, ge=0.05, le=1)
    max_seqs: int | None = param("Most sequences at once", default=None, ge=1, le=2**20)
    host: str = param("Address to listen on; default the server's", default="")
    port: int | None = param("Port to listen on; default the server's", default=None, ge=1, le=65535)
    gpu: str | None = param("GPU by name; default those of this machine", default=None)
    capability: str | None = param("Compute capability, such as 8.9, in place of the card's", default=None)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> ServeCommandResult:
        """Read the model's headers and configuration, check and compose. NotFound when there is no model."""
        from hfbench.actions.runtimes import cards_of
        from hfbench.engines.runtimes.subject import read_served
        from hfbench.engines.serving.asked import Wanted
        from hfbench.engines.serving.compose import compose

        cards = cards_of(self.gpu, self.capability)
        model = read_served(self.model, cache_dir=self.cache_dir)
        wanted = Wanted(**{field.name: getattr(self, field.name) for field in fields(Wanted)})
        served = compose(self.runtime, model, wanted, cards)
        return ServeCommandResult(
            model=model.resolution.model,
            runtime=served.server.title,
            command=served.command,
            argv=served.argv,
            findings=served.findings,
            gpu=cards.name,
            capability=cards.capability,
            version=served.server.version,
            read=served.server.read,
            source=served.server.source,
            failed=not served.works,
        )


def _told(findings: tuple[ServeFinding, ...]) -> Iterator[str]:
    for each in findings:
        head = f"{SIGNS[each.severity]:<2} {each.check:<{LABEL}}"
        for number, line in enumerate(paragraph(_sentence(each), len(head), most=MOST_LINES)):
            yield f"{' ' * len(head) if number else head}{line}".rstrip()


def _sentence(finding: ServeFinding) -> str:
    return f"{finding.found}: {finding.remedy}" if finding.remedy else finding.found
