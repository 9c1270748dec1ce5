"""`invoke build` and `invoke lock`: environments made, and what they are made of resolved anew."""

from functools import partial

from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.commands.chain import Chain
from tsuishi.plan.planning import plan_builds_only, plan_run
from tsuishi.specs.environment import known_environments, named_environments


def build(chain: Chain, locked_only: bool) -> None:
    """Print the plan of the whole chain, then build, unless only that was asked for; lock before, if need be."""
    if not locked_only:
        lock(chain)
    session = chain.session
    measures = "run-suite" in chain.tasks and not chain.options.has("resume")
    chain.plan = plan_run(session) if measures else plan_builds_only(session)
    if not chain.only_plans:
        session.build(chain.plan.environments)


def lock(chain: Chain) -> None:
    """Resolve the locks of the named environments anew, say what changed, and write it, unless asked not to."""
    session = chain.session
    images, names, say = session.rooms.images, session.choice.environments, session.screen.say
    if not names:
        known = known_environments(images)
        raise UserError(f"say which locks to make anew, as in --env {next(iter(known))}; known: {', '.join(known)}")
    for name, path in named_environments(images, names).items():
        locked = session.builder.locker(partial(_say_indented, session.screen, name)).resolve(path)
        for line in locked.difference:
            say(f"{name}: {line}")
        files = ", ".join(path.name for path in locked.files)
        if not locked.files:
            say(f"{name}: nothing changed")
        elif chain.only_plans:
            say(f"{name}: would be written: {files}")
        else:
            locked.write()
            say(f"{name}: written: {files}")


def _say_indented(screen: Screen, name: str, line: str) -> None:
    screen.say(f"  {name}: {line}")
