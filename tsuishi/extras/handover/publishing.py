"""`invoke publish`: the numbers of an archive as a published source, which the next reports compare with."""

import re
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.commands.chain import Chain
from tsuishi.extras.handover.as_source import source_text
from tsuishi.extras.handover.runs import unpacked
from tsuishi.specs.source import read_source

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def publish(chain: Chain) -> None:
    """Write reports/published/<name>.toml from a verified archive. Nothing is overwritten.

    Raises UserError where the archive is not verified, has no number, or where such a source exists.
    """
    session, options = chain.session, chain.options
    name, archive = options.text("name"), options.text("archive")
    if not _NAME.fullmatch(name):
        raise UserError(f"--name takes letters of ASCII in lower case, digits and '-'; given: {name or 'nothing'}")
    if why := files.unfit(name):
        raise UserError(f"--name: {why}")
    path = session.checkout.published / f"{name}.toml"
    if path.exists():
        raise UserError(f"{path}: there is such a source already: give another --name")
    with files.private_folder() as folder:
        found = unpacked(session, expanded(archive), folder / "0")
        title = options.text("title") or f"archive {Path(archive).name}"
        text = source_text(found.runs, session.words, found.root, title)
    with files.replacing(path) as writing:
        writing.write(text)
    source = read_source(path, session.words)
    session.screen.say(f"written: {path}: {len(source.flat())} numbers; `invoke list --sources` shows it")
