"""`--family`: every release of a framework that this machine can make, in place of environments by name."""

from dataclasses import replace

from tsuishi.base.errors import UserError, unknown
from tsuishi.plan.choice import computing, usable
from tsuishi.plan.session import Session
from tsuishi.specs.environment import read_environments


def with_releases(session: Session, family: str) -> Session:
    """The session with the releases of a family, by date, as environments; a line for each that cannot be used here.

    Of several environments of a release, those for GPUs too are left out where only CPUs compute.
    Raises UserError for an unknown family, and where no release can be used.
    """
    choice, nvml = session.choice, session.nvml
    every, on = read_environments(session.checkout.images), computing(choice, nvml)
    known = sorted({environment.family for environment in every if environment.family})
    if family not in known:
        raise unknown("family", family, known)
    able = [each for each in every if each.family == family and on in each.accelerators]
    for_cpus = {each.released for each in able if each.accelerators == ("cpu",)}
    releases = [each for each in able if on == "cuda" or each.cuda is None or each.released not in for_cpus]
    releases.sort(key=lambda each: (str(each.released), each.name))
    found = usable(session.builder, choice, nvml, releases, to_run=True)
    if not found.environments:
        raise UserError(f"no release of {family} can be used here: {found.reasons or f'none computes on {on}'}")
    for name, reason in found.left_out.items():
        session.screen.say(f"without {name}: {reason}")
    return replace(session, choice=replace(choice, environments=tuple(each.name for each in found.environments)))
