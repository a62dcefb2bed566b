"""The completion of zsh: a function a command for `_arguments`, and one that finds the command."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.commands.command_tree import Command, Taken, Tree

HEAD = r"""
#compdef hfbench

# Words of a kind that this machine knows, with what they are; files where a path will do.
__hfbench_kind() {
    local line asked="${(q)__hfbench_program} completions values $1 ${(q)PREFIX}"
    local -a names told
    if [[ $1 != path ]]; then
        for line in ${(f)"$(_call_program hfbench $asked 2>/dev/null)"}; do
            names+=("${line%%$'\t'*}")
            told+=("${line/$'\t'/  -- }")
        done
        if [[ $1 == place ]]; then
            compadd -S '' -d told -a names
        else
            compadd -d told -a names
        fi
    fi
    if [[ $1 == (path|model|measured) ]]; then _files; fi
}
"""

TAIL = r"""
_hfbench() {
    local name= word __hfbench_program=${words[1]} curcontext=$curcontext
    local -i at=2
    while (( at < CURRENT )); do
        word=${name:+$name }${words[at]}
        (( ${+__hfbench_commands[$word]} )) || break
        name=$word
        (( at++ ))
    done
    words=("${words[1]}" "${(@)words[at,-1]}")
    (( CURRENT -= at - 2 ))
    if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]] && (( ${+__hfbench_groups[$name]} )); then
        local -a below=("${(@f)__hfbench_groups[$name]}")
        _describe -t commands command below && return
        [[ -n $name ]] && return 1
    fi
    if (( ${+__hfbench_commands[$name]} )); then
        curcontext="${curcontext%:*:*}:hfbench-${name// /-}:"
        "__hfbench_at_${${name// /_}//-/_}"
    fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _hfbench "$@"
else
    compdef _hfbench hfbench
fi
"""


def script(tree: Tree) -> str:
    """What zsh reads to complete `hfbench`: sourced, or as `_hfbench` in a folder of its `fpath`."""
    parts = [HEAD.strip("\n"), "", *_names(tree)]
    for command in tree.commands.values():
        parts += [*_function(command), ""]
    return "\n".join([*parts, TAIL.strip("\n")]) + "\n"


def _names(tree: Tree) -> Iterator[str]:
    groups = tree.groups()
    yield "typeset -gA __hfbench_commands=("
    yield from (f"    {_quoted(name)} 1" for name in dict.fromkeys([*tree.commands, *groups]))
    yield from (")", "typeset -gA __hfbench_groups=(")
    for group in groups:
        lines = (f"{word.replace(':', chr(92) + ':')}:{told}" for word, told in tree.below(group).items())
        yield f"    {_quoted(group)} {_quoted(chr(10).join(lines))}"
    yield from (")", "")
    for group in groups:
        if group not in tree.commands:
            yield from (f"{_function_name(group)}() {{", "    return 1", "}", "")


def _function_name(command: str) -> str:
    return f"__hfbench_at_{command.replace(' ', '_').replace('-', '_')}"


def _function(command: Command) -> Iterator[str]:
    yield f"{_function_name(command.name)}() {{"
    yield "    _arguments -S \\"
    for option in command.options:
        yield from (f"        {_quoted(spec)} \\" for spec in _option(option))
    for position, operand in enumerate(command.operands, start=1):
        place = "*" if operand.many else f"{position}:" if operand.required else f"{position}::"
        rest = f"{_safe(operand.shown)}:{_wanted(operand)}"
        yield f"        {_quoted(f'{place}:{rest}' if operand.many else f'{place}{rest}')} \\"
    yield from ("        && return 0", "}")


def _option(option: Taken) -> Iterator[str]:
    """The option in each spelling; one excludes the other unless it may be given again."""
    others = "" if option.many else f"({' '.join(option.names)})"
    for name in option.names:
        again = "*" if option.many else ""
        if option.takes_value:
            equals = "=" if name.startswith("--") else ""
            yield f"{others}{again}{name}{equals}[{_safe(option.help)}]:{_safe(option.shown)}:{_wanted(option)}"
        else:
            yield f"{others}{name}[{_safe(option.help)}]"


def _wanted(taken: Taken) -> str:
    """What `_arguments` does to complete a value."""
    if taken.choices:
        choices = " ".join(each.replace(":", "\\:") for each in taken.choices)
        return f"_sequence compadd - {choices}" if taken.many else f"({choices})"
    return f" __hfbench_kind {taken.kind}" if taken.kind else " "  # as it stands, without options of its own


def _safe(text: str) -> str:
    for special in "\\[]:":
        text = text.replace(special, f"\\{special}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
