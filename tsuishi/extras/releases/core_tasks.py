"""Additions of releases to tasks of the core. Every task of Invoke imports this module, which imports little."""

from typing import TYPE_CHECKING

from tsuishi.base.errors import UserError

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


def build(chain: "Chain") -> bool:
    """Give the session of a chain the releases of a family, where --family names it; the task of the core goes on."""
    family = chain.options.text("family")
    if family and chain.options.has("env"):
        raise UserError("--family names environments already: leave --env out")
    if family and not chain.session.choice.environments:
        from tsuishi.extras.releases.of_family import with_releases

        chain.session = with_releases(chain.session, family)
    return False


run_suite = build


def lock(chain: "Chain") -> bool:
    """Make the environment of another release, where --like and --release name it; returns whether they do."""
    like, version = chain.options.text("like"), chain.options.text("release")
    if not (like or version):
        return False
    if chain.session.choice.environments or not (like and version):
        raise UserError(
            "a release is made by --like and --release, without --env: invoke lock --like tf2-cpu --release 2.16.2"
        )
    from tsuishi.commands.build import locker, write_lock
    from tsuishi.extras.releases.release import resolve_release
    from tsuishi.specs.environment import named_files

    for name, path in named_files(chain.session.checkout.images, (like,)).items():
        write_lock(chain, *resolve_release(locker(chain, f"{name} {version}"), path, version))
    return True
