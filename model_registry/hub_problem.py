"""What can go wrong with the hub, as sentences with a next step.

Judged by the status and the headers alone: the text that a server sends is never shown, and
nothing here can hold the token.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from model_registry.problem import ModelFileProblem

Kind = Literal["offline", "missing", "gated", "rate-limited", "server", "network", "not-a-hub"]

_LATER = "Try again later; models that are already here run without the hub."
_TOKEN = "set HF_TOKEN to a token or run `hf auth login`"


class HubProblem(ModelFileProblem):
    """The hub did not give what was asked for."""

    def __init__(
        self,
        kind: Kind,
        message: str,
        hint: str,
        *,
        again: bool = False,
        reached: bool = True,
        wait: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.again = again
        """Whether asking again may help."""
        self.reached = reached
        """False when not even a connection came about."""
        self.wait = wait
        """Seconds that the hub wants to be left alone."""
        self.status = status
        """Of the HTTP answer, where there was one."""


def switched_off() -> bool:
    """Whether the environment forbids any call to the hub."""
    value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in ("1", "ON", "YES", "TRUE")


def offline() -> HubProblem:
    """The problem of a call that is forbidden."""
    return HubProblem(
        "offline",
        "The hub may not be asked: offline mode is on.",
        "Unset HF_HUB_OFFLINE to download; models that are already here run without it.",
        reached=False,
    )


def unreachable(endpoint: str) -> HubProblem:
    """The problem of a call that found no server."""
    return HubProblem(
        "network",
        f"The hub at {endpoint} cannot be reached.",
        "Check the network and its proxy; models that are already here run without it.",
        again=True,
        reached=False,
    )


def broken(message: str = "The connection to the hub broke.") -> HubProblem:
    """The problem of an answer that stopped half-way."""
    return HubProblem(
        "network", message, "Run the same command again: it goes on from here.", again=True
    )


def no_hub(endpoint: str) -> HubProblem:
    """The problem of an answer that no hub gives, such as the sign-in page of a network."""
    return HubProblem(
        "not-a-hub",
        f"What answers at {endpoint} is no model hub.",
        "Sign in to the network if it asks for that in a browser, or check HF_ENDPOINT.",
    )


def bad_token() -> HubProblem:
    """The problem of a token that cannot even be sent."""
    return HubProblem(
        "gated",
        "The token for the hub holds characters that no token has.",
        f"Copy it again from the hub's settings, then {_TOKEN}.",
    )


@dataclass(frozen=True)
class Refusal:
    """An answer with an error status, and what it was the answer to."""

    status: int
    code: str
    """The hub's own, in `X-Error-Code`; empty where it gives none."""
    bad_token: bool
    elsewhere: bool
    """Whether another server than the hub refuses: one that only delivers."""
    wait: float | None
    """Seconds that the server wants to be left alone."""
    endpoint: str
    repo: str
    """Empty for a search."""
    path: str
    has_token: bool

    @property
    def page(self) -> str:
        """Where a person can look at the repository."""
        return f"{self.endpoint}/{self.repo}"

    def problem(self) -> HubProblem:
        """What it means."""
        if self.status == 429:
            return self._too_many()
        if self.elsewhere or self.status == 408 or self.status >= 500:
            who = "server that delivers the file" if self.elsewhere else f"hub at {self.endpoint}"
            return self._server(f"The {who} failed with status {self.status}.", again=True)
        if self.code == "GatedRepo" or self.bad_token or self.status == 403:
            return self._denied()
        if self.status in (401, 404):
            return self._missing()
        message = f"The hub refuses the request with status {self.status}."
        return self._server(message, again=self.status == 416)

    def _problem(self, kind: Kind, message: str, hint: str, *, again: bool = False) -> HubProblem:
        return HubProblem(kind, message, hint, again=again, wait=self.wait, status=self.status)

    def _server(self, message: str, *, again: bool) -> HubProblem:
        return self._problem("server", message, _LATER, again=again)

    def _denied(self) -> HubProblem:
        if self.bad_token:
            message = "The hub does not accept the token."
            hint = f"Make a new one at {self.endpoint}/settings/tokens, then {_TOKEN}."
        elif self.code != "GatedRepo":
            message = f"The hub refuses access to {self.repo or 'its search'}."
            hint = f"Open {self.page} in a browser to see why; if it takes a token, {_TOKEN}."
        elif self.has_token:
            message = f"{self.repo} is gated, and the token in use has no access to it."
            hint = f"Accept its terms at {self.page} with the account of the token, then try again."
        else:
            message = f"{self.repo} is gated: only those who accepted its terms may have it."
            hint = (
                f"Accept them at {self.page}, make a token at {self.endpoint}/settings/tokens, "
                f"then {_TOKEN}."
            )
        return self._problem("gated", message, hint)

    def _missing(self) -> HubProblem:
        if self.code == "EntryNotFound":
            message, hint = f"{self.repo} has no file {self.path}.", f"See {self.page}."
        elif self.code == "RevisionNotFound":
            message, hint = f"{self.repo} has no such revision.", f"See {self.page}."
        else:
            message = f"{self.repo or 'What was asked for'} is not on the hub, or is private."
            token = "the token in use may not see it" if self.has_token else f"{_TOKEN}"
            hint = f"Check the spelling; if it is private, {token}."
        return self._problem("missing", message, hint)

    def _too_many(self) -> HubProblem:
        when = "Wait a few minutes" if self.wait is None else f"Wait {self.wait:.0f} seconds"
        return self._problem(
            "rate-limited",
            "The hub takes no more requests from here for now.",
            f"{when} and run the same command again; to be allowed more with a token, {_TOKEN}.",
            again=True,
        )
