"""env: the two variables that make stock tools use a hub."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import MissingError, UsageError

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class EnvResult:
    """Lines of a POSIX shell; `token` tells where the token lies, or with --show is the token itself."""

    endpoint: str
    url: str
    token: str
    exports: tuple[str, ...]

    def lines(self) -> list[str]:
        """What `eval` takes."""
        return list(self.exports)


@action("env", result=EnvResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Env:
    """Print what makes hf, transformers, vLLM and others use a hub: eval "$(hfbench env --endpoint lab)".

    The token is named by its place, and the shell looks it up; the secret itself is printed by --show alone.
    """

    endpoint: str = param("Hub: a name of [endpoints] or an address; default HF_ENDPOINT, else the Hub", default="")
    show: bool = param("Print the token itself", default=False)

    def __post_init__(self) -> None:
        from hfbench.hub.endpoints import refuse_passwords

        refuse_passwords(self.endpoint)

    def perform(self, run: Run) -> EnvResult:
        """Name the variables. UsageError for --show in a job, which would keep it; MissingError without a token."""
        from hfbench.hub.endpoints import endpoint

        at = endpoint(self.endpoint)
        exports = [f"export HF_ENDPOINT={shlex.quote(at.url)}"]
        if not self.show:
            value = at.source.for_shell()
            exports += [f"export HF_TOKEN={value}"] if value else ["unset HF_TOKEN"]
            return EnvResult(endpoint=at.name, url=at.url, token=at.source.said, exports=tuple(exports))
        if run.directory is not None:
            raise UsageError("--show would keep the token in the job", where="env", remedy="run it without --detach")
        if (token := at.token) is None:
            remedy = "name its place under [endpoints." + at.name + "]" if not at.source.kind else "put one there"
            raise MissingError(f"there is no token{f' in {at.source.said}' * bool(at.source.kind)}", remedy=remedy)
        exports.append(f"export HF_TOKEN={shlex.quote(str(token))}")
        return EnvResult(endpoint=at.name, url=at.url, token=str(token), exports=tuple(exports))
