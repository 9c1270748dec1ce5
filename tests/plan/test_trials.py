"""Plans: which environments and accelerators, in which order, and what it will take."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pinned import environment as pinned
from tests.run.test_sampler import NoGpus
from tests.sessions import seeing
from tests.synthetic_run import run_record
from tests.words import WORDS, case, describe
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.environments.build_plan import disk_needed, plan_builds
from tsuishi.environments.builder import Builder
from tsuishi.machine.compatibility import accelerator_for
from tsuishi.machine.gpus import Gpu, Nvml
from tsuishi.machine.history import _CAUTION as CAUTION
from tsuishi.machine.history import History
from tsuishi.plan import trials as plan
from tsuishi.plan.choice import Choice, choose
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial, history_name, matrix, plan_trials, trial_slug
from tsuishi.run.resume import planned_again
from tsuishi.specs.case import Case
from tsuishi.specs.environment import COMPATIBILITY, Cuda, Environment
from tsuishi.specs.lock import Pin

SUITE = """
title = "A suite"
workload = "w"
[profiles.quick]
repetitions = { cpu = 2, cuda = 3 }
timeout_s = 60.0
[[groups]]
expect = { quick = { s = 4.0, s_per_image = 0.5 } }
axes = { protocol = "steady", devices = [1, 2, 3, 4], batch_size = 8 }
"""


class Gpus(NoGpus):
    """A machine with GPUs of these compute capabilities."""

    def __init__(self, *capabilities: str) -> None:
        super().__init__()
        self._capabilities = capabilities

    def __len__(self) -> int:
        return len(self._capabilities)

    def describe(self) -> list[dict[str, Any]]:
        return [{"name": f"GPU {c}", "compute_capability": c} for c in self._capabilities]


def environment(name: str = "env", **more: Any) -> Environment:
    """One for both accelerators, with code for compute capabilities 3.5 to 7.0."""
    cuda = Cuda(toolkit="9.0", min_driver="384.81", native=("3.5", "7.0"))
    return pinned(()).model_copy(update={"name": name, "accelerators": ("cpu", "cuda"), "cuda": cuda, **more})


def again(
    checkout: Checkout, trials: Sequence[PlannedTrial], nvml: Nvml | None = None, **choice: Any
) -> list[PlannedTrial]:
    """These trials, as a plan that is read back from a run.json."""
    recorded = run_record("run", plan=[trial.content() for trial in trials])
    session = Session(Settings(cache=checkout.root), Choice(**choice), Screen(), checkout, data_set=None)
    here = seeing(session, nvml=nvml or NoGpus(), history=history(checkout))
    environments = {name: environment(name) for name in ("a", "b")}
    path = Path("run")
    return planned_again(here, path, recorded, environments)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "images").mkdir()
    describe(tmp_path / "suites")
    (tmp_path / "suites" / "bench.toml").write_text(SUITE)
    (tmp_path / "templates").symlink_to(Checkout().templates)
    (tmp_path / "images" / COMPATIBILITY).symlink_to(Checkout().images / COMPATIBILITY)
    return Checkout(tmp_path)


def planned(checkout: Checkout, *names: str, nvml: Nvml | None = None, **choice: Any) -> list[PlannedTrial]:
    environments = [environment(name) for name in names or ("a", "b")]
    asked = Choice(**choice)
    return plan_trials(matrix(asked, checkout, environments, nvml or NoGpus(), history(checkout)), asked.seed)


def history(checkout: Checkout, slowness: float = 1.0) -> History:
    """Nothing measured yet, on a machine that is taken to need so many times what specs guess."""
    found = History(checkout.root / "cache", "machine-1")
    found.slowness = slowness / CAUTION
    return found


def test_every_case_is_planned_in_every_environment_and_repetition_once(checkout: Checkout) -> None:
    trials = planned(checkout)
    assert len(trials) == 4 * 2 * 2
    assert len({trial.id for trial in trials}) == len(trials)
    counts = Counter((trial.environment, trial.repetition) for trial in trials)
    assert counts == {("a", 1): 4, ("a", 2): 4, ("b", 1): 4, ("b", 2): 4}
    assert {trial.timeout_s for trial in trials} == {60.0}


def test_repetitions_follow_one_another_and_mix_environments_within(checkout: Checkout) -> None:
    trials = planned(checkout, repetitions=3)
    assert [trial.repetition for trial in trials] == [1] * 8 + [2] * 8 + [3] * 8
    changes = sum(a.environment != b.environment for a, b in pairwise(trials))
    assert changes > 5, "environments one after the other would be 1 change a repetition"
    first, second = ([(t.environment, t.case.id) for t in trials[i : i + 8]] for i in (0, 8))
    assert first != second
    assert sorted(first) == sorted(second)


def test_the_seed_decides_the_order_and_nothing_else(checkout: Checkout) -> None:
    order = [trial.id for trial in planned(checkout, seed=1)]
    assert [trial.id for trial in planned(checkout, seed=1)] == order
    assert [trial.id for trial in planned(checkout, seed=2)] != order
    assert sorted(trial.id for trial in planned(checkout, seed=2)) == sorted(order)


def test_what_a_user_asked_for_beats_what_the_suite_says(checkout: Checkout) -> None:
    trials = planned(checkout, "a", repetitions=1, timeout_s=7.0)
    assert [trial.timeout_s for trial in trials] == [7.0] * 4


def test_a_plan_read_back_from_run_json_is_the_same(checkout: Checkout) -> None:
    trials = planned(checkout)
    assert again(checkout, trials) == trials


def test_what_trials_took_here_beats_the_suites_guess(checkout: Checkout) -> None:
    one, two, *_ = planned(checkout, "a")
    # start-up 5 s, 4 s, and 8 images of 0.5 s
    assert (one.expected_s, one.guess_s) == (13.0, 13.0)
    here = history(checkout)
    for took_s in (10.0, 30.0, 20.0):
        here.learn(history_name(one, None), took_s)
    here.learn(history_name(two.model_copy(update={"settings": {**two.settings, "epochs": 1}}), None), 1.0)
    here.learn(history_name(two.model_copy(update={"environment": "b"}), None), 1.0)
    here.learn(history_name(two, {"file": "x", "sha256": "a"}), 1.0)
    here.keep()
    again = history(checkout)
    trials = matrix(Choice(), checkout, [environment("a")], NoGpus(), again).first.values()
    expected = {trial.case.id: trial.expected_s for trial in trials}
    assert expected == {case: 20.0 if case == one.case.id else 13.0 for case in expected}
    data = {"file": "x", "sha256": "a"}
    on_data = matrix(Choice(), checkout, [environment("a")], NoGpus(), again, data).first.values()
    expected = {trial.case.id: trial.expected_s for trial in on_data}
    assert expected == {case: 1.0 if case == two.case.id else 13.0 for case in expected}


def test_what_an_environment_cannot_run_costs_nothing_and_has_one_row(checkout: Checkout) -> None:
    case = planned(checkout, "a")[0].case
    refused = {"a": {case.id: "Unsupported: no such thing"}}
    full = matrix(
        Choice(repetitions=3),
        checkout,
        [environment("a"), environment("b")],
        NoGpus(),
        history(checkout),
        None,
        refused,
    )
    (row,) = [trial for trial in plan_trials(full, 0) if trial.unsupported]
    assert (row.case, row.environment, row.expected_s) == (case, "a", 0.0)
    assert row.unsupported == "Unsupported: no such thing"
    assert len(plan_trials(full, 0)) == 1 + 3 * 7


def test_cases_that_appeared_after_a_release_are_refused_before_it_is_built(checkout: Checkout) -> None:
    axes = 'axes = { protocol = "steady", devices = 1, batch_size = 8, precision = ["fp32", "tf32"] }'
    head, _ = SUITE.rsplit("axes = ", 1)
    (checkout.suites / "bench.toml").write_text(head + axes)
    releases = {"old": "1.1.0", "new": "2.4.0"}
    known = [environment(name, framework="torch", promises={"torch": of}) for name, of in releases.items()]
    everything = matrix(Choice(), checkout, known, NoGpus(), history(checkout))
    refused = plan.too_early(WORDS, known, everything)
    cases = {trial.case.id: trial.case.values["precision"] for trial in everything.first.values()}
    assert {name: [cases[case] for case in of] for name, of in refused.items()} == {"old": ["tf32"], "new": []}
    (why,) = refused["old"].values()
    assert why == "precision 'tf32': torch 1.1.0 has none (1.7 and newer do)"


def test_an_environment_for_both_computes_on_the_gpu_where_it_can() -> None:
    both = environment()
    assert accelerator_for(both, NoGpus(), "auto") == "cpu"
    assert accelerator_for(both, Gpus("7.0"), "auto") == "cuda"
    assert accelerator_for(both, Gpus("3.5", "6.1"), "auto") == "cuda"
    assert accelerator_for(both, Gpus("7.0"), "cpu") == "cpu"
    assert accelerator_for(both, Gpus("7.0"), "cuda") == "cuda"
    assert accelerator_for(environment(accelerators=("cpu",)), Gpus("7.0"), "auto") == "cpu"


def test_a_run_nobody_named_environments_for_follows_the_machine(checkout: Checkout) -> None:
    for name, default in (("mine", '["cpu"]'), ("yours", '["cuda"]'), ("both", '["cpu", "cuda"]'), ("none", "[]")):
        (checkout.images / f"{name}.toml").write_text(
            f'title = "t"\nframework = "any"\naccelerators = ["cpu", "cuda"]\ndefault = {default}\n', encoding="utf-8"
        )

    def chosen(nvml: Nvml, accelerator: str = "auto") -> list[str]:
        made = choose(builder(checkout, engine="host"), Choice(accelerator=accelerator), nvml)
        return [one.name for one in made.environments]

    assert chosen(NoGpus()) == ["both", "mine"]
    assert chosen(Gpus("7.0")) == ["both", "yours"]
    assert chosen(Gpus("7.0"), "cpu") == ["both", "mine"]


def test_code_that_a_driver_has_to_compile_waits_to_be_named(checkout: Checkout) -> None:
    for name in ("host", "ptx"):
        (checkout.images / f"{name}.toml").write_text(
            'title = "t"\nframework = "any"\naccelerators = ["cpu", "cuda"]\ndefault = ["cuda"]\n', encoding="utf-8"
        )
    ptx = '[cuda]\ntoolkit = "12.5"\nmin_driver = "450.80.02"\nnative = ["6.0", "8.0"]\nptx = ["9.0", "9.0"]\n'
    with (checkout.images / "ptx.toml").open("a", encoding="utf-8") as file:
        file.write(ptx)
    made = builder(checkout, engine="host")
    for capability, chosen in (("8.0", ["host", "ptx"]), ("9.0", ["host"])):
        found = choose(made, Choice(), Gpus(capability))
        assert [one.name for one in found.environments] == chosen
    assert found.left_out["ptx"].endswith("which the driver compiles, for up to half an hour: name it (--env ptx)")
    named = choose(made, Choice(("ptx",)), Gpus("9.0"))
    assert [one.name for one in named.environments] == ["ptx"]
    (checkout.images / "host.toml").unlink()
    alone = choose(made, Choice(), Gpus("9.0"))
    assert [one.name for one in alone.environments] == ["ptx"]


def test_what_the_gpu_here_cannot_run_can_be_built_all_the_same(checkout: Checkout) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    for file in ("torch1.1-cu90.toml", "torch1.1-cu90.lock"):
        text = (Checkout().images / file).read_text(encoding="utf-8")
        (checkout.images / file).write_text(text.replace('python = "3.6"', f'python = "{here}"'), encoding="utf-8")
    asked, made = Choice(("torch1.1-cu90",)), builder(checkout, engine="venv", pythons=(sys.executable,))
    with pytest.raises(UserError, match=r"^torch1\.1-cu90 cannot be used here: GPU 8\.9 is compute capability 8\.9"):
        choose(made, asked, Gpus("8.9"))
    chosen = choose(made, asked, Gpus("8.9"), to_run=False)
    assert [one.name for one in chosen.environments] == ["torch1.1-cu90"]


def test_a_forced_trial_says_why_it_would_have_been_refused(checkout: Checkout) -> None:
    trials = planned(checkout, "a", nvml=Gpus("8.9"), force=True)
    assert {trial.accelerator for trial in trials} == {"cuda"}
    assert {trial.forced for trial in trials} == {
        "GPU 8.9 is compute capability 8.9 (Ada); a holds code for 3.5 to 7.0"
    }
    assert {trial.forced for trial in planned(checkout, "a", nvml=Gpus("7.0"), force=True)} == {""}
    assert {trial.forced for trial in planned(checkout, "a", nvml=Gpus("8.9"), accelerator="cpu")} == {""}
    assert again(checkout, trials, nvml=Gpus("8.9"), force=True) == trials


def test_a_trial_on_gpus_gets_as_many_as_its_case_has_devices(checkout: Checkout) -> None:
    trials = planned(checkout, "a", nvml=Gpus("7.0", "7.0", "7.0", "7.0"), repetitions=1)
    assert {trial.accelerator for trial in trials} == {"cuda"}
    four = tuple(Gpu(index, f"GPU-{index}") for index in range(4))
    assert {trial.case.devices: plan.gpus_for(trial, four) for trial in trials} == {n: four[:n] for n in (1, 2, 3, 4)}
    assert plan.gpus_for(trials[0].model_copy(update={"accelerator": "cpu"}), four) == ()
    assert {plan.gpus_for(trial, four[3:]) for trial in trials} == {four[3:]}, "what is not there cannot be given"


CASES = st.builds(
    case,
    suite=st.just("s"),
    protocol=st.sampled_from(["literal", "steady"]),
    model=st.sampled_from([None, "cnn10", "wrn28_10"]),
    layout=st.sampled_from([None, "native", "channels_last"]),
    devices=st.none() | st.integers(1, 3),
    batch_size=st.none() | st.integers(1, 3),
    filter_size=st.none() | st.integers(1, 3),
)


@given(CASES, CASES)
def test_a_slug_names_one_case_and_is_fit_for_a_folder_and_a_container(one: Case, other: Case) -> None:
    assert (trial_slug(one, WORDS) == trial_slug(other, WORDS)) == (one == other)
    assert not set(trial_slug(one, WORDS)) & set(" /.:+")


def test_slugs_say_what_varies() -> None:
    one = case(suite="s", protocol="literal", model="cnn10", layout="native", devices=2, batch_size=16)
    assert trial_slug(one, WORDS) == f"s-literal-cnn10-d2-b16-{one.id[:6]}"
    one = case(suite="s", protocol="steady", implementation="scipy", layout="channels_last")
    assert trial_slug(one, WORDS) == f"s-steady-scipy-channels_last-{one.id[:6]}"


def builder(checkout: Checkout, **settings: Any) -> Builder:
    return Builder(Settings(cache=checkout.root / "cache", **settings), checkout)


def write_environment(checkout: Checkout, name: str, python: str, default: bool = True) -> None:
    (checkout.images / f"{name}.toml").write_text(
        f"""
        title = "t"
        framework = "any"
        accelerators = ["cpu"]
        default = {["cpu", "cuda"] if default else []}
        python = "{python}"
        base = {{ reference = "docker.io/library/python:{python}" }}
        promises = {{ pip = "1" }}
        """
    )
    (checkout.images / f"{name}.lock").write_text(f"pip==1 --hash=sha256:{'a' * 64}  # pip-1-py3-none-any.whl 1000\n")


NO_PYTHON = (
    "no CPython 3.99 on this machine: install one (pyenv install 3.99, or uv python install 3.99), "
    "name its folder in tsuishi.pythons, or start Docker"
)


def test_a_default_environment_this_machine_cannot_make_is_left_out_and_a_named_one_is_an_error(
    checkout: Checkout,
) -> None:
    write_environment(checkout, "never", "3.99")
    (checkout.images / "host.toml").write_text(
        'title = "t"\nframework = "any"\naccelerators = ["cpu"]\ndefault = ["cpu", "cuda"]\n', encoding="utf-8"
    )
    with pytest.raises(UserError) as caught:
        choose(builder(checkout, engine="venv"), Choice(("never",)), NoGpus())
    assert str(caught.value) == f"never cannot be used here: {NO_PYTHON}"
    chosen = choose(builder(checkout, engine="host"), Choice(), NoGpus())
    with pytest.raises(UserError, match=r"^host.host and host are one environment here, made by host: name only one$"):
        choose(builder(checkout, engine="host"), Choice(("host.host", "host")), NoGpus())
    assert [one.name for one in chosen.environments] == ["host"]
    assert set(chosen.left_out) == {"never"}


def test_asking_for_the_gpu_leaves_out_what_cannot_use_it(checkout: Checkout) -> None:
    (checkout.images / "host.toml").write_text(
        'title = "t"\nframework = "any"\naccelerators = ["cpu", "cuda"]\ndefault = ["cpu", "cuda"]\n', encoding="utf-8"
    )
    asked = Choice(accelerator="cuda")
    chosen = choose(builder(checkout, engine="host"), asked, Gpus("7.0"))
    assert [one.name for one in chosen.environments] == ["host"]
    with pytest.raises(UserError) as caught:
        choose(builder(checkout, engine="host"), asked, NoGpus())
    assert str(caught.value) == "no environment can be used here: host: no GPU here (none in this test)"


def test_with_nothing_to_run_in_every_reason_is_given(checkout: Checkout) -> None:
    with pytest.raises(UserError) as caught:
        choose(builder(checkout, engine="venv"), Choice(), NoGpus())
    assert str(caught.value) == "no environment can be used here: images/ marks none as default"
    write_environment(checkout, "never", "3.99")
    with pytest.raises(UserError) as caught:
        choose(builder(checkout, engine="venv"), Choice(), NoGpus())
    assert str(caught.value) == f"no environment can be used here: never: {NO_PYTHON}"


def test_disk_is_planned_for_what_stays_and_for_the_builds_that_go_on_at_once(checkout: Checkout) -> None:
    pins = (Pin("p", "1", ("1" * 64,), "p.whl", 1000),)
    (build,) = plan_builds(builder(checkout, engine="venv"), [environment(pins=pins)], history(checkout))
    several = [replace(build, size_bytes=2000, disk_bytes=2000 + more) for more in (10, 300, 200)]
    assert disk_needed(several, jobs=2) == 6000 + 300 + 200
    assert disk_needed(several, jobs=4) == 6000 + 510
    assert disk_needed([], jobs=4) == 0


def test_what_is_in_the_cache_is_not_planned_to_be_fetched(checkout: Checkout) -> None:
    there, missing = (Pin(f"p{i}", "1", (str(i) * 64,), f"p{i}.whl", 1000 * i) for i in (1, 2))
    one = environment(pins=(there, missing))
    work = builder(checkout, engine="venv")
    (work.cache.root / there.sha256[0]).mkdir(parents=True)
    (work.cache.root / there.sha256[0] / "p1.whl").write_bytes(b"x")
    (build,) = plan_builds(work, [one], history(checkout))
    assert (build.built, build.downloads, build.download_bytes, build.engine) == (False, 1, 2000, "venv")
    assert build.size_bytes == build.disk_bytes == int(3000 * one.expect.unpacked)
    assert build.expected_s == 60.0
