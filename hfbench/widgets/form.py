"""The form of an action: one line a field, checked with every key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Focus, Key, Paste
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label

from hfbench.actions.params import Param
from hfbench.sweeps.vary import separates
from hfbench.widgets.cells import clip
from hfbench.widgets.form_state import FormState, choices_of, next_choice
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help


class LastItem(Suggester):
    """Completes the last item of a list to the first choice that begins with it."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        super().__init__()
        self.choices = choices

    async def get_suggestion(self, value: str) -> str | None:
        """Textual's hook: the whole text, completed."""
        before, comma, item = value.rpartition(",")
        found = next((each for each in self.choices if item and each.startswith(item.strip().lower())), None)
        return f"{before}{comma}{found}" if found else None


class FieldInput(Input):
    """The value of one field, or those of a sweep. `space` walks through the choices of a field that has some."""

    help = Help(
        "Field",
        "`up` and `down` move between fields, `space` walks through choices, a comma adds another value: a list such "
        "as 1,8,32 or a range such as 16..128*2 or 1..4 makes it a sweep. `enter` starts the job, or the sweep.\n"
        "`escape` leaves the fields, so that single keys work. An emptied field is the default again.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "field above", show=False),
        Binding("down", "app.focus_next", "field below", show=False),
        Binding("enter", "submit", "start"),
        Binding("escape", "leave", "leave fields"),
    ]

    def __init__(self, param: Param, text: str) -> None:
        self.choices = choices_of(param)
        suggester = LastItem(self.choices) if self.choices else None
        super().__init__(text, compact=True, select_on_focus=False, suggester=suggester, id=f"field-{param.name}")
        self.param = param
        self._chosen = bool(self.choices)
        """Whether the last item was chosen and not typed: the next letter begins another in its place."""

    def on_focus(self, event: Focus) -> None:
        """What stands there was not typed just now."""
        self._chosen = bool(self.choices)

    def on_key(self, event: Key) -> None:
        """Space chooses where there is something to choose, and a letter typed over a choice takes its place."""
        if event.key == "space" and (chosen := next_choice(self.param, self.value)) is not None:
            self.value = chosen
            self.cursor_position = len(chosen)
            self._chosen = True
            event.prevent_default()
            event.stop()
        elif event.is_printable and self._chosen:
            self._begin_item(event.character or "")

    def on_paste(self, event: Paste) -> None:
        """Pasted text takes the place of a choice as typed text does."""
        if self._chosen:
            self._begin_item(event.text)

    def _begin_item(self, text: str) -> None:
        """Make room for what is typed at the end: a comma adds an item, anything else takes the last one's place."""
        self._chosen = False
        before, comma, item = self.value.rpartition(",")
        if item.strip() in self.choices and not text.startswith(",") and self.cursor_position == len(self.value):
            self.value = before + comma
            self.cursor_position = len(self.value)

    def action_leave(self) -> None:
        """Give the keys to the form."""
        self.screen.set_focus(self.screen.query_one(Form))


class Form(VerticalScroll, can_focus=True):
    """All fields of an action. Posts `Changed` with each key and `Submitted` on enter."""

    help = Help(
        "Form",
        "`down` goes into the fields, `enter` starts the job. A field that is a list or a range makes it a sweep: a "
        "job for each combination. The line below the form is the command that does the same; `y` copies it, `s` "
        "copies the step of a script, `S` saves it as a script.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "start", id="form.start"),
        Binding("down,tab", "app.focus_next", "edit fields"),
        Binding("up", "app.focus_previous", "fields", show=False),
    ]

    DEFAULT_CSS = """
    Form {
        height: 1fr; scrollbar-size-vertical: 1;
        & > Horizontal { height: 1; }
        & .label { width: 18; color: $text-muted; }
        & .label.-wrong { color: $text-error; }
        & FieldInput { width: 2fr; min-width: 26; border: none; padding: 0; background: $surface; height: 1; }
        & FieldInput:focus { border: none; background: $panel; }
        & .hint { width: 3fr; color: $text-muted; padding: 0 0 0 1; height: 1; }
        & .hint.-wrong { color: $text-error; }
    }
    """

    @dataclass
    class Changed(Message):
        """A field changed."""

        state: FormState

    @dataclass
    class Submitted(Message):
        """The user wants it started."""

        state: FormState

    def __init__(self, state: FormState, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state

    def compose(self) -> ComposeResult:
        """Label, value and hint of each field."""
        for param in self.state.params:
            with Horizontal():
                yield Label(param.name, classes="label", markup=False)
                yield FieldInput(param, self.state.texts[param.name])
                yield Label("", classes="hint", id=f"hint-{param.name}", markup=False)

    def on_mount(self) -> None:
        """Show what is wrong from the start."""
        self._judge()

    def on_resize(self) -> None:
        """Cut hints to the room there is."""
        self._judge()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if isinstance(event.input, FieldInput):
            self.state = self.state.typed(event.input.param.name, event.value)
            self._judge()
            self.post_message(self.Changed(self.state))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_submit()

    def action_submit(self) -> None:
        """Ask for the start; the first wrong field takes the keys instead."""
        if wrong := next(iter(self.state.problems), None):
            self.screen.set_focus(self.query_one(f"#field-{wrong}", FieldInput))
        else:
            self.post_message(self.Submitted(self.state))

    def _judge(self) -> None:
        problems, sign = self.state.problems, glyphs_of(self.app).sign("error")
        for param in self.state.params:
            hint = self.query_one(f"#hint-{param.name}", Label)
            wrong = problems.get(param.name, "")
            text = f"{sign} {wrong}" if wrong else self.state.told(param) or hint_of(param)
            hint.update(clip(text, max(8, hint.size.width - 1 if hint.size else 30)))
            hint.tooltip = text
            hint.set_class(bool(wrong), "-wrong")


def help_of(param: Param) -> str:
    """All that is to be known of a field, in a sentence."""
    choices = param.listed or (("true", "false") if param.type is bool else ())
    parts = [param.help, f"one of {', '.join(choices)}" if choices else "", f"in {param.unit}" if param.unit else ""]
    return "; ".join(filter(None, [*parts, param.bounds, several_of(param)]))


def several_of(param: Param) -> str:
    """How a field is varied, where a comma separates values."""
    if not separates(param):
        return ""
    return "1,8 or 1..4 or 1..64*2 is a sweep" if param.type in (int, float) else "A,B is a sweep"


def hint_of(param: Param) -> str:
    """What a field takes: its choices, else its unit and what it means. Bounds are told when they are crossed."""
    if param.choices:
        return f"[{', '.join(param.listed)}]"
    if param.type is bool:
        return "[true, false]  " + param.help
    return ": ".join(filter(None, [param.unit, param.help]))
