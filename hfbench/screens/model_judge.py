"""What the actions `resolve` and `check` say of a model, performed beside the screen in a child process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError, Interrupted

if TYPE_CHECKING:
    from hfbench.actions.check import CheckResult
    from hfbench.actions.resolve import ResolveResult
    from hfbench.actions.rule import RuleResult
    from hfbench.actions.runtimes import RuntimesResult


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What is known so far; `under_way` until the last answer came."""

    resolution: ResolveResult | None = None
    matrix: RuntimesResult | None = None
    """Every runtime on this machine's card; None too for a reference that leads nowhere."""
    check: CheckResult | None = None
    rules: Mapping[str, RuleResult] = field(default_factory=dict)
    """The rules of the findings by id, for whoever wants one explained."""
    under_way: bool = True
    troubles: tuple[HfbenchError, ...] = ()
    """Why an answer did not come."""


Show = Callable[[Judgement], None]


def judge_model(reference: str, cache_dir: str | None, show: Show, stopped: Callable[[], bool]) -> None:
    """Show ever fuller judgements; the last one has `under_way` False. Ends the child once `stopped` says so."""
    from hfbench.actions.aside import Aside

    values: dict[str, object] = {"model": reference}
    values |= {"cache_dir": cache_dir} if cache_dir else {}
    judgement = Judgement()
    with Aside() as aside:
        for name, field_name in (("resolve", "resolution"), ("runtimes", "matrix"), ("check", "check")):
            if name == "runtimes" and not (judgement.resolution and judgement.resolution.folder):
                continue  # resolving told already why there is nothing to judge
            try:
                result = aside.ask(name, values, stopped)
            except Interrupted:
                return
            except HfbenchError as error:
                judgement = replace(judgement, troubles=(*judgement.troubles, error))
            else:
                judgement = replace(judgement, **{field_name: result})
            show(judgement)
        rules: dict[str, RuleResult] = {}
        for id in dict.fromkeys(each.id for each in judgement.check.findings) if judgement.check else ():
            try:
                rules[id] = aside.ask("rule", {"rule": id}, stopped)
            except Interrupted:
                return
            except HfbenchError:
                continue  # a problem that no rule is declared for has no page
    show(replace(judgement, rules=rules, under_way=False))
