"""Additions of releases to tasks of the core."""

from tsuishi.base.errors import UserError
from tsuishi.commands.build import locker, write_lock
from tsuishi.commands.chain import Chain
from tsuishi.specs.environment import named_environments


def lock(chain: Chain) -> bool:
    """Make the environment of another release, where --like and --release name it; returns whether they do."""
    like, version = chain.options.text("like"), chain.options.text("release")
    if not (like or version):
        return False
    if chain.session.choice.environments or not (like and version):
        raise UserError(
            "a release is made by --like and --release, without --env: invoke lock --like tf2-cpu --release 2.16.2"
        )
    from tsuishi.extras.releases.release_lock import resolve_release

    for name, path in named_environments(chain.session.checkout.images, (like,)).items():
        write_lock(chain, *resolve_release(locker(chain, f"{name} {version}"), path, version))
    return True
