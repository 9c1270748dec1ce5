"""A framework is a folder: another is added by its files alone, and what it does not offer is said with the reason."""

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

import frameworks
from common.events import Unsupported
from common.request import Request
from tests.bench import REAL
from tests.suites import entry
from tests.suites.test_timing import SETTINGS

# It computes one operation on one number, and the networks as NumPy does, in inference and on one device.
TOY = {
    "__init__.py": """
RANK = 0
PACKAGES = ()

def variables(request):
    return {"TOY_DEVICES": str(request.case.get("devices"))}
""",
    "facts.py": """
import toy
from common import installed
from frameworks import interface

class Framework(interface.Framework):
    name, module, layout = "toy", toy, "channels_last"

    def facts(self):
        flags = {"threads": 1, "devices": toy.DEVICES}
        return {"versions": installed.versions("toy", "numpy"), "cuda": None, "cudnn": None, "flags": flags}
""",
    "limits.py": """
from common.events import Unsupported
from frameworks import parts

class Limits(parts.Limits):
    def check(self, case):
        if case["operation"] == "matmul":
            raise Unsupported("operation 'matmul': it multiplies nothing")

    def kernel_launch(self, problem, measure):
        def step():
            return [launch + 1 for launch in range(problem.launches)]
        measure(step, lambda: None)
""",
    "strategies/none.py": """
from common import networks
from frameworks import interface
from frameworks.numpy import networks as reference

class Steady(interface.Trainer):
    def __init__(self, job):
        super().__init__(job)
        self._weights = networks.initial_weights(job.network, job.settings["seed"])

    def step(self):
        return reference.loss(self.logits(self.job.train[0]), self.job.train[1])

    def compile_s(self):
        return 0.25

    def parameter_count(self):
        return sum(array.size for array in self._weights)

    def weights(self):
        return self._weights

    def logits(self, images):
        return reference.logits(self.job.network, self._weights, images, training=False)

class Strategy(interface.Strategy):
    steady = Steady
""",
}
TRAINED = {
    "protocol": "steady",
    "mode": "inference",
    "model": "mlp",
    "layout": "native",
    "strategy": "none",
    "devices": 1,
    "nodes": 1,
    "batch_size": 4,
    "precision": "fp32",
    "execution": "native",
}
LAUNCH = {"protocol": "steady", "operation": "kernel_launch", "devices": 1}
NAMES = frameworks.names()


class Checkout:
    """Workloads with toy among their frameworks, which is installed or not."""

    def __init__(self, folder: Path, installed: bool = True) -> None:
        self.workloads, self.packages = entry.copied(folder), folder / "packages"
        for file, text in TOY.items():
            path = self.workloads / "frameworks" / "toy" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.packages.mkdir()
        if installed:
            # As frameworks do that have their devices from a variable: it is read when the module is imported.
            text = "import os\n__version__ = '0.1'\nDEVICES = os.environ['TOY_DEVICES']\n"
            (self.packages / "toy.py").write_text(text)

    def run(
        self, experiment: str, case: dict[str, Any], framework: str | None = None, seed: int = 0
    ) -> list[dict[str, Any]]:
        settings = {
            **SETTINGS,
            "block_s": 0.001,
            "seed": seed,
            "parts": "forward,forward_backward",
            "learning_rate": 0.01,
            "momentum": 0.9,
        }
        asked = {"experiment": experiment, "case": case, "framework": framework, "settings": settings}
        argument = json.dumps({**asked, "accelerator": "cpu"})
        _, texts, _ = entry.run(self.workloads, argument, PYTHONPATH=str(self.packages))
        return texts


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("toy"))


def metrics(texts: list[dict[str, Any]]) -> dict[str, float]:
    return {event["name"]: event["value"] for event in texts if event["event"] == "metric"}


@pytest.mark.parametrize("framework", [None, "toy"])
def test_what_a_new_framework_offers_is_measured_and_reported_as_any_others(
    checkout: Checkout, framework: str | None
) -> None:
    texts = checkout.run("device_limits", LAUNCH, framework)
    assert texts[-1]["event"] == "finished"
    assert texts[0]["framework"] == "toy"
    assert texts[0]["versions"]["toy"] == "0.1"
    assert {event["phase"] for event in texts if event["event"] == "sample"} == {"first_step", "second_step", "measure"}


def test_a_framework_says_which_variables_it_wants_before_it_is_imported(checkout: Checkout) -> None:
    reported = checkout.run("device_limits", LAUNCH)[0]
    assert reported["flags"]["devices"] == "1"


def test_what_compiling_a_step_took_is_a_metric_of_training_alone(checkout: Checkout) -> None:
    assert metrics(checkout.run("training", TRAINED))["compile_s"] == 0.25
    assert "compile_s" not in metrics(checkout.run("parity", TRAINED))


def test_a_seed_gives_other_weights_to_a_training_and_none_to_parity(checkout: Checkout) -> None:
    losses = [metrics(checkout.run("training", TRAINED, seed=seed))["initial_loss"] for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]
    assert len({metrics(checkout.run("parity", TRAINED, seed=seed))["loss"] for seed in (1, 2)}) == 1


def test_a_network_of_a_new_framework_is_held_to_numpy(checkout: Checkout) -> None:
    for experiment in ("training", "parity"):
        texts = checkout.run(experiment, TRAINED)
        assert texts[-1]["event"] == "finished", texts[-1]
        assert metrics(texts)["trainable_parameters"] == 669706
    assert metrics(texts)["logits_relative_error"] < 1e-6


@pytest.mark.parametrize(
    ("experiment", "case", "reason"),
    [
        ("device_limits", {**LAUNCH, "operation": "memory_copy", "buffer_mib": 1}, "operation 'memory_copy': "),
        ("self_check", {}, "toy has no part 'self_check': there is no frameworks/toy/self_check.py; would run: "),
        (
            "training",
            {**TRAINED, "protocol": "literal", "mode": "training"},
            "protocol 'literal' with mode 'training', strategy 'none': ",
        ),
        (
            "training",
            {**TRAINED, "strategy": "towers", "devices": 2},
            "strategy 'towers' is none of toy's; these are: none",
        ),
        *(
            (
                "training",
                {**TRAINED, "precision": precision},
                f"precision '{precision}': strategy 'none' of toy does not compute everything in this type; ",
            )
            for precision in ("fp16", "bf16", "fp64")
        ),
    ],
)
def test_what_a_new_framework_does_not_offer_is_unsupported_with_the_reason(
    checkout: Checkout, experiment: str, case: dict[str, Any], reason: str
) -> None:
    ended = checkout.run(experiment, case)[-1]
    assert (ended["event"], ended["kind"]) == ("failed", "unsupported")
    assert ended["text"].startswith(reason)


def test_an_operation_that_a_framework_refuses_is_known_before_its_trial(checkout: Checkout) -> None:
    product = {"protocol": "steady", "operation": "matmul", "devices": 1, "precision": "fp32", "matrix_size": 2}
    groups = [
        {"workload": "device_limits", "settings": SETTINGS, "axes": [*case], "cases": [[*case.values()]]}
        for case in (product, LAUNCH)
    ]
    argument = {"experiment": "possible", "framework": "toy", "accelerator": "cpu", "groups": groups}
    _, texts, _ = entry.run(checkout.workloads, json.dumps(argument), PYTHONPATH=str(checkout.packages))
    answers = [event["reason"] for event in texts if event["event"] == "possible"]
    assert answers == ["Unsupported: operation 'matmul': it multiplies nothing", ""]


def test_a_framework_that_is_not_installed_is_passed_over_and_named(tmp_path: Path) -> None:
    absent = Checkout(tmp_path, installed=False)
    named = {None: ", ".join(["toy", *NAMES]), "toy": "toy"}
    for framework, tried in named.items():
        ended = absent.run("device_limits", LAUNCH, framework)[-1]
        assert ended["text"] == f"none of {tried} is installed in this environment"


def test_a_framework_whose_installation_is_broken_is_no_absent_one(tmp_path: Path) -> None:
    broken = Checkout(tmp_path)
    (broken.packages / "toy.py").write_text("import a_library_that_is_not_there\n")
    ended = broken.run("device_limits", LAUNCH)[-1]
    assert (ended["kind"], ended["type"]) == ("error", "ModuleNotFoundError")


@pytest.mark.parametrize(("case", "override"), [({"precision": "fp32"}, "0"), ({}, "0"), ({"precision": "tf32"}, None)])
def test_cudas_libraries_are_told_to_leave_tf32_unless_the_case_is_about_it(
    case: dict[str, str], override: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(frameworks.TF32_OVERRIDE, "0")
    with pytest.raises(Unsupported, match="none of torch is installed"):
        frameworks.load(Request({"case": case, "framework": "torch", "accelerator": "cuda", "settings": {}}))
    assert os.environ.get(frameworks.TF32_OVERRIDE) == override


def test_frameworks_are_tried_in_the_order_of_their_ranks() -> None:
    assert NAMES == ["torch", "tensorflow", "jax", "mxnet", "chainer"]


CODE = [path for folder in ("common", "experiments") for path in sorted((REAL.workloads / folder).glob("*.py"))]


@pytest.mark.parametrize("path", [REAL.workloads / "run.py", *CODE], ids=lambda path: path.stem)
def test_no_code_but_a_frameworks_own_names_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    written = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    assert not written & set(NAMES)
    assert not imported & {prefix + name for name in NAMES for prefix in ("", "frameworks.")}
