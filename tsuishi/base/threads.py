"""Several pieces of work at once, in threads; Ctrl-C ends all of them.

Python interrupts only the main thread. Long work in another thread calls `check` now and then, or names with `closing`
a way to end it: closing the socket that it reads from, killing the process that it waits for.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import IO, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# A thread that has not ended by then is left behind: it ends with the process.
_PATIENCE_S = 5.0
_CHUNK = 1 << 20


class Halted(BaseException):
    """Raised in a thread whose work is not needed any more. It is no error, so `except Exception` does not catch it."""


class _Halt:
    """Says whether the work of a call of `each` is still needed. Knows the ways to end it."""

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
            if self._halted.is_set():  # `halt` was called before it knew this way
                with suppress(Exception):
                    close()
            self.check()
            yield
        finally:
            with self._lock:
                self._ways.remove(close)

    def halt(self) -> None:
        self._halted.set()
        with self._lock:
            ways = list(self._ways)
        for close in ways:
            with suppress(Exception):  # the work may have ended just now
                close()


_current: ContextVar[_Halt] = ContextVar("_current", default=_Halt())  # noqa: B039  it is never halted


def check() -> None:
    """Raise Halted where the work of this thread is not needed any more."""
    _current.get().check()


def closing(close: Callable[[], object]) -> AbstractContextManager[None]:
    """Inside the block, another thread may call `close` to end the waiting of this thread. The call may come too late.

    Calls `close` and raises Halted where the work of this thread is not needed any more.
    """
    return _current.get().closing(close)


def pieces_until_halted(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of a file, a mebibyte at a time. Raises Halted where the work of this thread is not needed any more."""
    while chunk := file.read(_CHUNK):
        check()
        yield chunk


def each(items: Sequence[Item], work: Callable[[Item], Result], jobs: int) -> list[Result]:
    """The result of `work` for every item, in the items' order; `jobs` of them run at a time.

    The first exception, which may be Ctrl-C, ends the other threads and is raised after they have ended.
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
