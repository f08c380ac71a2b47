"""The hub client at work: the only importer of `huggingface_hub`, which takes a third of a second."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from huggingface_hub import HfApi, ModelInfo, constants, errors, hf_hub_url, try_to_load_from_cache
from huggingface_hub.utils import (  # type: ignore[attr-defined] # documented, but exported lazily
    build_hf_headers,
    get_session,
    httpx,
    parse_ratelimit_headers,
)
from huggingface_hub.utils.logging import set_verbosity

from model_registry import body
from model_registry.hub_problem import (
    HubProblem,
    Refusal,
    bad_token,
    broken,
    no_hub,
    offline,
    unreachable,
)

if TYPE_CHECKING:
    import httpx2

set_verbosity(logging.CRITICAL)  # it would write across the screen

_APP = "edgespec"
_NONSENSE = (ValueError, TypeError, KeyError, AttributeError)
"""What comes of an answer that is no JSON, or not the hub's."""


class Client:
    """Calls to one hub; every method but `cached` raises HubProblem.

    `timeout`: seconds of silence, None for the hub client's own setting.
    """

    def __init__(self, endpoint: str, timeout: float | None) -> None:
        self._endpoint = endpoint
        self._timeout = timeout or float(constants.HF_HUB_DOWNLOAD_TIMEOUT)

    def info(self, repo: str, revision: str | None) -> ModelInfo:
        """What the hub knows of a model, with sizes and digests of its files."""
        api = HfApi(endpoint=self._endpoint, library_name=_APP)
        return api.model_info(repo, revision=revision, files_metadata=True, timeout=self._timeout)

    def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        """The hub's answer to a search, as JSON. The client's own search takes no timeout."""
        response = get_session().get(
            f"{self._endpoint}/api/models",
            params={"search": text, "filter": "gguf", "sort": "downloads", "limit": str(limit)},
            headers=build_hf_headers(library_name=_APP),
            timeout=self._timeout,
        )
        self.check(response, "", "")
        found: list[dict[str, Any]] = response.json()
        return found

    def get(self, repo: str, commit: str, path: str, wanted: str) -> httpx2.Response:
        """The answer to a request for a file, its body not read; the caller closes it.

        `wanted` is the header `Range`, or empty. The token goes to the hub alone: the session
        drops it when it is sent on to another origin.
        """
        url = hf_hub_url(repo, path, revision=commit, endpoint=self._endpoint)
        headers = build_hf_headers(library_name=_APP) | {"Accept-Encoding": "identity"}
        if wanted:
            headers["Range"] = wanted
        session = get_session()
        request = session.build_request("GET", url, headers=headers, timeout=self._timeout)
        response: httpx2.Response = session.send(request, stream=True)
        return response

    def chunks(self, response: httpx2.Response) -> Iterator[memoryview]:
        """The body, as `body.chunks` gives it."""
        length = response.headers.get("Content-Length", "")
        try:
            yield from body.chunks(
                response, int(length) if length.isdigit() else None, self._timeout
            )
        except (TimeoutError, httpx.TimeoutException) as error:
            raise broken("The hub fell silent.") from error
        except (OSError, httpx.HTTPError) as error:
            raise broken() from error

    def check(self, response: httpx2.Response, repo: str, path: str) -> None:
        """Raise what an answer with an error status means."""
        if response.status_code < 300:
            return
        asked = (response.history or [response])[0].request
        excuse = response.headers.get("X-Error-Message", "")
        raise Refusal(
            status=response.status_code,
            code=response.headers.get("X-Error-Code", ""),
            bad_token=excuse.startswith("Invalid credentials"),
            elsewhere=_origin(response.url) != _origin(httpx.URL(self._endpoint)),
            wait=_wait(response),
            endpoint=self._endpoint,
            repo=repo,
            path=path,
            has_token="Authorization" in asked.headers,
        ).problem()

    @staticmethod
    def cached(repo: str, commit: str, path: str, folder: str | None) -> str | None:
        """Where a cache in the hub client's layout has a file at a commit; its own if None."""
        try:
            found = try_to_load_from_cache(repo, path, cache_dir=folder, revision=commit)
        except (ValueError, OSError):
            return None
        return found if isinstance(found, str) else None

    @contextmanager
    def translated(self, repo: str, path: str = "") -> Iterator[None]:
        """Turn what the hub client raises into a HubProblem."""
        try:
            yield
        except HubProblem:
            raise
        except errors.OfflineModeIsEnabled as error:
            raise offline() from error
        except errors.HfHubHTTPError as error:
            self.check(error.response, repo, path)
            raise no_hub(self._endpoint) from error
        except (httpx.LocalProtocolError, UnicodeEncodeError):
            raise bad_token() from None  # the original quotes the token
        except (errors.OIDCError, errors.DeviceCodeError) as error:
            raise bad_token() from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._network(error) from error
        except errors.HFValidationError as error:
            raise HubProblem(
                "missing", f"{repo!r} cannot be a model on the hub.", "Write it as OWNER/NAME."
            ) from error
        except OSError as error:
            raise unreachable(self._endpoint) from error
        except _NONSENSE as error:
            raise no_hub(self._endpoint) from error

    def _network(self, error: Exception) -> HubProblem:
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)):
            return unreachable(self._endpoint)
        if isinstance(error, httpx.TimeoutException):
            return broken("The hub fell silent.")
        if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.TooManyRedirects):
            return no_hub(self._endpoint)
        return broken()


def _wait(response: httpx2.Response) -> float | None:
    """Seconds to wait by the headers: `Retry-After` (a number or a date), else the hub's own."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    if text:
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (date - datetime.now(UTC)).total_seconds())
    limits = parse_ratelimit_headers(response.headers)
    return float(limits.reset_in_seconds) if limits and response.status_code == 429 else None


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
