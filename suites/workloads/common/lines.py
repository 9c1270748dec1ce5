"""The lines that a child process prints, as they arrive: of bounded length, from stdout and stderr."""

import collections
import fcntl
import os
import re
import selectors
import struct
import subprocess
import termios
import time
import tty

LINE_BYTES = 2000  # a longer line is cut: no pattern sees its end
CHUNK = 1 << 16
GRACE_S = 1.0  # for processes that still hold the terminals after their parent has ended
TICK_S = 0.05
ROWS, COLUMNS = 50, 200  # of the terminals: room for the widest bars
# Progress bars go back to the start of their line by carriage returns or backspaces: each state of a bar is a line.
BREAK = re.compile(rb"([\r\n\x08]+)")
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
RECORD_SEPARATOR = b"\x1e"  # it begins an event; no child may write events

# A line: "stdout" or "stderr", the moment of its arrival (time.perf_counter), its text without colours, and its row:
# states of a line that is drawn over itself have the same.
Line = collections.namedtuple("Line", "stream when text row")


class Splitter:
    """Divides chunks of bytes into lines. It keeps at most LINE_BYTES of a line that has not ended."""

    def __init__(self):
        self._rest, self._row = b"", 0

    def feed(self, chunk):
        """Text and row of the lines that end in a chunk; empty lines are left out."""
        parts = BREAK.split(self._rest + chunk)
        self._rest = parts.pop()[:LINE_BYTES]
        found = []
        for data, ending in zip(parts[::2], parts[1::2]):
            text = _text(data)
            if text.strip():
                found.append((text, self._row))
            self._row += b"\n" in ending
        return found

    def close(self):
        """Text and row of the last line, which has no end, in a list; an empty list without such a line."""
        return self.feed(b"\n")


class Output:
    """A program that was started in a folder, and its lines.

    It prints to a terminal each for stdout and stderr: Python and C then write whole lines as they are printed, where a
    pipe would get blocks, or lines that several processes tear. `ended`: when the program ended (time.perf_counter);
    None until then.
    """

    def __init__(self, command, folder, variables):
        self.ended = None
        self._splitters = {"stdout": Splitter(), "stderr": Splitter()}
        self._ours, theirs = zip(*(_terminal() for _ in self._splitters))
        try:
            self.child = subprocess.Popen(
                command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=theirs[0], stderr=theirs[1]
            )
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def lines(self):
        """Yields each Line until the program has ended, and passes all bytes on to our own output.

        A process that it leaves behind may hold the terminals: after the end they are read for GRACE_S.
        """
        with selectors.DefaultSelector() as selector:
            for descriptor, about in zip(self._ours, (("stdout", 1), ("stderr", 2))):
                selector.register(descriptor, selectors.EVENT_READ, about)
            while selector.get_map() and (self.ended is None or time.perf_counter() - self.ended < GRACE_S):
                for key, _ in selector.select(TICK_S):
                    for line in self._read(selector, key):
                        yield line
                if self.ended is None and self.child.poll() is not None:
                    self.ended = time.perf_counter()
        self.child.wait()  # it may close its output long before its end
        self.ended = self.ended or time.perf_counter()
        for stream, splitter in self._splitters.items():
            for text, row in splitter.close():
                yield Line(stream, self.ended, text, row)

    def _read(self, selector, key):
        """The lines that end in what can be read now from one of the terminals."""
        stream, own = key.data
        try:
            chunk = os.read(key.fd, CHUNK)
        except OSError:  # EIO: nobody has it open any more
            chunk = b""
        when = time.perf_counter()
        if chunk:
            _pass_on(own, chunk)
        else:
            selector.unregister(key.fileobj)
        return [Line(stream, when, text, row) for text, row in self._splitters[stream].feed(chunk)]


def _terminal():
    """A new terminal that alters nothing: (our descriptor, the program's)."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return ours, theirs


def _text(data):
    return COLOUR.sub("", data[:LINE_BYTES].decode("utf-8", "replace"))


def _pass_on(descriptor, chunk):
    data = chunk.replace(RECORD_SEPARATOR, b" ")
    while data:
        data = data[os.write(descriptor, data) :]
