"""`edgespec profile`: the settings in force, and which file or option set each of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from edgespec.cli import layers, output
from edgespec.cli.layers import settings_here
from edgespec.cli.models import print_json, table
from edgespec.cli.options import add_answer_options, add_model_options, add_sampling_options
from edgespec.cli.output import ExitCode
from edgespec.cli.parser import Parser, add_json
from model_registry import locate
from profiles.layers import Layer, Resolved, user_file
from profiles.profile import default, flat
from profiles.tuned import TunedStore

# Where the command line keeps the value of a key, and the option that sets it.
_OPTIONS = {
    "context": ("ctx", "--ctx"),
    "draft_length": ("draft_length", "--draft-length"),
    "threads": ("threads", "--threads"),
    "gpu_layers": ("gpu_layers", "--gpu-layers"),
    "kv_type": ("kv_type", "--kv-type"),
    "mmap": ("mmap", "--mmap"),
    "sampling.temperature": ("temp", "--temp"),
    "sampling.top_k": ("top_k", "--top-k"),
    "sampling.top_p": ("top_p", "--top-p"),
    "sampling.min_p": ("min_p", "--min-p"),
    "sampling.repeat_penalty": ("repeat_penalty", "--repeat-penalty"),
}


def main(arguments: Sequence[str]) -> int:
    """Print and return the exit code."""
    options = parser().parse_args(arguments)
    if options.what == "path":
        path = user_file()
        if options.json:
            print_json({"path": str(path), "exists": path.exists()})
        else:
            output.answer(f"{path}\n")
        return ExitCode.OK
    found = settings_here(tuned=_tuned(options), options=_given(options))
    if options.json:
        print_json(_facts(found))
    else:
        rows = [
            (key, _shown(value), found.sources[key]) for key, value in flat(found.profile).items()
        ]
        output.answer(table([("KEY", "VALUE", "SET BY"), *rows]))
        output.answer(f"\nLater ones win: {', '.join(found.layers)}\n")
    return ExitCode.OK


def parser() -> Parser:
    """The options of the command: those of a chat, to see what they would change."""
    options = Parser(
        "profile",
        "show: the settings in force with the options given here, and who set them. "
        "path: the file that your own settings go into.",
    )
    options.add_argument(
        "what", choices=("show", "path"), metavar="show|path", help="what to print"
    )
    add_json(options)
    profile = default()
    add_model_options(options, profile)
    add_sampling_options(options, profile)
    add_answer_options(options, profile)
    # Only what is typed is to be found in the result; defaults are what the command prints.
    names = {name for name, _ in _OPTIONS.values()}
    for action in options._actions:
        if action.dest in names:
            action.default = argparse.SUPPRESS
    return options


def _tuned(options: argparse.Namespace) -> Layer | None:
    """What measuring the model that is asked about on this machine has set: the threads that won."""
    model = vars(options).get("model")
    if model is None:
        return None
    name = locate.find(model).target.stem
    store = TunedStore.default()
    here = layers.this_machine().digest
    known = (one for one in store.all() if (one.target_name, one.key.hardware) == (name, here))
    found = next(known, None)
    if found is None:
        return None
    return Layer(str(store.folder / f"{found.key.name}.json"), {"threads": found.threads})


def _given(options: argparse.Namespace) -> list[Layer]:
    typed = vars(options)
    return [
        Layer(option, {key: typed[name]})
        for key, (name, option) in _OPTIONS.items()
        if name in typed
    ]


def _facts(found: Resolved) -> dict[str, object]:
    """For JSON. The keys are a published format."""
    values = flat(found.profile)
    return {
        "settings": {
            key: {"value": value, "source": found.sources[key]} for key, value in values.items()
        },
        "layers": list(found.layers),
        "user_file": str(user_file()),
    }


def _shown(value: object) -> str:
    """As it stands in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
