"""The completion of fish: one `complete` a word, each with the command it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.commands.command_tree import Command, Taken, Tree

HEAD = r"""
# The command the line names so far: `bench generate`, empty before there is one.
function __hfbench_command
    set -l name
    for word in (commandline -opc)[2..-1]
        if contains -- (string join ' ' -- $name $word) $__hfbench_commands
            set -a name $word
        else
            break
        end
    end
    string join ' ' -- $name
end

function __hfbench_at
    test (__hfbench_command | string collect --allow-empty) = "$argv"
end

# Words of a kind that this machine knows, with what they are.
function __hfbench_kind
    set -l program (commandline -opc)[1]
    $program completions values $argv[1] (commandline -ct) 2>/dev/null
end

complete -c hfbench -e
complete -c hfbench -f
"""

A_PATH = "__hfbench_at; and string match -q '*/*' -- (commandline -ct)"
"""A model in the place of a command is completed once it looks like one."""

LIST = r'(__fish_complete_list , "printf %%s\\n %s")'
"""Completes the last item of a list with commas."""


def script(tree: Tree) -> str:
    """What fish reads to complete `hfbench`."""
    names = dict.fromkeys([*tree.commands, *tree.groups()])
    known = " ".join(_quoted(name) for name in names if name)
    lines = [f"set -g __hfbench_commands {known}", "", HEAD.strip("\n")]
    for group in tree.groups():
        for word, told in tree.below(group).items():
            lines.append(f"complete -c hfbench -n {_at(group)} -a {_quoted(word)} -d {_quoted(told)}")
    for command in tree.commands.values():
        lines += [*_options(command), *_operands(command)]
    return "\n".join(lines) + "\n"


def _options(command: Command) -> Iterator[str]:
    for option in command.options:
        spellings = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        told = f"complete -c hfbench -n {_at(command.name)} {spellings} -d {_quoted(option.help)}"
        yield f"{told} {_wanted(option)}".rstrip() if option.takes_value else told


def _operands(command: Command) -> Iterator[str]:
    for operand in command.operands:
        if wanted := _wanted(operand).removeprefix("-x ").removeprefix("-r "):
            where = _at(command.name) if command.words else _quoted(A_PATH)
            yield f"complete -c hfbench -n {where} {wanted}"


def _at(command: str) -> str:
    return _quoted(f"__hfbench_at {command}".rstrip())


def _wanted(taken: Taken) -> str:
    """What completes a value: `-x` takes no files, `-r -F` files too."""
    if taken.choices and taken.many:
        return f"-x -a {_quoted(LIST % ' '.join(taken.choices))}"
    if taken.choices:
        return f"-x -a {_quoted(' '.join(taken.choices))}"
    if taken.kind == "path":
        return "-r -F"
    if taken.kind in ("model", "measured"):
        return f"-r -F -a {_quoted(f'(__hfbench_kind {taken.kind})')}"
    return f"-x -a {_quoted(f'(__hfbench_kind {taken.kind})')}" if taken.kind else "-x"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
