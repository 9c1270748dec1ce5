"""GPUs of compute nodes, where the login node has none: asked of a node by a real job, whose GPUs are Slurm's alone."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench import make_checkout
from tests.extras.cluster.programs import wait_for
from tests.extras.cluster.slurm_cluster import SlurmCluster
from tests.extras.cluster.test_slurm_run import assert_whole, on_slurm, rows
from tests.machine.test_compatibility import IMAGES, KNOWN
from tsuishi.base import toml
from tsuishi.base.errors import UserError
from tsuishi.extras.cluster.node_gpus import of_nodes
from tsuishi.extras.cluster.settings import of_cluster
from tsuishi.machine.compatibility import accelerator_for, gpu_refusal, why_on_cpu
from tsuishi.plan.session import Session
from tsuishi.results.records import MachineRecord
from tsuishi.run.new_run import run_suite

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]

A100 = {
    **{"index": 0, "name": "NVIDIA A100-SXM4-40GB", "uuid": "GPU-1", "compute_capability": "8.0"},
    **{"memory_mib": 40960.0, "power_limit_w": 400.0, "display_active": False},
}


def with_answer(work: Session, *gpus: dict[str, Any]) -> None:
    """Keep an answer of a node for the settings of a session, as a job leaves it."""
    kept = work.settings.cache / "nodes" / f"{toml.digest([f'--gres={of_cluster(work.settings).slurm_gres}'])}.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"gpus": list(gpus), "driver": "580.95.05", "links": [], "why_not": ""}))


def test_a_job_of_seconds_says_which_gpus_a_trial_would_get_and_its_answer_is_kept(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    said: list[str] = []
    given = on_slurm(tmp_path, slurm_gres="gpu:fake:1", slurm_partition="main").settings
    found = of_nodes(given, "auto", said.append)
    assert len(found) == 0
    assert "NVML" in found.why_not, "the node has no driver, and says so"
    assert said == [
        "asking a node for its GPUs (gpu:fake:1), by a job of seconds: it waits in the queue like any other"
    ]
    asked = ("squeue", "--noheader", "--states=all", "--name=tsuishi-nodes", "--format=%T %b %P")
    wait_for(lambda: not slurm.command(*asked).startswith("COMPLETING"))
    assert slurm.command(*asked) == "COMPLETED gres:gpu:fake:1 main"
    assert of_nodes(given, "auto", said.append).why_not == found.why_not
    assert len(said) == 1


def test_without_gres_the_plan_is_for_cpus_and_names_what_the_nodes_have(slurm: SlurmCluster, tmp_path: Path) -> None:
    found = of_nodes(on_slurm(tmp_path).settings, "auto", pytest.fail)
    assert found.why_not == "no GPU is asked of Slurm: give --gres gpu:1, say; the nodes have gpu:fake:2"
    assert len(found) == 0


@pytest.mark.parametrize("gres", ["gpu:1g.5gb:1", "gpu:a100_3g.20gb:2", "gpu:mig:1"])
def test_a_part_of_a_gpu_is_refused_by_its_name(tmp_path: Path, gres: str) -> None:
    with pytest.raises(UserError) as caught:
        of_nodes(on_slurm(tmp_path, slurm_gres=gres).settings, "auto", pytest.fail)
    assert str(caught.value) == f"--gres {gres}: a part of a GPU (MIG), and only whole ones are measured"


def test_gpus_of_nodes_decide_what_is_planned(tmp_path: Path) -> None:
    work = on_slurm(tmp_path, slurm_gres="gpu:2")
    with_answer(work, A100, {**A100, "index": 1, "uuid": "GPU-2"})
    nvml = work.nvml
    assert (len(nvml), [gpu.uuid for gpu in nvml.gpus], nvml.driver()) == (2, ["GPU-1", "GPU-2"], "580.95.05")
    new, old = KNOWN["torch2-cuda"], KNOWN["torch1.1-cu90"]
    assert accelerator_for(new, nvml, "auto") == "cuda"
    assert gpu_refusal(new, nvml, IMAGES, "auto", force=False) == ""
    assert "compute capability 8.0" in gpu_refusal(old, nvml, IMAGES, "auto", force=False)
    assert "made for the CPU" in why_on_cpu(KNOWN["torch2-cpu"], nvml)


def test_a_job_beside_another_on_its_node_says_so(slurm: SlurmCluster) -> None:
    hold = ("--output=/dev/null", "--wrap", "sleep 60")
    slurm.command("sbatch", "--nodelist=n1", "--gres=gpu:fake:1", *hold)
    wait_for(lambda: slurm.command("squeue", "--noheader", "--states=RUNNING", "--format=%N").split() == ["n1"])
    asks = "from tsuishi.extras.cluster import node; print(node.beside())"
    said = slurm.command("srun", "--quiet", "--nodelist=n1", "--gres=gpu:fake:1", sys.executable, "-c", asks)
    assert re.fullmatch(r"\['job \d+ of 1 CPUs and gres:gpu:fake:1'\]", said.splitlines()[-1])


def test_a_trial_without_gpus_has_its_node_alone_where_others_get_gpus(slurm: SlurmCluster, tmp_path: Path) -> None:
    make_checkout(tmp_path, "short_sleep", "ok", "garbage")
    work = on_slurm(tmp_path, slurm_gres="gpu:fake:1")
    with_answer(work)
    run = run_suite(work)
    assert [row[2] for row in rows(run)] == ["ok"] * 3
    assert [trial.beside for _, trial in run.finished()] == [[]] * 3
    assert_whole(run)


def test_a_trial_alone_on_its_node_says_so_and_its_machine_has_the_modules_of_the_session(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADEDMODULES", "cuda/12.4:gcc/13.2")
    make_checkout(tmp_path, "ok")
    run = run_suite(on_slurm(tmp_path))
    ((_, trial),) = run.finished()
    assert trial.beside == []
    machine = json.loads((run.path / "records" / f"{trial.machine_record}.json").read_text())
    assert MachineRecord.model_validate(machine).modules == ["cuda/12.4", "gcc/13.2"]
