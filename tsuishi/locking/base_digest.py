"""The base image of a lock: its digest, as the registry has it now."""

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
    """The digest to write into [base]: what it was where nobody can be asked, empty where there is none to be had.

    A mirror that is a registry answers for the reference it stands for. Raises UserError where there is no digest yet
    and the registry is out of reach.
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
            # Podman answers so whatever it is asked for: it reaches registries by pulling.
            digest = _pulled_digest(client, used) if isinstance(error, NotFound) else ""
            problem = str(error.explanation or error).strip()
        here = _digests_here(client, used) is not None
    if digest:
        if used != base.reference:
            say(f"base digest: as {used} has it, the mirror of {base.reference}")
        return digest
    if here:
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
    """For engines that ask a registry only by pulling (Podman): the digest a pull notes; empty where it fails."""
    from docker.errors import APIError

    try:
        client.images.pull(reference)
    except APIError:
        return ""
    repository = reference.rpartition(":")[0]
    noted = (one.partition("@") for one in _digests_here(client, reference) or ())
    return next((digest for name, _, digest in noted if f"/{repository}".endswith(f"/{name}")), "")


def _digests_here(client: "DockerClient", reference: str) -> list[str] | None:
    """`repository@digest` of an image here; none where it came from no registry; None where it is not here."""
    image = image_or_none(client, reference)
    return None if image is None else list(image.attrs["RepoDigests"])
