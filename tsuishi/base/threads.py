"""Several pieces of work at once, in threads, and all of them ended when one call of Ctrl-C says so.

Python tells only the main thread of an interrupt. What may take long in the others calls `check` now and then, or names
a way to end it with `closing`: the socket it reads from, the process it waits for.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# What has not ended by then is left behind: its thread ends with the process.
_PATIENCE_S = 5.0
_CHUNK = 1 << 20


class Halted(BaseException):
    """Raised in a thread whose work is not wanted any more; no error, and not to be caught as one."""


class _Halt:
    """Whether the work of one call of `each` is still wanted, and how to end what is going on."""

    def __init__(self) -> None:
        self._halted = threading.Event()
        self._lock = threading.Lock()
        self._ways: list[Callable[[], object]] = []

    def check(self) -> None:
        if self._halted.is_set():
            raise Halted

    @contextmanager
    def closing(self, close: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            self._ways.append(close)
        try:
            try:
                self.check()
            except Halted:  # before there was a way to end it
                with suppress(Exception):
                    close()
                raise
            yield
        finally:
            with self._lock:
                self._ways.remove(close)

    def halt(self) -> None:
        self._halted.set()
        with self._lock:
            ways = list(self._ways)
        for close in ways:
            with suppress(Exception):  # it may just have ended by itself
                close()


_current: ContextVar[_Halt] = ContextVar("_current", default=_Halt())  # noqa: B039  it is never halted


def check() -> None:
    """Raise Halted where the work of this thread is not wanted any more."""
    _current.get().check()


@contextmanager
def closing(close: Callable[[], object]) -> Iterator[None]:
    """While inside, `close` is how another thread ends what this one waits for; it may come too late, and fail.

    Raises Halted, and has called it, where the work of this thread is not wanted any more.
    """
    with _current.get().closing(close):
        yield


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """What is left of a file, a mebibyte at a time, for as long as it is wanted."""
    while chunk := file.read(_CHUNK):
        check()
        yield chunk


def each(items: Sequence[Item], work: Callable[[Item], Result], jobs: int) -> list[Result]:
    """What `work` returns for every item, in their order; `jobs` of them at a time.

    The first exception of any of them, Ctrl-C among them, ends the others, waits for them, and is raised.
    """
    halt = _Halt()
    waiting: queue.SimpleQueue[tuple[int, Item]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Result | BaseException]] = queue.SimpleQueue()
    for pair in enumerate(items):
        waiting.put(pair)

    def labour() -> None:
        _current.set(halt)
        with suppress(queue.Empty):
            while True:
                index, item = waiting.get_nowait()
                try:
                    halt.check()
                    done.put((index, work(item)))
                except BaseException as error:
                    done.put((index, error))

    threads = [threading.Thread(target=labour, daemon=True) for _ in range(min(jobs, len(items)))]
    results: dict[int, Result] = {}
    try:
        for thread in threads:
            thread.start()
        while len(results) < len(items):
            index, result = done.get()
            if isinstance(result, BaseException):
                raise result
            results[index] = result
    except BaseException:
        halt.halt()
        _wait_for(threads)
        raise
    return [results[index] for index in range(len(items))]


def _wait_for(threads: Sequence[threading.Thread]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    for thread in threads:
        if thread.is_alive():
            thread.join(max(0.0, deadline - time.monotonic()))
