"""The form of an action: one line a field, checked with every key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Key, Paste
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label
from textual.widgets.input import Selection

from hfbench.actions.params import Param
from hfbench.sweeps.vary import separates
from hfbench.widgets.cells import clip
from hfbench.widgets.form_state import FormState, blank_of, choices_of, next_choice
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help

REPLACED = "typing replaces, arrows edit"
"""Said beside the field whose value is selected as a whole."""

BELOW_KEYS = (
    Binding("pageup", "screen.below(-1)", "text below up", show=False, id="form.below-up"),
    Binding("pagedown", "screen.below(1)", "more below", id="form.below"),
)
"""Keys of the form and of its fields, each of which would scroll itself."""


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
        "`up` and `down` move between fields. What you type takes the place of what is selected, at first the whole "
        "value; `left`, `right`, `home` and `end` keep it to be edited. `space` walks through choices, a comma adds "
        "another value: a list such as 1,8,32 or a range such as 16..128*2 or 1..4 makes it a sweep. `enter` starts "
        "the job, or the sweep.\n"
        "`escape` leaves the fields, so that single keys work. An emptied field is the default again.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "field above", show=False),
        Binding("down,tab", "app.focus_next", "field below", show=False),
        Binding("enter", "submit", "start"),
        Binding("escape", "leave", "leave fields"),
        *BELOW_KEYS,
    ]

    @dataclass
    class Held(Message):
        """The whole value is selected now, or no longer."""

        field: FieldInput

    def __init__(self, param: Param, text: str) -> None:
        self.choices = choices_of(param)
        suggester = LastItem(self.choices) if self.choices else None
        super().__init__(text, compact=True, suggester=suggester, id=f"field-{param.name}")
        self.param = param
        self._was_held = False

    @property
    def held(self) -> bool:
        """Whether the whole value is selected: what is typed takes its place."""
        return self.has_focus and bool(self.value) and sorted(self.selection) == [0, len(self.value)]

    def on_key(self, event: Key) -> None:
        """Space chooses where there is something to choose, and a comma goes on behind what is selected."""
        if event.key == "space" and (chosen := self._turned()) is not None:
            self.value = chosen
            self._select_item()
            event.prevent_default()
            event.stop()
        elif event.character:
            self._go_on(event.character)

    def on_paste(self, event: Paste) -> None:
        """Pasted text is as typed text."""
        self._go_on(event.text)

    def on_blur(self) -> None:
        """Nothing is selected in a field without the keys."""
        self._tell_held()

    def watch_selection(self) -> None:
        """Tell when the whole value is selected, or no longer is."""
        self._tell_held()

    def action_cursor_right(self, select: bool = False) -> None:
        """As Textual does; of a form that was completed, what is to be replaced is selected."""
        before = self.value
        super().action_cursor_right(select)
        if self.value != before:
            self._select_item(blank_only=True)

    def _turned(self) -> str | None:
        """The next choice; of a value of one's own that is selected as a whole, the first one takes its place."""
        turned = next_choice(self.param, self.value)
        return self.choices[0] if turned is None and self.choices and self.held else turned

    def _select_item(self, *, blank_only: bool = False) -> None:
        """Select the last item, or only what is to be replaced of one such as `ssh:HOST`."""
        begin = self.value.rpartition(",")[0]
        at = len(begin) + 1 if begin else 0
        blank = blank_of(self.value[at:])
        at += blank
        self.selection = (
            Selection.cursor(len(self.value)) if blank_only and not blank else Selection(at, len(self.value))
        )

    def _go_on(self, text: str) -> None:
        """A comma where one separates adds a value: what is selected up to the end stays."""
        last = max(self.selection)
        if text.startswith(",") and last == len(self.value) and (separates(self.param) or self.param.many):
            self.selection = Selection.cursor(last)

    def _tell_held(self) -> None:
        if self.is_attached and self.held != self._was_held:
            self._was_held = self.held
            self.post_message(self.Held(self))

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
        *BELOW_KEYS,
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
        """Cut hints to the room there is, and keep the field with the keys in view."""
        self._judge()
        if isinstance(field := self.screen.focused, FieldInput):
            self.scroll_to_widget(field, animate=False)

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

    @on(FieldInput.Held)
    def _held(self, message: FieldInput.Held) -> None:
        message.stop()
        self._tell(message.field.param)

    def _judge(self) -> None:
        for param in self.state.params:
            self._tell(param)

    def _tell(self, param: Param) -> None:
        """What stands beside a field; of one whose value typing would replace, that: the rest is told below."""
        wrong = self.state.problems.get(param.name, "")
        held = REPLACED if self.query_one(f"#field-{param.name}", FieldInput).held else ""
        text = (
            f"{glyphs_of(self.app).sign('error')} {wrong}"
            if wrong
            else self.state.told(param) or held or hint_of(param)
        )
        hint = self.query_one(f"#hint-{param.name}", Label)
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
