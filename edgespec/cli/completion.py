"""`edgespec completion`: scripts that let a shell complete commands, options and names.

The scripts are made of the commands' own parsers. Names come from `edgespec list --names` and
`edgespec personas --names`, asked for each time, so that they are those of the moment.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edgespec.cli import output
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser

_NAMES = "edgespec list --names 2>/dev/null"
_PERSONAS = "edgespec personas --names 2>/dev/null"
_BARE = dict.fromkeys(
    ("advise", "derive", "fit", "show", "rm", "verify", "pair", "pull", "train", "tune"), _NAMES
) | {"personas": _PERSONAS}
"""Commands whose bare arguments are names, and what prints these."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a shell must know about one command."""

    name: str
    help: str
    options: tuple[argparse.Action, ...]
    words: tuple[str, ...]
    """Fixed words that may stand without an option."""

    @property
    def flags(self) -> list[str]:
        """All its options, as they are typed."""
        return [flag for option in self.options for flag in option.option_strings]


def main(arguments: Sequence[str]) -> int:
    """Print the script and return the exit code."""
    options = parser().parse_args(arguments)
    output.answer(_SHELLS[options.shell](commands()))
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command."""
    options = Parser("completion", "Print a script that completes edgespec in a shell.")
    options.add_argument("shell", choices=sorted(_SHELLS), help="the shell it is for")
    options.epilog = (
        'bash: eval "$(edgespec completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, after '
        "compinit; fish: edgespec completion fish > ~/.config/fish/completions/edgespec.fish"
    )
    return options


def commands() -> list[Command]:
    """All commands with their options. Imports every one of them."""
    from edgespec.cli.main import COMMANDS  # noqa: PLC0415 - main imports this module by name

    found = []
    for name, text in COMMANDS.items():
        module = importlib.import_module(f"edgespec.cli.{name}")
        made: Parser = module.parser()
        # A command of several actions has a parser for each.
        inner: Mapping[str, Parser] = getattr(module, "parsers", dict)()
        options = {
            one.option_strings[-1]: one
            for parser in (made, *inner.values())
            for one in parser._actions
            if one.option_strings
        }
        bare = [one for one in made._actions if not one.option_strings]
        words = tuple(str(word) for one in bare for word in one.choices or ())
        found.append(Command(name, text, tuple(options.values()), words))
    return found


def bash(found: Sequence[Command]) -> str:
    """For bash."""
    cases = []
    for command in found:
        valued = [_bash_value(option) for option in command.options if option.nargs != 0]
        inner = "".join(f"                {line}\n" for line in valued if line)
        bare = f"$({_BARE[command.name]})" if command.name in _BARE else ""
        cases.append(
            f"        {command.name})\n"
            f'            case "$previous" in\n{inner}            esac\n'
            f'            words="{" ".join([*command.words, *command.flags])} {bare}" ;;\n'
        )
    return _BASH.format(commands=" ".join(command.name for command in found), cases="".join(cases))


def _bash_value(option: argparse.Action) -> str:
    flags = "|".join(option.option_strings)
    if option.choices:
        return f'{flags}) COMPREPLY=($(compgen -W "{_choices(option)}" -- "$current")); return ;;'
    if option.dest == "persona":
        return f'{flags}) COMPREPLY=($(compgen -W "$({_PERSONAS})" -- "$current")); return ;;'
    extra = _extras(option)
    if extra is not None:
        return (
            f'{flags}) COMPREPLY=($(compgen -f -W "{extra}$({_NAMES})" -- "$current")); return ;;'
        )
    return f'{flags}) COMPREPLY=($(compgen -f -- "$current")); return ;;'


def zsh(found: Sequence[Command]) -> str:
    """For zsh, by its emulation of bash's completion."""
    return "autoload -Uz bashcompinit && bashcompinit\n" + bash(found)


def fish(found: Sequence[Command]) -> str:
    """For fish."""
    lines = ["complete -c edgespec -f"]
    for command in found:
        here = f"'__fish_seen_subcommand_from {command.name}'"
        lines.append(
            f"complete -c edgespec -n __fish_use_subcommand -a {command.name} "
            f"-d '{_quoted(command.help)}'"
        )
        if command.words:
            lines.append(f"complete -c edgespec -n {here} -a '{' '.join(command.words)}'")
        if command.name in _BARE:
            lines.append(f"complete -c edgespec -n {here} -a '({_BARE[command.name]})'")
        lines += [
            f"complete -c edgespec -n {here} {_fish_option(option)}" for option in command.options
        ]
    return "\n".join(lines) + "\n"


def _fish_option(option: argparse.Action) -> str:
    flags = " ".join(
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
        for flag in option.option_strings
    )
    text = f"{flags} -d '{_quoted(option.help or '')}'"
    if option.nargs == 0:
        return text
    if option.choices:
        return f"{text} -x -a '{_choices(option)}'"
    if option.dest == "persona":
        return f"{text} -x -a '({_PERSONAS})'"
    extra = _extras(option)
    return f"{text} -r -F -a '{extra}({_NAMES})'" if extra is not None else f"{text} -r -F"


def _choices(option: argparse.Action) -> str:
    return " ".join(map(str, option.choices or ()))


def _extras(option: argparse.Action) -> str | None:
    """Fixed words beside stored names, for an option that takes a model; None for another."""
    words = str(option.metavar or "").split("|")
    if not {"NAME", "REF"} & set(words) or option.dest == "name":
        return None
    return "".join(f"{word} " for word in words if word.islower())


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("%%", "%")


_SHELLS: dict[str, Callable[[Sequence[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}

_BASH = """\
_edgespec() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [ "${{#COMPREPLY[@]}}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _edgespec edgespec
"""
