"""`edgespec COMMAND`: finds the command's module, runs it, and renders what went wrong.

Only the module of the command that is asked for is imported, so `--help` is instant.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from edgespec import __version__
from edgespec.cli import output
from edgespec.cli.output import ExitCode
from edgespec.errors import EdgeSpecError, ModelFileError, UsageError
from model_registry.problem import ModelFileProblem

COMMANDS = {
    "chat": "talk to a model in the terminal",
    "run": "answer one prompt, for pipes and scripts",
    "bench": "measure plain and speculative decoding against each other",
    "tune": "measure what drafting costs here with a pair, and keep it",
    "advise": "say how to run a model here, by what was measured, and why",
    "fit": "show how a model and its draft fit into memory, here or elsewhere",
    "pull": "bring a model, or a target with its draft, onto this machine",
    "list": "show the pairs and models on this machine",
    "show": "show all that is known about a pair or a model",
    "search": "look for pairs and models, here and on the Hub",
    "pair": "check that a draft fits a target, and store the two",
    "derive": "make a draft of a target alone, and say what it is worth",
    "train": "train a head that drafts from the target's hidden states",
    "verify": "compare stored files with what they were when they came",
    "rm": "remove a pair, a model or an unfinished pull",
    "prune": "remove what crashes and stopped downloads left",
    "history": "find, read, export and tidy the conversations that were kept",
    "doctor": "check this machine: cores, GPUs, llama.cpp, store, hub, terminal",
    "profile": "show the settings in force, and which file set each",
    "personas": "show who can answer: system texts with sampling to suit",
    "completion": "print completions for bash, zsh or fish",
}

_USAGE = """\
usage: edgespec COMMAND [options]

Local language models in the terminal: speculative decoding that never changes an answer.

commands:
{commands}

options:
  -h, --help     show this
  --version      show the version

`edgespec COMMAND --help` lists a command's options.
"""


def usage() -> str:
    """The text of `edgespec --help`."""
    lines = (f"  {name:<13}  {text}" for name, text in COMMANDS.items())
    return _USAGE.format(commands="\n".join(lines))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    output.prepare()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(given)
    except UsageError as problem:
        output.error(problem)
        return ExitCode.USAGE
    except EdgeSpecError as problem:
        output.error(problem)
        return ExitCode.ERROR
    except ModelFileProblem as problem:
        output.error(ModelFileError(problem.message, problem.hint))
        return ExitCode.ERROR
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        output.leave_broken_pipe()
        return ExitCode.ERROR


def _dispatch(given: list[str]) -> int:
    if not given:
        output.note(usage())
        return ExitCode.USAGE
    name = given[0]
    if name in {"-h", "--help", "help"}:
        output.answer(usage())
        return ExitCode.OK
    if name in {"--version", "-V"}:
        output.answer(f"edgespec {__version__}\n")
        return ExitCode.OK
    if name not in COMMANDS:
        raise UsageError(f"There is no command {name!r}.", f"Commands: {', '.join(COMMANDS)}.")
    command = importlib.import_module(f"edgespec.cli.{name}")
    return int(command.main(given[1:]))
