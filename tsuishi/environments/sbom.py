"""The bill of materials of an environment: everything that is installed in it, as CycloneDX 1.6.

The same image gives the same text, so the text has no date; an SPDX document would need a date. Hashes come from the
lock, with which the artefacts were verified. The parts of the base image have no hash.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tsuishi import __version__
from tsuishi.engines.interface import Built
from tsuishi.engines.library_wheel import package_name
from tsuishi.results.facts import Facts
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.environment import Environment, without_engine

# The registry of a package URL of type "docker" that names no registry.
_DOCKER_HUB = "docker.io"
# The keys that a reader wants to see first.
_HEAD = ("$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata")


def bill_of_materials(built: Built, facts: Facts) -> dict[str, Any]:
    """The CycloneDX document of an image. facts: the report of suites/workloads/experiments/probe.py in a container."""
    image = Component(
        name=f"tsuishi/{built.environment.made_as}",
        version=built.spec_id,
        type=ComponentType.CONTAINER,
        description=built.environment.title,
        bom_ref=f"image:{built.realised_id}",
        properties=_properties(image_id=built.realised_id, spec_id=built.spec_id),
    )
    components = [_base(built), _python(facts)]
    components += _python_packages(built.environment, facts)
    components += _libraries(built.environment)
    components += _system_packages(built.environment, facts)
    return _document(image, components, f"{built.spec_id}@{built.realised_id}")


def bill_of_record(record: EnvironmentRecord, version: str) -> dict[str, Any]:
    """The CycloneDX document of an environment that is no image: Python and packages, as its record names them.

    version: of the tsuishi that writes it.
    """
    environment = Component(
        name=record.name,
        version=record.spec_id,
        type=ComponentType.PLATFORM,
        description=record.title,
        bom_ref=f"environment:{record.realised_id}",
        properties=_properties(realised_id=record.realised_id or "", spec_id=record.spec_id or ""),
    )
    components = [_python(Facts(python=record.python))] if record.python else []
    for name, version in sorted((record.packages or {}).items()):
        components.append(_library(_package_url(name, version, without_engine(record.name)), (), place="environment"))
    return _document(environment, components, f"{record.spec_id}@{record.realised_id}", version)


def _document(
    described: Component, components: list[Component], name: str, version: str = __version__
) -> dict[str, Any]:
    """The document of something that consists of components; its serial number is made from `name`."""
    tool = Component(name="tsuishi", version=version, type=ComponentType.APPLICATION, bom_ref="tsuishi")
    bill = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, name),
        metadata=BomMetaData(component=described, tools=ToolRepository(components=[tool])),
        components=components,
    )
    bill.register_dependency(described, components)
    document: dict[str, Any] = json.loads(JsonV1Dot6(bill).output_as_string())
    del document["metadata"]["timestamp"]
    return {**{key: document[key] for key in _HEAD}, **document}


def _base(built: Built) -> Component:
    """The base image, by the name that was used. The name in the spec and the id of the image are properties."""
    base = built.details["base"]
    name, _, digest = base["used"].partition("@")
    name, _, tag = (name, "", "") if digest else name.rpartition(":")
    return Component(
        name=name,
        version=digest or tag,
        type=ComponentType.CONTAINER,
        bom_ref=f"base:{base['used']}",
        purl=_image_purl(name, digest or tag),
        hashes=_hashes([digest.removeprefix("sha256:")] if digest else []),
        properties=_properties(asked=base["reference"], image_id=base["image_id"]),
    )


def _image_purl(name: str, version: str) -> PackageURL | None:
    """The package URL of an image; None where it comes from no registry, so that only this machine knows its name."""
    registry, _, path = name.partition("/")
    if "." not in registry and ":" not in registry:
        return None
    namespace, _, last = path.rpartition("/")
    qualifiers = {} if registry == _DOCKER_HUB else {"repository_url": registry}
    return PackageURL(type="docker", namespace=namespace or None, name=last, version=version, qualifiers=qualifiers)


def _python(facts: Facts) -> Component:
    version = str(facts.python)
    return Component(
        name="CPython",
        version=version,
        type=ComponentType.PLATFORM,
        bom_ref=f"python@{version}",
        purl=PackageURL(type="generic", name="python", version=version),
        cpe=f"cpe:2.3:a:python:python:{version}:*:*:*:*:*:*:*",
    )


def _python_packages(environment: Environment, facts: Facts) -> Iterator[Component]:
    """The packages of the environment, with a hash where the lock has only one; then those of the base's own Python."""
    locked = {(pin.name, pin.version): pin.sha256 for pin in environment.pins}
    for name, version in sorted(facts.packages.items()):
        accepted = locked.get((name, version), ())
        purl = _package_url(name, version, environment.made_as)
        yield _library(purl, accepted if len(accepted) == 1 else (), place="environment")
    for name, version in sorted(facts.base_packages.items()):
        yield _library(PackageURL(type="pypi", name=name, version=version), (), place="base")


def _package_url(name: str, version: str, environment: str) -> PackageURL:
    """The package URL of a package; that of an environment's own libraries is on no index."""
    return PackageURL(type="generic" if name == package_name(environment) else "pypi", name=name, version=version)


def _libraries(environment: Environment) -> Iterator[Component]:
    """The libraries out of wheels that are not installed, by the hashes that they were verified with, and stand-ins."""
    given = environment.libraries
    for name, carrier in given.carriers.items() if given else ():
        wheel = PackageURL(type="pypi", name=name, version=carrier.version).to_string()
        for member, sha256 in carrier.takes.items():
            yield _file(member.rpartition("/")[2], [sha256], taken_from=wheel)
    for name, stand_in in given.stand_ins.items() if given else ():
        yield _file(name, (), stands_in_for=name, missing=stand_in.why)


def _file(name: str, sha256: Iterable[str], **properties: str) -> Component:
    return Component(
        name=name,
        type=ComponentType.FILE,
        bom_ref=f"library:{name}",
        hashes=_hashes(sha256),
        properties=_properties(**properties),
    )


def _system_packages(environment: Environment, facts: Facts) -> Iterator[Component]:
    """The Debian packages, with the hash of the .deb where the lock has it."""
    system = facts.os
    distribution = system.get("id", "debian")
    release = f"{distribution}-{system['version_id']}" if "version_id" in system else ""
    locked = {(deb.name, deb.version): deb.sha256 for deb in environment.debs}
    for key, version in sorted(facts.system_packages.items()):
        name, _, architecture = key.partition(":")
        qualifiers = {"arch": architecture, "distro": release}
        purl = PackageURL(type="deb", namespace=distribution, name=name, version=version, qualifiers=qualifiers)
        sha256 = locked.get((name, version))
        yield _library(purl, [sha256] if sha256 else [], place="system")


def _library(purl: PackageURL, sha256: Iterable[str], place: str) -> Component:
    """A package. `place` distinguishes two copies in one image: pip, say, is often in the base as well."""
    return Component(
        name=purl.name,
        version=purl.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{place}:{purl.to_string()}",
        purl=purl,
        hashes=_hashes(sha256),
        properties=_properties(place=place),
    )


def _hashes(sha256: Iterable[str]) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in sha256]


def _properties(**values: str) -> list[Property]:
    return [Property(name=f"tsuishi:{name}", value=value) for name, value in values.items() if value]
