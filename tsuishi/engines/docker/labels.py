"""The labels of images, and the facts that are read from them later."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tsuishi import __version__
from tsuishi.base.checkout import git_state
from tsuishi.engines.interface import Kept
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from docker.models.images import Image

OURS = "io.tsuishi."
# The prefix of OCI's annotations.
OCI = "org.opencontainers.image."


def labels(environment: Environment, spec_id: str, base: "Image", base_used: str) -> dict[str, str]:
    """The labels for an environment's image on the base image `base`. `base_used` is the reference of the base."""
    assert environment.base is not None
    revision = git_state()
    return {
        f"{OCI}title": f"tsuishi {environment.made_as}: {environment.title}",
        f"{OCI}version": __version__,
        f"{OCI}revision": (revision["commit"] or "unknown") + ("-dirty" if revision["dirty"] else ""),
        f"{OCI}base.name": environment.base.reference,
        f"{OCI}base.digest": environment.base.digest or "unpinned",
        f"{OURS}base-used": base_used,
        f"{OURS}base-image": str(base.id),
        f"{OURS}spec-id": spec_id,
        f"{OURS}lock-sha256": environment.lock_sha256,
    }


def details(
    environment: Environment, labels: Mapping[str, str], image: Mapping[str, Any], created: str | None
) -> dict[str, Any]:
    """Facts for the environment's record: the base in the spec, the base that was used, substitutions, the image.

    labels: of the image. image: id, tag, size_bytes and layers.
    """
    assert environment.base is not None
    asked, used = environment.base.reference, labels[f"{OURS}base-used"]
    replaced = used.partition("@")[0] not in (asked, asked.rpartition(":")[0])
    return {
        "base": {
            "reference": asked,
            "used": used,
            "digest": environment.base.digest or "unpinned",
            "image_id": labels.get(f"{OURS}base-image", ""),
        },
        "substitutions": [*([{"asked": asked, "used": used}] if replaced else []), *environment.stand_ins],
        "image": {
            # Equal layers have equal files. The id of the image also depends on the time of its build.
            **image,
            "created": created,
            "labels": dict(sorted(labels.items())),
        },
    }


def kept(image: "Image", tag: str, engine: str) -> Kept | None:
    """The image with this tag; None if tsuishi did not give the tag: another program may have built on our image."""
    # Podman adds a registry to names that have none.
    repository, _, version = tag.removeprefix("localhost/").removeprefix("docker.io/").rpartition(":")
    owner, _, environment = repository.partition("/")
    if owner != "tsuishi" or image.labels.get(f"{OURS}spec-id") != version:
        return None
    return Kept(
        environment=environment,
        engine=engine,
        name=tag,
        spec_id=version,
        realised_id=str(image.id),
        size_bytes=int(image.attrs.get("Size", 0)),
        base_digest=image.labels.get(f"{OCI}base.digest", ""),
        lock_sha256=image.labels.get(f"{OURS}lock-sha256", ""),
        created=str(image.attrs.get("Created", "")),
    )
