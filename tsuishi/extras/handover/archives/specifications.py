"""The specification, locks and template of an environment, by which a checkout and a record are compared."""

from pathlib import Path

from tsuishi.base.checkout import Checkout
from tsuishi.engines import host, venv
from tsuishi.engines.host import HostEngine
from tsuishi.engines.venv import VenvEngine
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.debian import apt_lock
from tsuishi.specs.environment import Environment


def is_asked(record: EnvironmentRecord, environment: Environment, checkout: Checkout) -> bool:
    """Whether the record is of an environment that was made from this specification, these locks and this template."""
    recipes = {VenvEngine.name: venv.RECIPE, HostEngine.name: host.RECIPE}
    recipe = recipes.get(record.engine or "") or checkout.dockerfile.read_text(encoding="utf-8")
    return environment.spec_id(recipe) == record.spec_id


def asked_files(checkout: Checkout, name: str) -> dict[str, Path]:
    """Spec, locks and template of an environment, by their place in a checkout. They may not exist."""
    spec = checkout.images / f"{name}.toml"
    parts = (spec, spec.with_suffix(".lock"), apt_lock(spec), checkout.dockerfile)
    return {part.relative_to(checkout.root).as_posix(): part for part in parts}
