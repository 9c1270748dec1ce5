"""Podman starts the container of a trial on a GPU, whose CDI devices have hooks that write into its root.

Debian's Podman has no requests for CDI devices in this API. So every container gets the hook here, by the service, as
`nvidia-ctk cdi generate` writes it: of kind createContainer. And no GPU is here: the device is left out.
"""

import json
import sys
from pathlib import Path

import docker
import pytest

from tests.conftest import missing
from tests.engine import podman as podman_service
from tests.engines.docker.test_devices import specification
from tests.pinned import environment
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import Settings
from tsuishi.engines.docker import devices
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.machine.gpus import Gpu

pytestmark = pytest.mark.engine

HOOK = """#!{python}
import json, pathlib, sys
bundle = pathlib.Path(json.load(sys.stdin)["bundle"])
root = pathlib.Path(json.loads((bundle / "config.json").read_text())["root"]["path"])
(root / "etc" / "hooked").write_text("by the hook")
"""
ASKED = """
import pathlib
print(pathlib.Path("/etc/hooked").read_text())
try:
    pathlib.Path("/etc/written").touch()
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("runtime", ["runc", "crun"], ids=lambda name: f"podman-{name}")
def test_the_hooks_of_a_gpu_can_write_and_the_trial_cannot(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    runtime: str,
) -> None:
    if why_not := podman_service.why_not(runtime):
        missing(why_not)
    hook, hooks, names = tmp_path / "hook", tmp_path / "hooks", tmp_path / "cdi"
    hook.write_text(HOOK.format(python=sys.executable))
    hook.chmod(0o755)
    hooks.mkdir()
    given = {"version": "1.0.0", "hook": {"path": str(hook)}, "when": {"always": True}, "stages": ["createContainer"]}
    (hooks / "hook.json").write_text(json.dumps(given))
    names.mkdir()
    specification(names, "GPU-0")
    monkeypatch.setattr(devices, "_CDI_FOLDERS", (str(names),))
    monkeypatch.setattr(devices, "_PODMAN_CDI", (4, 0))
    image = settings.mirrors["docker.io/library/python:3.11.13-slim-bookworm"]
    with podman_service.service(tmp_path_factory.mktemp("p"), (image,), runtime, hooks) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        client = docker.from_env()
        built = Built(environment(()), "docker", "", "", str(client.images.get(image).id), ("python3",))
        limits = ResourceLimits(gpus=(Gpu(0, "GPU-0"),))
        process = DockerEngine(Checkout().dockerfile, {}, tmp_path).starter.start(
            built, Launch(("-c", ASKED), {}, f"tsuishi-hooks-{runtime}", {}, limits)
        )
        said = b"".join(chunk for _, chunk in process.output()).decode()
        assert process.wait().code == 0, said
        client.close()
    assert said.splitlines() == ["by the hook", "Read-only file system" if runtime == "runc" else "Permission denied"]
