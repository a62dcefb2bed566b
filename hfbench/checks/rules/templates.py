"""Chat templates: where they stand, and what becomes of them when they are rendered."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.subject import Subject
from hfbench.checks.tables import table
from hfbench.models.files import ModelFile, read_bytes
from hfbench.models.magic import LOOK, recognise
from hfbench.models.problem import ModelError, listed, quoted
from hfbench.tokens.render import Attempt
from hfbench.tokens.templates_text import LONGEST, MORE

_IN_WORDS = {"user": "a user's message", "system": "a system message", "turns": "several turns"}


@rule("HB600", "no-chat-template", severity="warning")
def no_chat_template(subject: Subject) -> Iterator[Found]:
    """The tokenizer has no chat template.

    Why: requests to a chat endpoint are answered with HTTP 400; a base model needs none.
    Remedy: add chat_template.jinja, or give the server a template.
    """
    families, family = table("families"), subject.config.model_type
    if subject.raw.get("is_encoder_decoder") or family in families["answering"]:
        return
    elsewhere = subject.has("tekken.json") or subject.has("chat_template.jinja")
    given = subject.templates or subject.tokenizer_config.get("chat_template") not in (None, [], {})
    if subject.writes_text and subject.has_tokenizer and not given and not elsewhere:
        old = family in families["before_chat"]
        message = "there is no chat template"
        yield Found(message=message, file="tokenizer_config.json", severity="info" if old else None)
    names = {each.name for each in subject.templates}
    if names and "default" not in names and not elsewhere:
        message = f"no template is called 'default', only {listed(sorted(names))}"
        yield Found(message=message, file=subject.templates[0].source)


@rule("HB601", "template-syntax")
def template_syntax(subject: Subject) -> Iterator[Found]:
    """A chat template cannot be compiled.

    Why: every chat request fails.
    Remedy: mend the template at the line that is named.
    """
    for source in ("tokenizer_config.json", "chat_template.json", "processor_config.json"):
        fault = _fault(subject.json(source).get("chat_template"))
        if fault:
            yield Found(message=f"chat_template {fault}", file=source)
    for file in subject.files:
        if file.name == "chat_template.jinja" or (file.name.startswith(f"{MORE}/") and file.name.endswith(".jinja")):
            yield from _unreadable(subject, file)
    for each in _attempts(subject, "too long"):
        if not each.template.source.endswith(".jinja"):
            message = f"has more than {LONGEST:,} characters, more than any template; it is too long to be tried"
            yield _found(each, message, "warning")
    for each in _attempts(subject, "syntax"):
        yield _found(each, f"does not compile: {each.detail}")


@rule("HB602", "template-does-not-end")
def template_does_not_end(subject: Subject) -> Iterator[Found]:
    """A chat template does not end in useful time.

    Why: transformers sets no limit, so one request hangs a server for good.
    Remedy: do not use the template.
    """
    for each in _attempts(subject, "timeout"):
        yield _found(each, "is not rendered in useful time: a second of CPU time, three on the clock")


@rule("HB603", "template-takes-memory")
def template_takes_memory(subject: Subject) -> Iterator[Found]:
    """A chat template asks for more memory than any text needs.

    Why: transformers sets no limit, so one request ends a server.
    Remedy: do not use the template.
    """
    for each in _attempts(subject, "memory"):
        yield _found(each, f"takes more memory than allowed{': ' if each.detail else ''}{each.detail}")


@rule("HB604", "template-unsafe")
def template_unsafe(subject: Subject) -> Iterator[Found]:
    """A chat template reaches for the internals of Python.

    Why: outside a sandbox this runs code of the template's author; there is no other use for it.
    Remedy: do not load this model; report it to whoever gave it to you.
    """
    for each in _attempts(subject, "unsafe"):
        yield _found(each, f"is not safe: {each.detail}")


@rule("HB605", "template-fails")
def template_fails(subject: Subject) -> Iterator[Found]:
    """A chat template fails on plain conversations.

    Why: the requests it fails on are answered with an error.
    Remedy: mend the template.
    """
    for each, whole in _once(subject, "fails"):
        plain = each.template.name == "default" and whole
        yield _found(
            each, f"fails on {_IN_WORDS.get(each.case, each.case)}: {each.detail}", None if plain else "warning"
        )


@rule("HB606", "template-refuses", severity="warning")
def template_refuses(subject: Subject) -> Iterator[Found]:
    """A chat template refuses some conversations with an error of its own.

    Why: requests of that kind, often those with a system message, are answered with an error.
    Remedy: put the system message into the first message of the user.
    """
    for each, whole in _once(subject, "raises"):
        severity = "error" if whole and each.template.name == "default" else None
        yield _found(each, f"refuses {_IN_WORDS.get(each.case, each.case)}: {each.detail}", severity)


@rule("HB607", "template-drops-words", severity="warning")
def template_drops_words(subject: Subject) -> Iterator[Found]:
    """A chat template renders without the words of the user.

    Why: the model is asked nothing.
    Remedy: mend the template.
    """
    for each, whole in _once(subject, "silent"):
        if whole and each.template.name == "default":
            yield _found(each, "renders without the words of the user")


@rule("HB608", "two-template-sources", severity="warning")
def two_template_sources(subject: Subject) -> Iterator[Found]:
    """Two files hold a default chat template, and the two differ.

    Why: transformers takes chat_template.jinja, older releases and other engines the one in tokenizer_config.json.
    Remedy: keep one of them.
    """
    default = {each.source: each.text for each in subject.templates if each.name == "default" and not each.too_long}
    if len({text.strip() for text in default.values()}) > 1:
        yield Found(message=f"different default templates in {listed(sorted(default))}", file=sorted(default)[0])


@rule("HB609", "templates-not-rendered", severity="info")
def templates_not_rendered(subject: Subject) -> Iterator[Found]:
    """The chat templates could not be tried.

    Why: jinja2 is not installed, or templates before this one used up the time.
    Remedy: install the extra that brings transformers with pip install 'hfbench[torch]'.
    """
    for each in (*_attempts(subject, "no jinja2"), *_attempts(subject, "not tried")):
        yield _found(each, "is not rendered" if each.outcome == "not tried" else "is not rendered: jinja2 is missing")


def _fault(given: object) -> str:
    """What is wrong with the value of chat_template; empty when nothing is."""
    if given is None or isinstance(given, str):
        return ""
    if isinstance(given, dict):
        return "" if all(isinstance(each, str) for each in given.values()) else "holds a template that is no text"
    if not isinstance(given, list):
        return "is no text"
    whole = all(
        isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("template"), str)
        for each in given
    )
    return "" if whole else "holds an entry without a name or a template"


def _unreadable(subject: Subject, file: ModelFile) -> Iterator[Found]:
    """Why the text of a file cannot be a template, before it comes to compiling it."""
    if file.problem:
        return  # another rule tells
    if file.bytes > LONGEST:
        message = f"has {file.bytes:,} bytes, more than any template; it is too long to be tried"
        yield Found(message=message, file=file.name, severity="warning")
        return
    try:
        raw = read_bytes(file.path, LONGEST, subject.folder)
        raw.decode()
    except ModelError:
        return
    except UnicodeDecodeError as error:
        yield Found(message=f"byte {error.start:,} is not UTF-8", file=file.name)
        return
    what = recognise(raw[:LOOK])
    if what and what != "JSON text":
        yield Found(message=f"this is {what}", file=file.name)


def _attempts(subject: Subject, outcome: str) -> list[Attempt]:
    """The first attempt of each template with that outcome."""
    found: dict[tuple[str, str], Attempt] = {}
    for each in subject.attempts:
        if each.outcome == outcome:
            found.setdefault((each.template.name, each.template.source), each)
    return list(found.values())


def _once(subject: Subject, outcome: str) -> Iterator[tuple[Attempt, bool]]:
    """The same, and whether no conversation at all was rendered."""
    for each in _attempts(subject, outcome):
        others = [other.outcome for other in subject.attempts if other.template == each.template]
        yield each, "ok" not in others and (outcome == "silent" or "silent" not in others)


def _found(attempt: Attempt, message: str, severity: str | None = None) -> Found:
    template = attempt.template
    return Found(
        message=f"the template {quoted(template.name)} {message}",
        file=template.source,
        evidence={"template": template.name, "conversation": attempt.case},
        severity="error" if severity == "error" else "warning" if severity == "warning" else None,
    )
