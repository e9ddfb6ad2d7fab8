"""One server of the stack over HTTP, with failures in words that say what to do."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import requests
import requests.auth

from ascend_elk.errors import UserError

_TIMEOUT = (10, 120)
# Not done yet, and worth another try: overloaded, or shards still starting.
_BUSY = (429, 503)
_PAUSES = (0.5, 1, 2)


@dataclass(frozen=True)
class Credentials:
    """Who logs in: an API key (``id:key`` or its base64 form), or a user; nothing where security is off."""

    api_key: str | None = None
    user: str | None = None
    password: str | None = None

    def header(self) -> str | None:
        """The ``Authorization`` header."""
        if self.api_key is not None:
            return f"ApiKey {encode_api_key(self.api_key)}"
        if self.user is not None:
            return f"Basic {_base64(f'{self.user}:{self.password or str()}')}"
        return None


def encode_api_key(key: str) -> str:
    """The form that the header wants: base64 of ``id:key``."""
    return _base64(key) if ":" in key else key


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class _Authorization(requests.auth.AuthBase):
    """Sends the credentials given, and nothing from a .netrc."""

    def __init__(self, credentials: Credentials) -> None:
        self._header = credentials.header()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._header is not None:
            request.headers["Authorization"] = self._header
        return request


class ApiError(Exception):
    """The server refused a request.

    Attributes:
        status: of HTTP.
        reason: what the server says.
        body: its answer, parsed where it is JSON.
    """

    def __init__(self, status: int, reason: str, body: Any = None) -> None:
        """Keep what the server said."""
        super().__init__(f"{reason} (HTTP {status})")
        self.status = status
        self.reason = reason
        self.body = body


class UnreachableError(UserError):
    """The server does not answer; it may later."""


class Server:
    """A client of one base URL.

    Args:
        name: ``Elasticsearch`` or ``Kibana``, for messages.
        url: base URL; a path in it is a prefix of every request.
        credentials: who logs in.
        ca: certificate authority that signed the server's certificate; the system's where ``None``.
        headers: sent with every request.

    Raises:
        UserError: the URL or the CA file is none.
    """

    def __init__(
        self,
        name: str,
        url: str,
        credentials: Credentials,
        *,
        ca: Path | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare; nothing is sent yet."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"{url!r} is no URL of {name}; write for example https://host:9200")
        if parts.username or parts.password:
            raise UserError(
                f"the URL of {name} must not hold a password; pass --user and ASCEND_ELK_PASSWORD"
            )
        if ca is not None:
            _check_ca(ca)
        self.name = name
        self.url = url.rstrip("/")
        self._anonymous = credentials.header() is None
        self._session = requests.Session()
        self._session.auth = _Authorization(credentials)
        self._verify = str(ca) if ca is not None else True
        self._session.headers.update(headers or {})
        self._session.headers["User-Agent"] = "ascend-elk"

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, str] | None = None,
        files: Any = None,
    ) -> requests.Response:
        """Send one request.

        Raises:
            ApiError: the server answered with an error other than those below.
            UserError: it cannot be reached or trusted, or does not know the user, or the user may not do it.
        """
        response = self._send(method, path, json=json, params=params, files=files)
        for pause in _PAUSES:
            if response.status_code not in _BUSY:
                break
            time.sleep(pause)
            response = self._send(method, path, json=json, params=params, files=files)
        if response.status_code == 401 and self._anonymous:
            raise UserError(
                f"{self.name} at {self.url} wants to know who asks; pass --user, or set ASCEND_ELK_API_KEY"
            )
        if response.status_code == 401:
            raise UserError(
                f"{self.name} at {self.url} does not accept the user name, password or API key; "
                "check --user, ASCEND_ELK_PASSWORD or ASCEND_ELK_API_KEY"
            )
        if response.is_redirect:
            raise UserError(
                f"{self.name} at {self.url} redirects to {response.headers.get('Location')!r}; "
                "pass the final URL, with its path prefix"
            )
        if response.status_code >= 400:
            body = _parsed(response)
            raise ApiError(response.status_code, _reason(response, body), body)
        return response

    def send(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout: tuple[float, float] = _TIMEOUT,
    ) -> requests.Response:
        """Send one request once, and return the answer whatever its status.

        Raises:
            UnreachableError: the server does not answer.
            UserError: it cannot be trusted.
        """
        headers = {"Content-Type": content_type} if data is not None else None
        return self._send(method, path, data=data, params=params, headers=headers, timeout=timeout)

    def _send(
        self, method: str, path: str, *, timeout: tuple[float, float] = _TIMEOUT, **what: Any
    ) -> requests.Response:
        try:
            return self._session.request(
                method,
                self.url + path,
                # Given here, it wins over REQUESTS_CA_BUNDLE.
                verify=self._verify,
                timeout=timeout,
                allow_redirects=False,
                **what,
            )
        except requests.exceptions.SSLError as error:
            raise UserError(self._tls_problem(error)) from None
        except requests.exceptions.Timeout:
            raise UnreachableError(
                f"{self.name} at {self.url} does not answer; is it overloaded or blocked?"
            ) from None
        except (requests.exceptions.RequestException, OSError):
            raise UnreachableError(
                f"{self.name} cannot be reached at {self.url}; "
                "check the URL (http or https?), and that the server runs"
            ) from None

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """Return parsed JSON, or ``None`` where there is no such thing (404)."""
        try:
            response = self.request("GET", path, params=params)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return self.parsed(response)

    def parsed(self, response: requests.Response) -> Any:
        """Parse an answer.

        Raises:
            UserError: it is no JSON, so something else answers at that URL.
        """
        body = _parsed(response)
        if body is None:
            raise UserError(
                f"what answers at {self.url} is not {self.name}; check the URL and its path prefix"
            )
        return body

    def _tls_problem(self, error: Exception) -> str:
        text = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in text and "ostname" not in text and "IP address" not in text:
            return (
                f"the certificate of {self.name} at {self.url} is signed by an unknown authority; "
                "pass its CA certificate with --ca FILE"
            )
        if "CERTIFICATE_VERIFY_FAILED" in text or "doesn't match" in text:
            return (
                f"the certificate of {self.name} is not for the host in {self.url}; "
                "use the name that the certificate carries"
            )
        return f"{self.name} at {self.url} does not speak TLS as expected; try http:// or check the port"


def _check_ca(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"there is no CA file {path}; pass the PEM file of the authority with --ca")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError as error:
        # A file that is not PEM is an SSLError, which is an OSError without words for people.
        reason = "holds no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise UserError(f"the CA file {path} cannot be used: {reason}; pass another with --ca") from None


def segment(text: str) -> str:
    """One segment of a path."""
    return quote(text, safe="")


def _parsed(response: requests.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _reason(response: requests.Response, body: Any) -> str:
    """What the server says went wrong, in either product's form."""
    if isinstance(body, dict):
        error = body.get("error")
        if isinstance(error, dict):
            causes = error.get("root_cause") or [error]
            return str(causes[0].get("reason") or error.get("reason") or error)
        for key in ("message", "error"):
            if isinstance(body.get(key), str):
                return str(body[key])
    return response.text[:300] or str(response.reason)
