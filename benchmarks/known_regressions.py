"""Whether `ab` finds regressions that users reported: `python -m benchmarks.known_regressions`, .venv active.

Each row is a package with two releases, whose issue names the regression, and two neighbouring releases without one. A
repository is made of it whose commits pin the releases, and `--setup` installs them. Prints the exit code of each call,
its seconds, and its lines. The exit code is 1 where a regression was not found, or a neighbour was red.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.called_versions import compare
from tests.extras.ab.repository import Repository
from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_VERDICT


class Reported(NamedTuple):
    """A reported regression. `text`: of bench.py. more: a requirement beside the release. options: of pip."""

    package: str
    issue: str
    slower: tuple[str, str]
    neighbours: tuple[str, str]
    text: str
    more: str = ""
    options: str = ""


_TIMED = """
import time
def timed(name, call, least=0.2):
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < least:
        call()
        count += 1
    print("%s time: %.6f ms" % (name, (time.perf_counter() - begin) / count * 1e3))
"""
_SCHEMA = """
import jsonschema
leaf = {"type": "object", "properties": {name: {"type": "integer", "minimum": 0} for name in "abcdefgh"}}
REFS = {"definitions": {"leaf": leaf}, "type": "array", "items": {"$ref": "#/definitions/leaf"}}
data = [{name: 1 for name in "abcdefgh"} for _ in range(20)]
timed("validation with references", lambda: jsonschema.Draft7Validator(REFS).validate(data))
"""
_IMPORTS = """
import subprocess, sys
timed("import", lambda: subprocess.run([sys.executable, "-c", "import pyparsing"], check=True))
"""
_FUNCTIONS = """
import lizard
method = "  public int f%d(int a) throws X { for (int i = 0; i < 3; i++) { a++; } return a; }\\n"
code = "class A {\\n" + "".join(method % n for n in range(40)) + "}\\n"
timed("analysis", lambda: lizard.analyze_file.analyze_source_code("A.java", code))
"""
_PAGE = """
import mf2py
item = '<div class="h-entry"><a class="u-url p-name" href="/a">A</a><p class="e-content">text <b>bold</b></p></div>'
page = "<html><body>" + item * 40 + "</body></html>"
timed("parse", lambda: mf2py.parse(doc=page, url="http://example.org/"))
"""
_ESCAPES = """
import markupsafe
text = "<a href='x'>&</a> plain text that is longer than its tags " * 50
timed("escape", lambda: markupsafe.escape(text))
"""
# Some of these releases import pkg_resources, which newer ones lack.
_OLD = "setuptools<80"
REPORTED = (
    Reported("jsonschema", "python-jsonschema/jsonschema#853", ("3.2.0", "4.0.1"), ("4.17.0", "4.17.1"), _SCHEMA, _OLD),
    Reported(
        "jsonschema", "python-jsonschema/referencing#178", ("4.17.3", "4.18.0"), ("4.22.0", "4.23.0"), _SCHEMA, _OLD
    ),
    Reported("pyparsing", "pyparsing/pyparsing#362", ("2.4.7", "3.0.0"), ("3.1.1", "3.1.2"), _IMPORTS, _OLD),
    Reported("lizard", "terryyin/lizard#253", ("1.15.7", "1.16.1"), ("1.17.8", "1.17.9"), _FUNCTIONS, _OLD),
    Reported("mf2py", "microformats/mf2py#122", ("1.0.4", "1.1.1"), ("1.1.2", "1.1.3"), _PAGE, _OLD),
)
# A package that pip compiles: neighbouring releases alone.
COMPILED = Reported(
    "MarkupSafe", "", ("", ""), ("2.1.4", "2.1.5"), _ESCAPES, _OLD, "--no-binary :all: --no-build-isolation"
)


def main(arguments: Sequence[str] | None = None, reported: Sequence[Reported] = (*REPORTED, COMPILED)) -> int:
    """Make all calls. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the package of this name")
    only = parser.parse_args(arguments).only
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, each in enumerate(row for row in reported if only in (None, row.package)):
            if each.issue:
                wrong += not _is_found(*_call(Path(folder, f"{number}-slower"), each, each.slower))
            code, _ = _call(Path(folder, f"{number}-neighbours"), each, each.neighbours)
            wrong += code not in (0, EXIT_NOTHING_CHECKED)
    return min(1, wrong)


def _is_found(code: int, printed: str) -> bool:
    return code == EXIT_VERDICT and ": slower: " in printed


def _call(folder: Path, each: Reported, releases: tuple[str, str]) -> tuple[int, str]:
    """The exit code of a call on two commits that pin two releases, and what it printed."""
    repository = Repository(folder)
    for release in releases:
        pinned = f"{each.package}=={release}\n{each.more}\n"
        repository.commit(requirements__txt=pinned, bench__py=_TIMED + each.text)
    tools = "pip install -q setuptools wheel && " if each.options else ""
    setup = f"{tools}pip install -q {each.options} -r requirements.txt"
    print(f"{each.package} {' -> '.join(releases)} {each.issue}:", flush=True)
    begin = time.monotonic()
    called = compare(repository, ("HEAD~1", "HEAD", "--setup", setup, "--within", "3m"), ("python", "bench.py"))
    print(f"    exit code {called[0]}, {time.monotonic() - begin:.0f} s", flush=True)
    return called


if __name__ == "__main__":
    sys.exit(main())
