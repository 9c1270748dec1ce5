"""The digest of a lock's base image, as its registry states it now."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Say
from tsuishi.base.settings import mirrored
from tsuishi.engines.docker.daemon import image_or_none
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker import DockerClient


def resolve_digest(environment: Environment, engine: DockerEngine, mirrors: Mapping[str, str], say: Say) -> str:
    """The digest to write into [base], from the registry or its mirror.

    Without an engine, and for an image that came from no registry, it is the digest of the spec, which may be empty.
    Raises UserError where the spec has no digest and the registry is out of reach.
    """
    from docker.errors import APIError, NotFound

    base = environment.base
    assert base is not None
    before = base.digest or "open"
    usable = engine.availability()
    if not usable.usable:
        say(f"base digest: left as it is ({before}): {usable.reason}; {usable.remedy}")
        return base.digest
    used = mirrored(base.reference, mirrors)
    with engine.client() as client:
        try:
            digest, problem = str(client.images.get_registry_data(used).id), ""
        except APIError as error:
            # Podman always answers so: it reaches registries only by a pull.
            digest = _pulled_digest(client, used) if isinstance(error, NotFound) else ""
            problem = str(error.explanation or error).strip()
        is_here = _digests_here(client, used) is not None
    if digest:
        if used != base.reference:
            say(f"base digest: as {used} has it, the mirror of {base.reference}")
        return digest
    if is_here:
        say(f"base digest: left as it is ({before}): {used} is an image of this machine that came from no registry")
    elif base.digest:
        say(f"base digest: left as it is ({before}): {used} cannot be asked for ({problem})")
    else:
        raise UserError(
            f"{environment.name}: the digest of {used} cannot be asked for: {problem}; lock it where the registry can "
            "be reached, or name a copy of the image in tsuishi.mirrors"
        )
    return base.digest


def _pulled_digest(client: "DockerClient", reference: str) -> str:
    """The digest that an image has after a pull; empty where the pull fails. For engines that cannot ask (Podman)."""
    from docker.errors import APIError

    try:
        client.images.pull(reference)
    except APIError:
        return ""
    repository = reference.rpartition(":")[0]
    digests = (text.partition("@") for text in _digests_here(client, reference) or ())
    return next((digest for name, _, digest in digests if f"/{repository}".endswith(f"/{name}")), "")


def _digests_here(client: "DockerClient", reference: str) -> list[str] | None:
    """`repository@digest` of an image on this machine; empty where it came from no registry; None without the image."""
    image = image_or_none(client, reference)
    return None if image is None else list(image.attrs["RepoDigests"])
