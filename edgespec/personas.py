"""Who answers: a system text, how tokens are chosen, and the pair that suits it.

Light: the schema, the files and the store are loaded by the functions that need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgespec.errors import UsageError

if TYPE_CHECKING:
    from edgespec.settings import Settings

BUILTIN = "builtin"
"""`Persona.source` of those that come with EdgeSpec."""


@dataclass(frozen=True, slots=True)
class Persona:
    """One who answers."""

    name: str
    """What `--persona` takes."""
    title: str
    about: str
    """A few words; may be empty."""
    system: str
    """Empty for none."""
    sampling: Mapping[str, float | int] = field(default_factory=dict)
    """Fields of `Sampling` that it sets; the others stay as the settings have them."""
    pair: str | None = None
    """The stored pair or model that it prefers."""
    source: str = BUILTIN
    """`builtin`, or the file that it comes from."""


@dataclass(frozen=True, slots=True)
class Personas:
    """All that can be chosen from, and what is wrong with the rest."""

    found: dict[str, Persona]
    """By name; those that come along first."""
    problems: tuple[str, ...] = ()
    """One sentence for each file that was left out; it names file and key."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Name of a persona whose file was left out -> its problem."""

    def named(self, name: str) -> Persona:
        """The persona of a name; case does not matter. Raises UsageError."""
        key = name.strip().casefold()
        if key in self.broken:
            raise UsageError(self.broken[key], "Mend or remove that file.")
        if key in self.found:
            return self.found[key]
        near = get_close_matches(key, self.found, n=3)
        raise UsageError(
            f"There is no persona {name!r}.",
            f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(self.found)}.",
        )


def user_folder() -> Path:
    """Where the user's own personas are, or would be: NAME.yaml each."""
    from platformdirs import user_config_path  # noqa: PLC0415 - not needed for the first picture

    return user_config_path("edgespec", appauthor=False) / "personas"


def load_all() -> Personas:
    """Those that come along, and the user's own, which win. A broken one is left out and told."""
    from edgespec.persona_file import PersonaProblem, builtin, read  # noqa: PLC0415 - see above

    found = {persona.name: persona for persona in builtin()}
    broken: dict[str, str] = {}
    problems: list[str] = []
    sources: dict[str, Path] = {}
    for path in _files(user_folder(), problems):
        name = path.stem.casefold()
        if name in sources:
            problems.append(f"{path} is left out: {sources[name].name} has the same name.")
            continue
        sources[name] = path
        try:
            found[name] = read(path, name)
        except PersonaProblem as problem:
            # Another of this name must not answer in its place.
            found.pop(name, None)
            broken[name] = str(problem)
            problems.append(str(problem))
    return Personas(found, tuple(problems), broken)


def _files(folder: Path, problems: list[str]) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(f"{folder} cannot be read: {error.strerror}.")
        return []
    endings = {".yaml", ".yml"}
    return [p for p in inside if p.suffix.casefold() in endings and not p.name.startswith(".")]


def apply(settings: Settings, persona: Persona) -> Settings:
    """The settings with this persona in the place of the one before.

    What options of the command line gave stays (`Settings.own.fixed`). The model does not change.
    """
    from edgespec.settings import Own  # noqa: PLC0415 - brings numpy along

    own = settings.own or Own(settings.sampling, settings.system)
    changes: dict[str, Any] = {
        key: value for key, value in persona.sampling.items() if key not in own.fixed
    }
    keeps_system = "system" in own.fixed or not persona.system
    return replace(
        settings,
        persona=persona.name,
        own=own,
        sampling=replace(own.sampling, **changes),
        system=own.system if keeps_system else persona.system,
    )


def with_pair(settings: Settings, persona: Persona) -> Settings:
    """The settings with the pair that the persona prefers, if no model was named.

    Where that pair is not stored, nothing changes and a notice says how to get it.
    """
    if settings.load.model is not None or persona.pair is None:
        return settings
    missing = pair_problem(persona)
    if missing:
        return replace(settings, notices=(*settings.notices, missing))
    return replace(settings, load=replace(settings.load, model=persona.pair))


def pair_problem(persona: Persona) -> str:
    """Why the pair that a persona prefers cannot be used now, and what to do; empty when it can."""
    from model_registry import locate  # noqa: PLC0415 - brings the catalogue's schema along
    from model_registry.problem import ModelFileProblem  # noqa: PLC0415 - see above

    if persona.pair is None:
        return ""
    try:
        locate.find(persona.pair)
    except ModelFileProblem:
        return (
            f"The persona {persona.name} prefers {persona.pair}, which is not on this machine. "
            f"Fetch it: edgespec pull {persona.pair}"
        )
    return ""
