"""`--family`: the releases of a framework in place of environments by name."""

from pathlib import Path

import pytest

from tests.commands.test_tasks import invoke
from tests.plan.test_trials import Gpus
from tests.run.test_sampler import NoGpus
from tests.sessions import seeing
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.extras.releases.of_family import with_releases
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.specs.environment import COMPATIBILITY


def test_a_family_is_its_releases_by_date_that_compute_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = Checkout(tmp_path)
    checkout.images.mkdir()
    checkout.templates.symlink_to(Checkout().templates)
    (checkout.images / COMPATIBILITY).symlink_to(Checkout().images / COMPATIBILITY)
    cuda = '[cuda]\ntoolkit = "9.0"\nmin_driver = "384.111"\nnative = ["3.5", "7.0"]\nbeyond = "no PTX"\n'
    for name, released, accelerators, more in (
        ("new", "2026-01-01", '["cpu", "cuda"]', ""),
        ("old", "2019-01-01", '["cpu"]', ""),
        ("for-gpus", "2021-01-01", '["cuda"]', cuda),
        ("old-for-gpus-too", "2019-01-01", '["cpu", "cuda"]', cuda),
    ):
        (checkout.images / f"{name}.toml").write_text(
            f'title = "t"\nframework = "any"\nfamily = "f"\nreleased = {released}\n'
            f"accelerators = {accelerators}\n{more}",
            encoding="utf-8",
        )

    def names(family: str, nvml: Nvml) -> tuple[list[str], list[str]]:
        session = Session(Settings(cache=tmp_path / "cache", engine="host"), Choice(), Screen(), checkout)
        found = with_releases(seeing(session, nvml=nvml), family)
        left_out = [line.split(": ")[0].removeprefix("without ") for line in capsys.readouterr().out.splitlines()]
        return [*found.choice.environments], left_out

    assert names("f", NoGpus()) == (["old", "new"], [])
    assert names("f", Gpus("7.0")) == (["old-for-gpus-too", "for-gpus", "new"], [])
    assert names("f", Gpus("8.9")) == (["new"], ["old-for-gpus-too", "for-gpus"])
    with pytest.raises(UserError, match="unknown family 'g'"):
        names("g", NoGpus())


def test_a_family_stands_in_the_place_of_environments_and_not_beside_them() -> None:
    root = Checkout().root
    both = invoke(root, "build", "run-suite", "--family", "tensorflow", "--env", "host", "--plan")
    assert both.returncode == 1
    assert both.stderr.strip() == "error: --family names environments already: leave --env out"
    unknown = invoke(root, "run-suite", "--family", "tensorflo", "--plan")
    assert "unknown family 'tensorflo'; did you mean 'tensorflow'" in unknown.stderr
