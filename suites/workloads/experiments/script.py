"""A program of anybody, unmodified: it runs as a child process, and patterns find numbers in what it prints.

The request has, beside its usual fields, `script`:
    files      each with `path`, `file` (where it is) and `sha256`; the first is the script
    data       files and folders that are only read: each with `path`, from the script's folder, and `file`
    command    its words; the first, "python", stands for the interpreter of this environment
    variables  more environment variables
    patterns   see common/patterns.py
    numerals   for the placeholders of patterns: expressions of a `number` by decimal sign, of a `duration`, and of
               `units`, with the factor of every unit that a line may have, and whether the number is turned round
The files are copied to a fresh folder, and the command starts in the folder of the script. Data are links there.
"""

import collections
import difflib
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time

from common import devices, events, installed, lines, patterns, plausibility
from common.request import Fields, Request

OTHER_PROCESS = True
PYTHON = "python"
PHASE = "script"
TRACEBACK = "Traceback (most recent call last):"
RAISED = re.compile(r"([A-Za-z_][\w.]*)(?::\s*(.*))?$")
KEPT = 400  # lines among which the nearest is looked for
SHOWN, SHOWN_CHARACTERS = 5, 120
NAMED_GROUP, SYNTAX = re.compile(r"\(\?P<\w+>"), re.compile(r"\\.|\[[^]]*\]|[()*+?.^$|{}]")


class ScriptFailed(Exception):
    """The script ended with an exit code or by a signal."""


class NeverMatched(Exception):
    """The script ended well, but a pattern matched no line."""


class OtherFile(Exception):
    """A file of the script is not the file that the suite names."""


def read(values):
    """The Request of the JSON object, with `script`."""
    request = Request(values)
    request.script = Fields("script", values["script"])
    return request


def run(request, emitter):
    variables = variables_of(request)
    # No framework is imported: the script may need none, and an import takes seconds of every trial.
    emitter.environment(
        framework=request.framework,
        python=installed.python_version(),
        devices=devices.described(request.accelerator),
        simulated=False,
        synthetic=False,
    )
    installed.report(emitter, container=False)
    folder = tempfile.mkdtemp(prefix="script-")
    try:
        place = laid_out(request.script["files"], request.script["data"], folder)
        command = [sys.executable if word == PYTHON else word for word in request.script["command"][:1]]
        known = request.script["numerals"]
        found = [patterns.made(fields, known, emitter) for fields in request.script["patterns"]]
        watch(command + request.script["command"][1:], place, variables, found, emitter)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def variables_of(request):
    """The environment variables of the script."""
    variables = dict(os.environ, PYTHONIOENCODING="utf-8")
    variables.pop("PYTHONUNBUFFERED", None)  # it would write the end of a line apart from the line
    if request.accelerator == "cpu":
        variables["CUDA_VISIBLE_DEVICES"] = "-1"
    return dict(variables, **request.script["variables"])


def laid_out(files, data, folder):
    """Copies the files to a folder, each to its path, and returns the folder of the first. Raises OtherFile.

    Data become links, which may lie beside the folder of the script and above it: there is room for that.
    """
    above = max([one["path"].split("/").count("..") for one in data] + [0])
    root = os.path.join(folder, *["above"] * above)
    for one in files:
        target = os.path.join(root, one["path"])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(one["file"], target)
        with open(target, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        if digest != one["sha256"]:
            raise OtherFile("{} has the SHA-256 {}, not {}".format(one["path"], digest, one["sha256"]))
    place = os.path.dirname(os.path.join(root, files[0]["path"]))
    for one in data:
        link = os.path.normpath(os.path.join(place, one["path"]))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(one["file"], link)
    return place


def watch(command, folder, variables, found, emitter):
    """Runs the script until its end and emits what the patterns find. Raises for every end but a good one."""
    heard, doubts = Heard(), plausibility.Doubts()
    with emitter.phase(PHASE):
        begin = time.perf_counter()
        output = lines.Output(command, folder, variables)
        try:
            with patterns.Limit(found):
                for line in output.lines():
                    heard.add(line)
                    doubts.hear(line, patterns.hear(found, line))
        except BaseException:
            output.child.kill()
            raise
        finally:
            for pattern in found:
                pattern.close()
    wall_s = output.ended - begin
    emitter.sample(PHASE, 0, 1, 0, wall_s)
    doubts.judge(found, wall_s)
    emitter.environment(remarks=doubts.texts)
    if output.child.returncode:
        heard.raise_failure(output.child.returncode)
    for pattern in found:
        if not pattern.matches:
            raise NeverMatched(heard.without(pattern))


class Heard:
    """What has to be known of the lines after the script's end, in bounded memory."""

    def __init__(self):
        self.count = 0
        self.first, self.last = [], collections.deque(maxlen=KEPT)
        self.raised = None  # class and text of the last traceback on stderr
        self._in_traceback = False

    def add(self, line):
        self.count += 1
        (self.first if len(self.first) < KEPT else self.last).append(line.text)
        if line.stream != "stderr":
            return
        if line.text.startswith(TRACEBACK):
            self._in_traceback = True
        elif self._in_traceback and not line.text[:1].isspace():
            match = RAISED.match(line.text)
            if match:
                self.raised = (match.group(1), match.group(2) or "")
            self._in_traceback = False

    def raise_failure(self, code):
        """Raises MemoryError where the script says that no memory is left, else ScriptFailed."""
        texts = list(self.last) or self.first
        last = texts[-1].strip() if texts else "it printed nothing"
        name, text = self.raised or ("RuntimeError", last)
        why = "the script {}: {}".format(ended(code), "{}: {}".format(*self.raised) if self.raised else last)
        if events.means_out_of_memory(name.rpartition(".")[2], text):
            raise MemoryError(why)
        raise ScriptFailed(why)

    def without(self, pattern):
        """Why a pattern found nothing: its expressions, the nearest line and the first lines."""
        if not self.count:
            return "pattern '{}' matched nothing: the script printed nothing".format(pattern.name)
        expressions = " ... ".join(search.expression for search in pattern.searches)
        first = [text[:SHOWN_CHARACTERS] for text in self.first[:SHOWN]]
        return "pattern '{}' ({}) matched none of {} lines; nearest: {!r}; the first: {}".format(
            pattern.name,
            expressions,
            self.count,
            nearest(pattern.searches[0].expression, self.first + list(self.last))[:SHOWN_CHARACTERS],
            " | ".join(first),
        )


def nearest(expression, texts):
    """The text most like the literal parts of a regular expression."""
    literal = SYNTAX.sub(" ", NAMED_GROUP.sub("(", expression)).strip()
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(literal)

    def likeness(text):
        matcher.set_seq1(text[: 4 * SHOWN_CHARACTERS])
        return sum(block.size for block in matcher.get_matching_blocks() if block.size > 1) / (len(literal) or 1)

    return max(texts, key=likeness)


def ended(code):
    """How a process ended, in words."""
    if code > 0:
        return "ended with exit code {}".format(code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "signal {}".format(-code)
    more = " (most likely by the kernel, for want of memory)" if name == "SIGKILL" else ""
    return "was ended by {}{}".format(name, more)
