"""The output of a script that runs once in an environment, apart from any run."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.environments.probe import ask
from tsuishi.machine.accelerators import accelerator_for
from tsuishi.plan.choice import choose
from tsuishi.plan.session import Session
from tsuishi.plan.trials import with_its_data
from tsuishi.specs.experiment import WORKLOAD, Experiment, ScriptOrder, lacking

# Of the output, which may be endless.
_MOST_BYTES = 4 << 20


class ScriptOutput(NamedTuple):
    """What a script printed, at most _MOST_BYTES of it, and how long it took in seconds."""

    printed: bytes
    wall_s: float


def output_of(session: Session, experiment: Experiment, folder: Path, beside: Path, timeout_s: float) -> ScriptOutput:
    """The output of the script. Raises UserError where it fails.

    folder: that of its files, as suites/ will have them. beside: the folder that they come from.
    """
    chosen = choose(session.builder, session.checkout, session.choice, session.nvml).environments
    (ready,) = session.build(chosen).values()
    output = bytearray()

    def keep(piece: bytes) -> None:
        output.extend(piece[: _MOST_BYTES - len(output)])

    asked = ScriptOrder(
        folder=folder.absolute(),
        files=experiment.every_file,
        command=tuple(experiment.filled(word, {}) for word in experiment.command),
        variables={},
        patterns=(),
        numerals={},
        data=experiment.data,
    )
    order = with_its_data(asked, session.settings.cache)
    if open_to_it := ready.without_walls(Path(experiment.script).name):
        session.screen.say(open_to_it)
    wall_s, why_not = _ask(session, ready, order, timeout_s, keep)
    if why_not:
        why_not += lacking(why_not, beside, ready.environment)
        raise UserError(f"{Path(experiment.script).name} in {ready.environment.name}: {why_not}; nothing is written")
    return ScriptOutput(bytes(output), wall_s)


def _ask(
    session: Session, ready: Ready, order: ScriptOrder, timeout_s: float, keep: Callable[[bytes], None]
) -> tuple[float, str]:
    """Start the script and wait for its end. Returns its seconds, and why it failed; empty where it did not."""
    mounts = order.mounts()
    accelerator = accelerator_for(ready.environment, session.nvml, session.choice.accelerator)
    argument = {
        "case": {"protocol": "literal"},
        "accelerator": accelerator,
        "settings": {},
        "script": order.content(lambda path: ready.starter.inside(path, mounts[path])),
    }
    gpus = tuple(session.nvml.gpus[:1]) if accelerator == "cuda" else ()
    transcript, why_not = ask(
        ready.starter, ready.built, session.checkout, WORKLOAD, argument, timeout_s, gpus, mounts=mounts, on_log=keep
    )
    return sum((phase.end_s or phase.begin_s) - phase.begin_s for phase in transcript.phases()), why_not
