"""Logs in to a registry of images as Docker does: by name and password, or by a token for them (RFC 6750).

Names and passwords are those of `docker login`, also where a credential helper keeps them.
"""

import base64
import re
from collections.abc import Generator
from urllib.parse import urlsplit

from httpx2 import URL, Auth, Request, Response

from tsuishi.base.errors import UserError

# A challenge, as `Bearer realm="https://…",service="…"`, and its parts.
_CHALLENGE = re.compile(r"\s*(basic|bearer)\s+(.*)", re.IGNORECASE)
_PART = re.compile(r'([a-z]+)\s*=\s*"([^"]*)"', re.IGNORECASE)


class RegistryLogin(Auth):
    """Answers the challenges of a registry; the last answer is sent with every later request to it.

    Other servers, to which a registry sends for its blobs, get no answer. Passwords and tokens are sent encrypted only.
    A registry without a login is asked without.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._answer = ""

    def sync_auth_flow(self, request: Request) -> Generator[Request, Response, None]:
        """The request; after a challenge a request for a token, and the request again."""
        if request.url.netloc.decode() != self._host or request.url.scheme != "https":
            yield request
            return
        if self._answer:
            request.headers["Authorization"] = self._answer
        response = yield request
        challenge = _CHALLENGE.fullmatch(response.headers.get("WWW-Authenticate", ""))
        if response.status_code != 401 or challenge is None:
            return
        if challenge[1].lower() == "basic":
            answer = self._basic()
        else:
            asked = self._token_request(dict(_PART.findall(challenge[2])))
            answer = _bearer((yield asked)) if asked else ""
        if answer and answer != request.headers.get("Authorization"):
            self._answer = request.headers["Authorization"] = answer
            yield request

    def _token_request(self, parts: dict[str, str]) -> Request | None:
        """The request for a token; None where the challenge names no server for tokens that is encrypted."""
        realm = parts.get("realm", "")
        if urlsplit(realm).scheme != "https":
            return None
        asked = {key: value for key, value in parts.items() if key in ("service", "scope")}
        basic = self._basic()
        return Request("GET", URL(realm).copy_merge_params(asked), headers={"Authorization": basic} if basic else {})

    def _basic(self) -> str:
        """The name and password for the registry as a header; empty without a login."""
        import docker.auth
        from docker.errors import DockerException

        try:
            login = docker.auth.load_config().resolve_authconfig(self._host) or {}
        except DockerException as error:
            raise UserError(f"~/.docker/config.json names a credential helper that fails: {error}") from error
        name, password = login.get("username"), login.get("password")
        if not name or not password:
            return ""
        return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _bearer(response: Response) -> str:
    """The token in an answer as a header; empty where there is none."""
    response.read()
    try:
        content = response.json()
    except ValueError:
        return ""
    token = (content.get("token") or content.get("access_token")) if isinstance(content, dict) else None
    return f"Bearer {token}" if isinstance(token, str) and response.is_success else ""
