"""The shape of a script: its keys, steps and reserved arguments, read from the tree without knowing any action."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hfbench.scripts.errors import START, Code, Problems, Span
from hfbench.scripts.templates import NAME
from hfbench.scripts.tree import Entry, Listing, Node, Scalar, Table, described

VERSION = 1
TOP_KEYS = ("hfbench", "name", "vars", "matrix", "steps")
STEP_KEYS = ("expect", "fails", "on_fail")
RESERVED = ("save_as", "timeout", "in", "on")
"""Arguments that every step takes and no action sees."""

OnFail = Literal["stop", "continue"]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable as written: one scalar, or a list of them."""

    name: str
    span: Span
    node: Scalar | Listing

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """Its scalars."""
        return scalars_of(self.node)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of the matrix with its values in the order written."""

    name: str
    span: Span
    values: tuple[Scalar, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step as written. `arguments` are without the reserved ones."""

    action: Scalar
    arguments: tuple[Entry, ...] = ()
    save_as: Scalar | None = None
    timeout: Scalar | None = None
    runs_in: Scalar | None = None
    on: Scalar | None = None
    expect: tuple[Scalar, ...] = ()
    fails: Scalar | None = None
    """`true`, or words of the sentence with which the step is to fail; None where it is to go well."""
    on_fail: OnFail = "stop"


@dataclass(frozen=True, kw_only=True)
class Script:
    """A script as written; parts that could not be read are left out and told in the problems."""

    name: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    axes: dict[str, Axis] = field(default_factory=dict)
    excludes: tuple[tuple[Entry, ...], ...] = ()
    matrix_span: Span = START
    steps: tuple[Step, ...] = ()


def parse(root: Node | None, problems: Problems) -> Script:
    """Read the whole script; every fault is added to `problems` with its place."""
    if root is None or (isinstance(root, Scalar) and root.value is None):
        if not problems:
            problems.add(Code.EMPTY_SCRIPT, START, "the script is empty", "it begins with hfbench: 1")
        return Script()
    if not isinstance(root, Table):
        message = f"a script is a mapping with {', '.join(TOP_KEYS)}, not {described(root)}"
        problems.add(Code.WRONG_TYPE, root.span, message)
        return Script()
    return _Parser(problems).script(root)


def scalars_of(node: Node) -> tuple[Scalar, ...]:
    """The scalars of a scalar or of a list of scalars."""
    if isinstance(node, Scalar):
        return (node,)
    items = node.items if isinstance(node, Listing) else ()
    return tuple(item for item in items if isinstance(item, Scalar))


class _Parser:
    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def script(self, root: Table) -> Script:
        self._refuse_unknown(root, TOP_KEYS, "a script")
        self._version(root)
        name, matrix, steps = root.get("name"), root.get("matrix"), root.get("steps")
        variables = self._variables(root.get("vars"))
        axes, excludes = self._matrix(matrix, variables)
        if steps is None:
            self.problems.add(
                Code.MISSING_KEY, root.span, "the script has no steps", "add steps: with a list of actions"
            )
        return Script(
            name=self._text(name.value, "name") if name else "",
            variables=variables,
            axes=axes,
            excludes=excludes,
            matrix_span=matrix.key.span if matrix else START,
            steps=self._steps(steps) if steps else (),
        )

    def _version(self, root: Table) -> None:
        entry = root.get("hfbench")
        if entry is None:
            self.problems.add(
                Code.MISSING_KEY, root.span, "the version of the format is missing", "begin with hfbench: 1"
            )
        elif not (isinstance(entry.value, Scalar) and type(entry.value.value) is int and entry.value.value == VERSION):
            message = f"version {described(entry.value)} of the format is not known"
            self.problems.add(Code.UNKNOWN_VERSION, entry.value.span, message, f"this hfbench reads version {VERSION}")

    def _variables(self, entry: Entry | None) -> dict[str, Variable]:
        found = {}
        for each in self._entries(entry, "vars"):
            if self._named(each.key, "a variable's name") and (values := self._plain(each.value, each.key.text)):
                found[each.key.text] = Variable(name=each.key.text, span=each.key.span, node=values)
        return found

    def _matrix(
        self, entry: Entry | None, variables: dict[str, Variable]
    ) -> tuple[dict[str, Axis], tuple[tuple[Entry, ...], ...]]:
        axes: dict[str, Axis] = {}
        excludes: tuple[tuple[Entry, ...], ...] = ()
        for each in self._entries(entry, "matrix"):
            name = each.key.text
            if name == "exclude":
                excludes = tuple(self._exclude(item) for item in self._items(each.value, "exclude"))
            elif self._named(each.key, "an axis's name"):
                if name in variables:
                    message = f"{name!r} is both a variable (line {variables[name].span.line}) and an axis"
                    self.problems.add(Code.DUPLICATE_NAME, each.key.span, message, "rename one")
                values = self._items(each.value, name)
                if isinstance(each.value, Listing) and not values:
                    self.problems.add(Code.EMPTY_AXIS, each.value.span, f"the axis {name!r} has no values")
                axes[name] = Axis(name=name, span=each.key.span, values=tuple(filter(None, map(self._scalar, values))))
        return axes, excludes

    def _exclude(self, node: Node) -> tuple[Entry, ...]:
        if isinstance(node, Table) and node.entries:
            return tuple(entry for entry in node.entries if self._scalar(entry.value))
        message = f"an exclusion is a mapping of axes to values, not {described(node)}"
        self.problems.add(Code.WRONG_TYPE, node.span, message, "write for example {dtype: fp32, batch: 8}")
        return ()

    def _steps(self, entry: Entry) -> tuple[Step, ...]:
        nodes = self._items(entry.value, "steps")
        if isinstance(entry.value, Listing) and not nodes:
            self.problems.add(Code.WRONG_TYPE, entry.value.span, "steps is an empty list", "add at least one action")
        return tuple(step for node in nodes if (step := self._step(node)))

    def _step(self, node: Node) -> Step | None:
        if not isinstance(node, Table):
            hint = f"write {node.text}: {{}}" if isinstance(node, Scalar) and node.text else ""
            message = f"a step is a mapping that names an action, not {described(node)}"
            self.problems.add(Code.WRONG_TYPE, node.span, message, hint)
            return None
        actions = [entry for entry in node.entries if entry.key.text not in STEP_KEYS]
        if len(actions) != 1:
            listed = ", ".join(entry.key.text for entry in actions[:4]) or "none"
            message = f"a step names exactly one action, this one names {listed}"
            self.problems.add(Code.NOT_ONE_ACTION, node.span, message, _misplaced(actions))
            return None
        key, value = actions[0].key, actions[0].value
        if not isinstance(value, Table) and not (isinstance(value, Scalar) and value.value is None):
            message = f"the arguments of {key.text} are a mapping, not {described(value)}"
            self.problems.add(Code.WRONG_TYPE, value.span, message, f"write {key.text}: {{name: value}}")
            value = Table(value.span, ())
        arguments = value.entries if isinstance(value, Table) else ()
        reserved = {each.key.text: self._scalar(each.value) for each in arguments if each.key.text in RESERVED}
        save_as = reserved.get("save_as")
        if save_as and not self._named(save_as, "save_as"):
            save_as = None
        return Step(
            action=key,
            arguments=tuple(each for each in arguments if each.key.text not in RESERVED),
            save_as=save_as,
            timeout=reserved.get("timeout"),
            runs_in=reserved.get("in"),
            on=reserved.get("on"),
            expect=self._expect(node.get("expect")),
            fails=self._fails(node.get("fails")),
            on_fail=self._on_fail(node.get("on_fail")),
        )

    def _expect(self, entry: Entry | None) -> tuple[Scalar, ...]:
        if entry is None:
            return ()
        if isinstance(entry.value, Scalar) and isinstance(entry.value.value, str):
            return (entry.value,)
        found = []
        for item in self._items(entry.value, "expect"):
            if isinstance(item, Scalar) and isinstance(item.value, str):
                found.append(item)
            else:
                message = f"an expectation is a text, not {described(item)}"
                self.problems.add(Code.BAD_EXPECTATION, item.span, message, "write for example gen.tpot.p99 < 50 ms")
        return tuple(found)

    def _fails(self, entry: Entry | None) -> Scalar | None:
        if entry is None:
            return None
        value = entry.value
        if isinstance(value, Scalar) and (value.value is True or (isinstance(value.value, str) and value.text.strip())):
            return value
        message = f"fails is true or words of the sentence that is expected, not {described(value)}"
        self.problems.add(Code.WRONG_TYPE, value.span, message, "leave it out where the step is to go well")
        return None

    def _on_fail(self, entry: Entry | None) -> OnFail:
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.value == "stop"):
            return "stop"
        if not (isinstance(entry.value, Scalar) and entry.value.value == "continue"):
            message = f"on_fail is stop or continue, not {described(entry.value)}"
            near = self.problems.near(entry.value.text, ("stop", "continue")) if isinstance(entry.value, Scalar) else ""
            self.problems.add(Code.BAD_ON_FAIL, entry.value.span, message, near)
        return "continue"

    def _refuse_unknown(self, table: Table, known: tuple[str, ...], what: str) -> None:
        for entry in table.entries:
            if entry.key.text not in known:
                hint = self.problems.near(entry.key.text, known) or f"known: {', '.join(known)}"
                self.problems.add(Code.UNKNOWN_KEY, entry.key.span, f"{what} has no key {entry.key.text!r}", hint)

    def _named(self, scalar: Scalar, what: str) -> bool:
        if isinstance(scalar.value, str) and NAME.fullmatch(scalar.text):
            return True
        message = f"{what} is letters, digits and _, not {described(scalar)}"
        self.problems.add(Code.BAD_NAME, scalar.span, message)
        return False

    def _entries(self, entry: Entry | None, what: str) -> tuple[Entry, ...]:
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None):
            return ()
        if isinstance(entry.value, Table):
            return entry.value.entries
        self.problems.add(Code.WRONG_TYPE, entry.value.span, f"{what} is a mapping, not {described(entry.value)}")
        return ()

    def _items(self, node: Node, what: str) -> tuple[Node, ...]:
        if isinstance(node, Listing):
            return node.items
        self.problems.add(Code.WRONG_TYPE, node.span, f"{what} is a list, not {described(node)}")
        return ()

    def _plain(self, node: Node, what: str) -> Scalar | Listing | None:
        if isinstance(node, Scalar):
            return node
        if isinstance(node, Listing) and all(isinstance(item, Scalar) for item in node.items):
            return node
        message = f"{what} is a value or a list of values, not {described(node)}"
        if isinstance(node, Listing):
            message = f"{what} is a value or a list of values, not a list of lists or mappings"
        self.problems.add(Code.WRONG_TYPE, node.span, message)
        return None

    def _scalar(self, node: Node) -> Scalar | None:
        if isinstance(node, Scalar):
            return node
        self.problems.add(Code.WRONG_TYPE, node.span, f"a single value is expected here, not {described(node)}")
        return None

    def _text(self, node: Node, what: str) -> str:
        if isinstance(node, Scalar) and node.value is not None:
            return node.text
        self.problems.add(Code.WRONG_TYPE, node.span, f"{what} is a text, not {described(node)}")
        return ""


def _misplaced(actions: list[Entry]) -> str:
    """A hint when an argument was written beside the action instead of inside."""
    stray = [entry.key.text for entry in actions if entry.key.text in RESERVED]
    return f"{stray[0]} goes inside the action's arguments" if stray else ""
