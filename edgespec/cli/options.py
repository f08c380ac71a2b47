"""Options that commands share, and the settings made of them. Defaults come from the profile."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import get_args

from edgespec.cli.form import add_form_options, grammar_from
from edgespec.cli.layers import settings_here
from edgespec.cli.parser import Parser
from edgespec.cli.texts import add_text_options, with_texts
from edgespec.memory import KV_TYPES
from edgespec.personas import apply, load_all, with_pair
from edgespec.sampling import Sampling
from edgespec.settings import MAX_DRAFT, MAX_THREADS, Load, Method, Own, Settings, repeatable
from profiles.profile import AUTO, Auto, Profile

_FIELDS = {"temp": "temperature"}
"""Options whose field of `Sampling` has another name."""


class Told(argparse.Action):
    """Keeps the value, and that it was given: what is not merely a default stays as it is."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        _option: str | None = None,
    ) -> None:
        """Note the value down."""
        setattr(namespace, self.dest, values)
        namespace.told = frozenset({*vars(namespace).get("told", ()), self.dest})


def add_model_options(parser: argparse.ArgumentParser, profile: Profile) -> None:
    """What to load."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        metavar="NAME|PATH",
        default=argparse.SUPPRESS,
        help="stored pair or model, or a GGUF file (default: the small built-in model)",
    )
    group.add_argument(
        "--draft",
        metavar="NAME|PATH|lookup|none",
        default=argparse.SUPPRESS,
        help="what guesses ahead: a small model of the same vocabulary, the text so far, or nothing "
        "(default: the stored pair's own draft, else none)",
    )
    group.add_argument(
        "--ctx", type=positive, metavar="N", default=profile.context, help="context size in tokens"
    )
    group.add_argument(
        "--threads",
        type=auto_or(1, MAX_THREADS),
        metavar="N|auto",
        default=profile.threads,
        help="processor threads; auto is one a physical core",
    )
    add_memory_options(group, profile)
    group.add_argument(
        "--mmap",
        action=argparse.BooleanOptionalAction,
        default=profile.mmap,
        help="map the file instead of reading it: opens faster, but pages may be read again and again",
    )


def add_memory_options(group: argparse._ActionsContainer, profile: Profile) -> None:
    """Where it goes."""
    group.add_argument(
        "--gpu-layers",
        type=auto_or(-1),
        metavar="N|auto",
        default=profile.gpu_layers,
        help="layers of target and draft on a GPU, -1 for all; auto is as many as fit",
    )
    group.add_argument(
        "--kv-type",
        choices=(AUTO, *KV_TYPES),
        default=profile.kv_type,
        help="how the KV cache is stored; auto is f16, or q8_0 where only that fits",
    )
    group.add_argument(
        "--rpc",
        type=servers,
        metavar="HOST:PORT,...",
        default=argparse.SUPPRESS,
        help="use the devices of llama.cpp RPC servers too; they know no passwords: trusted networks only",
    )


def add_sampling_options(parser: argparse.ArgumentParser, profile: Profile) -> None:
    """How tokens are chosen."""
    group = parser.add_argument_group("sampling")
    sampling = profile.sampling
    group.add_argument(
        "--temp",
        action=Told,
        type=float,
        metavar="T",
        default=sampling.temperature,
        help="temperature; 0 is greedy",
    )
    group.add_argument(
        "--top-k",
        action=Told,
        type=int,
        metavar="K",
        default=sampling.top_k,
        help="keep the K most likely; 0 is off",
    )
    group.add_argument(
        "--top-p",
        action=Told,
        type=float,
        metavar="P",
        default=sampling.top_p,
        help="keep the fewest that hold P; 1 is off",
    )
    group.add_argument(
        "--min-p",
        action=Told,
        type=float,
        metavar="P",
        default=sampling.min_p,
        help="keep those at least P times as likely as the first; 0 is off",
    )
    group.add_argument(
        "--repeat-penalty",
        action=Told,
        type=float,
        metavar="X",
        default=sampling.repeat_penalty,
        help="1 is off",
    )
    for option in ("--presence-penalty", "--frequency-penalty"):
        group.add_argument(
            option, action=Told, type=float, metavar="X", default=0.0, help="0 is off"
        )
    group.add_argument(
        "--seed",
        type=natural,
        metavar="N",
        default=argparse.SUPPRESS,
        help="repeat the same answers, whatever drafts (default: new ones each time)",
    )


def add_answer_options(parser: argparse.ArgumentParser, profile: Profile) -> None:
    """What an answer is to be like."""
    group = parser.add_argument_group("answer")
    group.add_argument(
        "--draft-length",
        type=auto_or(0, MAX_DRAFT),
        metavar="N|auto",
        default=profile.draft_length,
        help=f"tokens guessed ahead in one round, {MAX_DRAFT} at most; auto is as many as pay",
    )
    group.add_argument(
        "--method",
        choices=get_args(Method),
        metavar="NAME",
        default="auto",
        help=f"how to guess: {', '.join(get_args(Method))}",
    )
    add_strict(group)
    group.add_argument(
        "--reproducible",
        action="store_true",
        help="answers that can be had again: draw a seed and tell it, unless --seed gives one",
    )
    group.add_argument(
        "--max-tokens",
        type=positive,
        metavar="N",
        default=argparse.SUPPRESS,
        help="tokens of an answer at most (default: as many as it takes)",
    )
    group.add_argument(
        "--stop",
        action="append",
        metavar="TEXT",
        default=argparse.SUPPRESS,
        help="end the answer before this text; may be repeated",
    )
    group.add_argument(
        "--system", action=Told, metavar="TEXT", default=argparse.SUPPRESS, help="system text"
    )
    group.add_argument(
        "--chat-template",
        metavar="NAME|FILE",
        default=argparse.SUPPRESS,
        help="chat format by llama.cpp's name, or a Jinja file (default: the one in the model's file)",
    )
    add_form_options(group)


def add_strict(group: argparse._ArgumentGroup) -> None:
    """`--strict`."""
    group.add_argument(
        "--strict",
        action="store_true",
        help="draft only as far as rounding stays that of plain decoding, to the last bit",
    )


def load_from(options: argparse.Namespace, draft_length: int | Auto) -> Load:
    """What the model options say."""
    given = vars(options)
    return Load(
        model=given.get("model"),
        draft=given.get("draft"),
        draft_length=None if draft_length == AUTO else draft_length,
        method=given.get("method", "auto"),
        context=options.ctx,
        threads=None if options.threads == AUTO else options.threads,
        mmap=options.mmap,
        strict=given.get("strict", False),
        gpu_layers=None if options.gpu_layers == AUTO else options.gpu_layers,
        kv_type=None if options.kv_type == AUTO else options.kv_type,
        rpc=given.get("rpc", ()),
    )


def sampling_from(options: argparse.Namespace) -> Sampling:
    """What the sampling options say. Raises UsageError for a value out of range."""
    return Sampling(
        temperature=options.temp,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        repeat_penalty=options.repeat_penalty,
        presence_penalty=options.presence_penalty,
        frequency_penalty=options.frequency_penalty,
    )


def settings_from(options: argparse.Namespace) -> Settings:
    """What all the options of a chat say. Raises UsageError, also for an unknown persona."""
    given = vars(options)
    sampling, system = sampling_from(options), given.get("system")
    fixed = frozenset(_FIELDS.get(name, name) for name in given.get("told", ()))
    settings = Settings(
        load=with_texts(load_from(options, options.draft_length), options),
        sampling=sampling,
        seed=given.get("seed"),
        max_tokens=given.get("max_tokens"),
        stop=tuple(given.get("stop", ())),
        system=system,
        chat_template=given.get("chat_template"),
        grammar=grammar_from(given),
        own=Own(sampling, system, fixed),
    )
    if given.get("reproducible"):
        settings = repeatable(settings)
    if "persona" not in given:
        return settings
    persona = load_all().named(options.persona)
    return with_pair(apply(settings, persona), persona)


def chat_parser(command: str, description: str) -> Parser:
    """A parser with all the options of a chat."""
    parser = Parser(command, description)
    profile = settings_here().profile
    add_model_options(parser, profile)
    add_sampling_options(parser, profile)
    add_answer_options(parser, profile)
    add_text_options(parser)
    parser.add_argument(
        "--persona",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="who answers: a system text with sampling to suit; `edgespec personas` lists them",
    )
    return parser


def auto_or(least: int, most: int | None = None) -> Callable[[str], int | Auto]:
    """The word `auto`, or a whole number from `least` to `most`."""

    def read(text: str) -> int | Auto:
        if text == AUTO:
            return AUTO
        try:
            value = _at_least(text, least)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, nor is it `auto`") from None
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"{value} is more than {most}, which is the most")
        return value

    return read


def servers(text: str) -> tuple[str, ...]:
    """Addresses between commas."""
    return tuple(part for part in text.split(",") if part)


def positive(text: str) -> int:
    """A whole number from 1."""
    return _at_least(text, 1)


def natural(text: str) -> int:
    """A whole number from 0."""
    return _at_least(text, 0)


def _at_least(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number
