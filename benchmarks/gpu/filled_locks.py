"""What `invoke lock` changed, and whether it may be committed. Pure functions over environments and texts of files."""

import difflib
from collections.abc import Iterator, Mapping

from benchmarks.gpu.findings import Finding, judged
from tsuishi.specs.environment import Environment

# Hashes that somebody else states, by environment and package: the origins in its spec say who.
STATED = {("torch1.1-cu100", "torch"): "f5a33910a2d2932b3224788dfdfab5ba7dd972ec8a3488bf92be63ae30a54591"}


def compared(before: Environment, after: Environment) -> Iterator[Finding]:
    """Findings on a new lock: it is whole, what was known is as it was, and hashes stated elsewhere agree."""
    yield filled(before, after)
    yield known(before, after)
    yield from stated(after, STATED)


def filled(before: Environment, after: Environment) -> Finding:
    """Whether no hash is open any more, and the base has a digest."""
    digest = after.base.digest if after.base else ""
    words = f"{len(before.open)} open hashes before, {len(after.open)} after, the base's digest {digest or 'unknown'}"
    return judged(f"lock of {after.name}", not after.open and bool(digest), f"{words}; expected 0 and a digest")


def known(before: Environment, after: Environment) -> Finding:
    """Whether every version, hash and digest that was known is the same; new packages may be added."""
    old, new = _hashes(before), _hashes(after)
    changes = [
        f"{name} {_shown(old[name])} before, {_shown(new.get(name))} after"
        for name in old
        if name not in new or new[name][0] != old[name][0] or not set(new[name][1]) <= set(old[name][1])
    ]
    words = f"{len(changes)} of {len(old)} changed{'; '.join(['', *changes])}; expected 0"
    return judged(f"what was known of {after.name}", not changes, words)


def stated(after: Environment, hashes: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    """Whether hashes that somebody else states are those of the lock. hashes: by environment and package."""
    pins = {pin.name: pin for pin in after.pins}
    for (environment, name), expected in hashes.items():
        if environment == after.name:
            found = ", ".join(pins[name].sha256) if name in pins else "no such package"
            what = f"stated hash of {name} in {environment}"
            yield judged(what, found == expected, f"{found or 'open'}, expected {expected}")


def _hashes(environment: Environment) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Version and hashes that are known, by name: of packages, of Debian packages, and of the base."""
    found = {pin.name: (pin.version, pin.sha256) for pin in environment.pins if pin.sha256}
    found |= {f"deb {deb.name}": (deb.version, (deb.sha256,)) for deb in environment.debs if deb.sha256}
    if environment.base and environment.base.digest:
        found["base"] = environment.base.reference, (environment.base.digest,)
    return found


def _shown(known: tuple[str, tuple[str, ...]] | None) -> str:
    return f"{known[0]} {' or '.join(known[1])}" if known else "nothing"


def patch(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The changes of files, as `git apply` takes them; empty without any. The texts are by path in the checkout."""
    pieces = []
    for path in sorted(after):
        old, new = before.get(path), after[path]
        if old == new:
            continue
        begun = f"diff --git a/{path} b/{path}\n" + ("new file mode 100644\n" if old is None else "")
        places = f"a/{path}" if old is not None else "/dev/null", f"b/{path}"
        lines = difflib.unified_diff((old or "").splitlines(keepends=True), new.splitlines(keepends=True), *places)
        whole = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
        pieces.append(begun + "".join(whole))
    return "".join(pieces)
