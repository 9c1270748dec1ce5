"""The workload `script`, asked for what it is not seen to do in a run."""

import hashlib
import json
from importlib import metadata
from pathlib import Path

from tests.suites.entry import copied, run


def test_no_framework_is_imported_and_the_packages_of_the_environment_are_reported(tmp_path: Path) -> None:
    script = tmp_path / "theirs.py"
    script.write_text("print('rate: 1')\n")
    workloads = copied(tmp_path)
    (workloads / "torch.py").write_text("raise SystemExit('a framework was imported')\n")
    sha256 = hashlib.sha256(script.read_bytes()).hexdigest()
    file = {"path": script.name, "file": str(script), "sha256": sha256}
    command = ["python", script.name]
    asked = {
        "experiment": "script",
        "case": {"protocol": "literal"},
        "framework": "torch",
        "accelerator": "cpu",
        "settings": {},
        "script": {"files": [file], "data": [], "command": command, "variables": {}, "patterns": [], "numerals": {}},
    }
    code, events, log = run(workloads, json.dumps(asked))
    assert (code, events[-1]["event"]) == (0, "finished"), log
    packages: dict[str, str] = {}
    for event in events:
        packages |= event.get("packages", {})
    assert packages["numpy"] == metadata.version("numpy")
