"""The Dockerfile of an environment, and the build context with its files."""

import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tsuishi.base.files import temporary_folder
from tsuishi.engines import wheelhouse
from tsuishi.specs.environment import Environment


def dockerfile(template: str, environment: Environment, base: str) -> str:
    """The Dockerfile of an environment on the image `base`.

    Raises jinja2.UndefinedError for a template that uses other variables than environment, base and pip.
    """
    import jinja2

    jinja = jinja2.Template(template, undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
    text: str = jinja.render(environment=environment, base=base, pip=wheelhouse.PIP)
    return text


@contextmanager
def context(
    template: str,
    environment: Environment,
    base: str,
    wheels: Sequence[Path],
    debs: Sequence[Path],
    temporary: Path,
) -> Iterator[Path]:
    """A build context as a tar in the folder `temporary`; it is removed afterwards.

    The same content gives the same bytes, so that the engine finds the layers of an earlier build. Raises BuildError
    where the lock has no wheel of pip.
    """
    with temporary_folder(temporary, ".context-") as folder:
        content = folder / "context"
        wheelhouse.lay_out(content, environment, wheels, debs)
        if environment.packages == "locked":
            wheelhouse.link(wheelhouse.pip_wheel(environment.name, wheels), content / wheelhouse.PIP)
        (content / "Dockerfile").write_text(dockerfile(template, environment, base), encoding="utf-8")
        path = folder / "context.tar"
        with tarfile.open(path, "w", dereference=True) as tar:
            tar.add(content, arcname=".", filter=_without_circumstances)
        yield path


def _without_circumstances(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """The tar entry without the time, owner and mode that its file has on this machine."""
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry
