"""The completion of bash: tables of words, and a function that finds its place in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hfbench.commands.command_tree import Taken, Tree

HEAD = r"""
# Words of the line up to the cursor; bash cuts them at : and = as well, which belong to our words.
__hfbench_words() {
    local i word
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((${#words[@]} > 1)) && [[ $word == [:=]* || ${words[-1]} == *[:=] ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
}

# The words that complete $2 where a value of a kind is wanted: what this machine holds, then files.
__hfbench_kind() {
    local line
    case $1 in
        path) ;;
        *)
            while IFS=$'\t' read -r line _; do
                COMPREPLY+=("$line")
            done < <("${words[0]/#\~\//$HOME/}" completions values "$1" "$2" 2>/dev/null)
            ;;
    esac
    case $1 in
        path | model | measured)
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do
                COMPREPLY+=("$line")
            done < <(compgen -f -- "$2")
            ;;
        place) # slurm: goes on with a partition
            if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
            ;;
    esac
}

# Choices that begin with $2; of a list with commas the last item is completed.
__hfbench_choices() {
    local before= last=$2 each
    if [[ $2 == *,* ]]; then before=${2%,*}, last=${2##*,}; fi
    for each in $1; do
        if [[ $each == "$last"* ]]; then COMPREPLY+=("$before$each"); fi
    done
}
"""

TAIL = r"""
_hfbench() {
    local words cur prev name= word i choices= kind= found next= operand=0 begun=
    COMPREPLY=()
    __hfbench_words
    cur=${words[-1]}
    prev=
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        word=${words[i]}
        __hfbench_next "$name"
        if [[ $word != -* && " $next " == *" $word "* ]]; then
            name=${name:+$name }$word
        elif [[ $word == -* ]]; then
            choices= kind= found=
            __hfbench_value "$name" "$word"
            if [[ $found && $word != *=* ]]; then ((i++)); fi
        else
            ((operand++))
        fi
    done
    if ((${#words[@]} > 2)); then prev=${words[-2]}; fi
    choices= kind= found=
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*} begun=${cur%%=*}= cur=${cur#*=}
    fi
    if [[ $prev == -* ]]; then __hfbench_value "$name" "$prev"; fi
    if [[ ! $found && $begun ]]; then return; fi
    if [[ ! $found ]]; then
        if [[ $cur == -* ]]; then
            __hfbench_options "$name"
        else
            __hfbench_next "$name"
            choices=$next
            if [[ $name ]] || ! compgen -W "$next" -- "$cur" >/dev/null; then
                if [[ ! $next || ! $name ]]; then __hfbench_operand "$name" "$operand"; fi
            fi
        fi
    fi
    if [[ $choices ]]; then __hfbench_choices "$choices" "$cur"; fi
    if [[ $kind ]]; then __hfbench_kind "$kind" "$cur"; fi
    # What bash has cut off stands on the line already.
    if [[ $begun && $COMP_WORDBREAKS != *=* ]]; then COMPREPLY=("${COMPREPLY[@]/#/$begun}"); fi
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then COMPREPLY=("${COMPREPLY[@]#"${cur%:*}:"}"); fi
}
complete -F _hfbench hfbench
"""


def script(tree: Tree) -> str:
    """What bash reads to complete `hfbench`."""
    commands = tree.commands.values()
    tables = [
        *_table("next", "next", {name: " ".join(tree.below(name)) for name in tree.groups()}),
        *_table("options", "choices", {each.name: " ".join(_spellings(each.options)) for each in commands}),
        *_switch("value", _option_values(tree)),
        *_switch("operand", _operand_values(tree)),
    ]
    return "\n".join([HEAD.strip("\n"), "", *tables, TAIL.strip("\n")]) + "\n"


def _spellings(options: Iterable[Taken]) -> Iterator[str]:
    for option in options:
        yield from option.names


def _table(name: str, variable: str, told: Mapping[str, str]) -> Iterator[str]:
    """A function that puts the words of the command `$1` into a variable."""
    yield f"__hfbench_{name}() {{"
    yield "    case $1 in"
    for key, words in told.items():
        yield f"        {_quoted(key)}) {variable}={_quoted(words)} ;;"
    yield from (f"        *) {variable}= ;;", "    esac", "}", "")


def _switch(name: str, told: Mapping[str, list[str]]) -> Iterator[str]:
    """A function that tells what is wanted at `$1 $2`: `told` has the places by what is wanted there."""
    yield f"__hfbench_{name}() {{"
    yield '    case "$1 $2" in'
    for wanted, places in told.items():
        yield f"        {' | '.join(map(_quoted, places))}) found=1 {wanted} ;;".replace("found=1  ;;", "found=1 ;;")
    yield from ("    esac", "}", "")


def _option_values(tree: Tree) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for command in tree.commands.values():
        for option in command.options:
            if option.takes_value:
                told.setdefault(_wanted(option), []).extend(f"{command.name} {name}" for name in option.names)
    return told


def _operand_values(tree: Tree) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for command in tree.commands.values():
        for position, operand in enumerate(command.operands):
            places = range(position, position + 9) if operand.many else [position]
            told.setdefault(_wanted(operand), []).extend(f"{command.name} {place}" for place in places)
    return told


def _wanted(taken: Taken) -> str:
    if taken.choices:
        return f"choices={_quoted(' '.join(taken.choices))}"
    return f"kind={taken.kind}" if taken.kind else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
