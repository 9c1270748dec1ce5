"""GPUs in containers at the API's boundary: what an engine would be asked to create, by what it says it can.

The engine is a real HTTP server on a real socket that answers as Docker 20.10, 24, 25, 28 and Podman 4.3 and 5.4 do,
keeps what it is asked to create, and refuses to start it.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from threading import Thread
from typing import Any

import pytest

from tests.driver import V100, fake
from tests.pinned import environment
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.engines.docker import containers
from tsuishi.engines.docker import devices as gpus
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.environments.builder import Builder
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.choice import Choice, choose

UUIDS = [f"GPU-{number}{number}{number}{number}" for number in range(3)]


@dataclass
class Api:
    """An engine of this name, version and API, that says this of itself."""

    name: str = "Engine"
    version: str = "20.10.24"
    api: str = "1.41"
    info: dict[str, Any] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


class Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    api: Api


class Handler(BaseHTTPRequestHandler):
    """Enough of the API to create a container."""

    server: Server

    def address_string(self) -> str:
        return "a socket has none"

    def log_message(self, *words: object) -> None:
        pass

    def answer(self, code: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        api = self.server.api
        if self.path.endswith("/version"):
            components = [{"Name": api.name, "Version": api.version}]
            self.answer(200, {"Version": api.version, "ApiVersion": api.api, "Components": components})
        elif self.path.endswith("/info"):
            self.answer(200, api.info)
        else:
            self.answer(200, {"Id": "c1", "Config": {"Tty": False}, "State": {"Pid": 0}})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if "/containers/create" in self.path:
            self.server.api.created.append(asked)
            self.answer(201, {"Id": "c1", "Warnings": []})
        else:
            self.answer(409, {"message": "it starts nothing"})

    def do_DELETE(self) -> None:
        self.server.api.removed.append(self.path)
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    socket = tmp_path_factory.mktemp("s") / "docker.sock"
    with Server(str(socket), Handler) as server:
        server.api = Api()
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
        # Of the machine under this test: neither its toolkit nor its specifications.
        monkeypatch.setattr(gpus, "_SYSTEM_PATH", "")
        monkeypatch.setattr(gpus, "_CDI_FOLDERS", ())
        monkeypatch.setattr(gpus, "_PODMAN_HOOKS", socket.parent / "hooks.d")
        monkeypatch.setattr(gpus, "wsl", lambda: False)
        yield server.api
        server.shutdown()
        thread.join()


def machine(monkeypatch: pytest.MonkeyPatch, wanted: str = "all") -> Nvml:
    """One with three GPUs, of which these are wanted."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", fake([{**V100, "uuid": uuid} for uuid in UUIDS]))
    return Nvml(wanted)


def asked_for(api: Api, tmp_path: Path, nvml: Nvml) -> dict[str, Any]:
    """The request that a trial on all these GPUs would be created with."""
    engine = DockerEngine(Checkout().dockerfile, {}, tmp_path)
    built = Built(environment(()), "docker", "", "", "sha256:0", ("python",), cuda_cache=tmp_path / "kernels")
    with pytest.raises(UserError, match="the engine refused: it starts nothing"):
        engine.starter.start(built, Launch(("-V",), {}, "t", {}, ResourceLimits(gpus=nvml.gpus)))
    assert api.removed, "what was created does not stay behind"
    (created,) = api.created
    return created


def variables(created: dict[str, Any]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in created["Env"])


def hook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "nvidia-container-runtime-hook"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))


def specification(folder: Path, *names: str) -> None:
    """As `nvidia-ctk cdi generate` writes it, in YAML; and one of another vendor beside it, in JSON."""
    devices = "".join(
        f'- containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n  name: "{name}"\n' for name in names
    )
    text = f"---\ncdiVersion: 0.5.0\ncontainerEdits:\n  env:\n  - NVIDIA_VISIBLE_DEVICES=void\ndevices:\n{devices}"
    (folder / "nvidia.yaml").write_text(f"{text}kind: nvidia.com/gpu\n")
    other = {"cdiVersion": "0.5.0", "kind": "vendor.com/net", "devices": [{"name": "GPU-of-another"}]}
    (folder / "other.json").write_text(json.dumps(other))


def cdi(names: list[str]) -> list[dict[str, Any]]:
    """Device requests for CDI devices of these names."""
    ids = [f"nvidia.com/gpu={name}" for name in names]
    return [{"Driver": "cdi", "Count": 0, "DeviceIDs": ids, "Capabilities": [], "Options": {}}]


@pytest.mark.parametrize(
    ("wanted", "uuids"),
    [
        ("all", UUIDS),
        ("2", UUIDS[:2]),
        ("device=2", UUIDS[2:]),
        ("device=0,2", [UUIDS[0], UUIDS[2]]),
        ("device=GPU-1111", UUIDS[1:2]),
        ("device=GPU-2222,0", [UUIDS[0], UUIDS[2]]),
    ],
)
def test_by_count_index_or_uuid_exactly_these_are_asked_for_by_uuid(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, uuids: list[str]
) -> None:
    hook(tmp_path, monkeypatch)
    created = asked_for(api, tmp_path, machine(monkeypatch, wanted))
    assert created["HostConfig"]["DeviceRequests"] == [
        {"Driver": "nvidia", "Count": 0, "DeviceIDs": uuids, "Capabilities": [["gpu"]], "Options": {}}
    ]
    assert variables(created) == {
        "NVIDIA_VISIBLE_DEVICES": ",".join(uuids),
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of telemetry: a trial's first GPU is the first of both
        "CUDA_CACHE_PATH": "/cuda-cache",
        "CUDA_CACHE_MAXSIZE": "4294967296",
    }
    assert created["HostConfig"]["ShmSize"] == 8 << 30


@pytest.mark.parametrize(
    ("mode", "rootless", "joins"),
    [(0o660, False, True), (0o666, False, False), (0o600, False, False), (0o660, True, False)],
)
def test_a_container_joins_the_group_that_alone_may_use_the_gpus(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, rootless: bool, joins: bool
) -> None:
    """As `video` of openSUSE. An engine without root has no such group to give."""
    group = os.getgid() or 44
    device = tmp_path / "nvidia0"
    device.touch()
    device.chmod(mode)
    os.chown(device, -1, group)
    (tmp_path / "nvidia-caps").mkdir(mode=0o750)
    found = gpus.groups_of_gpus(tmp_path)
    monkeypatch.setattr(containers, "groups_of_gpus", lambda: found)
    api.info = {"SecurityOptions": ["name=rootless"]} if rootless else {}
    hook(tmp_path, monkeypatch)
    created = asked_for(api, tmp_path, machine(monkeypatch))
    assert created["HostConfig"].get("GroupAdd") == ([str(group)] if joins else None)


@pytest.mark.parametrize(("version", "number"), [("20.10.24+dfsg1", "1.41"), ("24.0.9", "1.43"), ("28.2.2", "1.50")])
def test_an_engine_with_nvidias_runtime_is_asked_for_it_rather_than_for_the_hook(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, number: str
) -> None:
    hook(tmp_path, monkeypatch)
    api.version, api.api = version, number
    api.info = {"Runtimes": {"runc": {"path": "runc"}, "nvidia": {"path": "nvidia-container-runtime"}}}
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=1"))
    assert created["HostConfig"]["Runtime"] == "nvidia"
    assert not created["HostConfig"].get("DeviceRequests")
    assert variables(created)["NVIDIA_VISIBLE_DEVICES"] == "GPU-1111"


def test_docker_25_is_asked_by_cdi_with_the_names_its_specifications_have(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(tmp_path, monkeypatch)
    specification(tmp_path, "0", *UUIDS, "all")
    api.version, api.api = "25.0.5", "1.44"
    api.info = {"CDISpecDirs": [str(tmp_path), "/nowhere"], "Runtimes": {"nvidia": {}}}
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=0,2"))
    assert created["HostConfig"]["DeviceRequests"] == cdi(["GPU-0000", "GPU-2222"])
    assert "Runtime" not in created["HostConfig"]
    assert variables(created)["NVIDIA_VISIBLE_DEVICES"] == "void", "or a default runtime of NVIDIA's adds to them"
    assert created["HostConfig"]["ShmSize"] == 8 << 30


def test_specifications_that_know_indices_alone_are_asked_by_index(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specification(tmp_path, "0", "1", "2", "all")
    api.version, api.api, api.info = "25.0.5", "1.44", {"CDISpecDirs": [str(tmp_path)]}
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=GPU-2222"))
    assert created["HostConfig"]["DeviceRequests"] == cdi(["2"])


def test_docker_28_tells_its_cdi_devices_itself(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"Source": "cdi", "ID": f"nvidia.com/gpu={name}"} for name in ("0", "GPU-0000", "1", "GPU-1111", "all")]
    api.version, api.api = "28.2.2", "1.50"
    api.info = {"CDISpecDirs": ["/etc/cdi"], "DiscoveredDevices": [{"Source": "cdi", "ID": "v.com/net=2"}, *found]}
    created = asked_for(api, tmp_path, machine(monkeypatch, "2"))
    assert created["HostConfig"]["DeviceRequests"] == cdi(["GPU-0000", "GPU-1111"])


def test_a_gpu_its_cdi_devices_lack_is_refused_with_the_remedy(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.info = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}
    why_not = DockerEngine(Checkout().dockerfile, {}, tmp_path).starter.why_no_gpus(machine(monkeypatch).gpus)
    assert why_not == (
        "GPU GPU-1111 is not among the engine's CDI devices (0): "
        "write them anew with `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"
    )


def test_podman_takes_cdi_requests_from_5_4_on(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification(tmp_path, *UUIDS)
    monkeypatch.setattr(gpus, "_CDI_FOLDERS", (str(tmp_path),))
    api.name, api.version = "Podman Engine", "5.4.0"
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=1"))
    assert created["HostConfig"]["DeviceRequests"] == cdi(["GPU-1111"])


@pytest.mark.parametrize(
    ("runtime", "read_only"),
    [("crun version 1.14.1\ncommit: 0", False), ("crun version 1.26", True), ("runc version 1.1.5", True)],
)
def test_a_root_is_writable_only_where_the_runtime_runs_the_hooks_of_gpus_too_late(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, read_only: bool
) -> None:
    """containers/crun, issue 1924."""
    specification(tmp_path, *UUIDS)
    monkeypatch.setattr(gpus, "_CDI_FOLDERS", (str(tmp_path),))
    api.name, api.version, api.info = "Podman Engine", "5.4.0", {"host": {"ociRuntime": {"version": runtime}}}
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=1"))
    assert created["HostConfig"]["ReadonlyRootfs"] is read_only


def test_where_selinux_rules_the_labels_of_files_and_gpus_are_left_alone(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(tmp_path, monkeypatch)
    api.info = {"SecurityOptions": ["name=seccomp,profile=default", "name=selinux"]}
    created = asked_for(api, tmp_path, machine(monkeypatch))
    assert created["HostConfig"]["SecurityOpt"] == ["no-new-privileges", "label=disable"]


def test_an_older_podman_gets_the_gpus_by_nvidias_hook_in_its_folder(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specification(tmp_path, *UUIDS)
    monkeypatch.setattr(gpus, "_CDI_FOLDERS", (str(tmp_path),))
    (tmp_path / "oci-nvidia-hook.json").write_text('{"hook": {"path": "/usr/bin/nvidia-container-runtime-hook"}}')
    monkeypatch.setattr(gpus, "_PODMAN_HOOKS", tmp_path)
    api.name, api.version = "Podman Engine", "4.3.1"
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=1"))
    assert not created["HostConfig"].get("DeviceRequests")
    assert variables(created)["NVIDIA_VISIBLE_DEVICES"] == "GPU-1111"


@pytest.mark.parametrize(
    ("name", "version", "info", "remedy"),
    [
        ("Engine", "20.10.24", {}, "`nvidia-ctk runtime configure --runtime=docker`, restart Docker"),
        (
            "Engine",
            "28.2.2",
            {"CDISpecDirs": ["/etc/cdi"], "DiscoveredDevices": [], "Runtimes": {"runc": {}}},
            "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
        ),
        (
            "Podman Engine",
            "4.3.1",
            {"Runtimes": {"crun": {}}},
            "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` and Podman 5.4 or newer",
        ),
        ("Podman Engine", "5.6.2", {}, "`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"),
    ],
)
def test_an_engine_that_passes_none_is_told_before_anything_starts(
    api: Api,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    version: str,
    info: dict[str, Any],
    remedy: str,
) -> None:
    api.name, api.version, api.info = name, version, info
    why_not = DockerEngine(Checkout().dockerfile, {}, tmp_path).starter.why_no_gpus(machine(monkeypatch).gpus)
    assert why_not == (
        f"{'Podman' if name.startswith('Podman') else 'Docker'} {version} here passes no GPUs: install "
        f"nvidia-container-toolkit, then {remedy}; or use --engine venv, or --accelerator cpu"
    )
    assert not api.created


def test_what_cuda_compiles_is_kept_for_the_environment_by_trials_on_gpus_alone(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(tmp_path, monkeypatch)
    created = asked_for(api, tmp_path, machine(monkeypatch))
    (mount,) = (each for each in created["HostConfig"]["Mounts"] if each["Target"] == "/cuda-cache")
    assert (mount["Source"], mount["ReadOnly"]) == (str(tmp_path / "kernels"), False)
    assert "CUDA_CACHE_PATH=/cuda-cache" in created["Env"]
    assert "CUDA_CACHE_MAXSIZE=4294967296" in created["Env"]
    api.created.clear()
    monkeypatch.setitem(sys.modules, "pynvml", fake([]))
    alone = asked_for(api, tmp_path, Nvml())
    assert all(each["Target"] != "/cuda-cache" for each in alone["HostConfig"].get("Mounts") or ())
    assert not any(line.startswith("CUDA_CACHE") for line in alone["Env"])


def test_a_trial_without_gpus_sees_none_whatever_its_image_or_a_default_runtime_says(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.info = {"Runtimes": {"nvidia": {}}, "DefaultRuntime": "nvidia"}
    monkeypatch.setitem(sys.modules, "pynvml", fake([]))
    created = asked_for(api, tmp_path, Nvml())
    assert variables(created) == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert not created["HostConfig"].get("DeviceRequests")
    assert "Runtime" not in created["HostConfig"]
    assert "ShmSize" not in created["HostConfig"]


@pytest.mark.parametrize("way", ["CDI", "NVIDIA's hook"])
def test_windows_passes_all_and_cuda_leaves_out_the_others(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(gpus, "wsl", lambda: True)
    if way == "CDI":
        api.info = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}]}
    else:
        hook(tmp_path, monkeypatch)
    created = asked_for(api, tmp_path, machine(monkeypatch, "device=1"))
    (request,) = created["HostConfig"]["DeviceRequests"]
    assert request["DeviceIDs"] == (["nvidia.com/gpu=all"] if way == "CDI" else ["all"])
    assert variables(created)["CUDA_VISIBLE_DEVICES"] == "GPU-1111"


def test_a_run_is_refused_where_its_engine_passes_no_gpus_and_goes_on_the_cpu_where_asked_for(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml, checkout = machine(monkeypatch), Checkout()
    builder = Builder(Settings(engine="docker", cache=tmp_path), checkout)
    with pytest.raises(UserError) as caught:
        choose(builder, Choice(("torch1.1-cu90",)), nvml)
    assert str(caught.value) == (
        "torch1.1-cu90 cannot be used here: Docker 20.10.24 here passes no GPUs: install nvidia-container-toolkit, "
        "then `nvidia-ctk runtime configure --runtime=docker`, restart Docker; or use --engine venv, or "
        "--accelerator cpu"
    )
    chosen = choose(builder, Choice(("torch1.1-cu90",), accelerator="cpu"), nvml)
    assert [one.name for one in chosen.environments] == ["torch1.1-cu90"]
    hook(tmp_path, monkeypatch)
    chosen = choose(builder, Choice(("torch1.1-cu90",)), nvml)
    assert [one.name for one in chosen.environments] == ["torch1.1-cu90"]


@pytest.mark.parametrize(
    ("name", "version", "info", "told"),
    [
        ("Engine", "28.2.2", {"CgroupVersion": "1"}, "28.2.2"),
        ("Engine", "28.2.2", {"CgroupVersion": "2", "SecurityOptions": ["name=rootless"]}, "28.2.2 (rootless)"),
        ("Podman Engine", "4.3.1", {"CgroupVersion": "1", "Rootless": False}, "Podman 4.3.1"),
        ("Podman Engine", "4.3.1", {"CgroupVersion": "2", "Rootless": True}, "Podman 4.3.1 (rootless)"),
        (
            "Podman Engine",
            "4.3.1",
            {"CgroupVersion": "1", "Rootless": True},
            "Podman 4.3.1 (rootless, without limits on memory)",
        ),
    ],
)
def test_results_say_which_engine_it_was_and_what_it_does_not_enforce(
    api: Api, tmp_path: Path, name: str, version: str, info: dict[str, Any], told: str
) -> None:
    api.name, api.version, api.info = name, version, info
    assert DockerEngine(Checkout().dockerfile, {}, tmp_path).availability().version == told


@pytest.mark.parametrize(
    ("cgroup", "found"),
    [
        ("0::/system.slice/docker-{id}.scope\n", 77),
        ("12:pids:/docker/{id}\n0::/docker/{id}\n", 77),
        ("0::/user.slice/libpod-{id}.scope/container\n", 77),
        ("0::/user.slice/user-1000.slice/firefox.scope\n", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_a_process_id_of_another_system_is_no_process_of_a_trial(
    tmp_path: Path, cgroup: str | None, found: int
) -> None:
    """That of Docker Desktop would be another program here, whose memory would be recorded as the trial's."""
    name = "6c41fb0a03b7" * 5
    if cgroup is not None:
        (tmp_path / "77").mkdir()
        (tmp_path / "77" / "cgroup").write_text(cgroup.format(id=name))
    assert containers.own_process(77, name, tmp_path) == found
