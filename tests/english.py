"""Phrases that are hard for readers who learnt English later: `python -m tests.english [PATH ...]` lists them.

It looks at documentation, and at docstrings, comments and messages of code. (Vale and proselint were considered: both
check style by rules for native readers, and neither reads the texts in Python's syntax tree.)
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("README.md", "CONTRIBUTING.md", "docs", "tasks.py", "tsuishi", "suites/explanations")
# Each stands for a noun that the reader has to find.
PATTERNS = (
    r"that which",
    r"as (it|they) (was|were)",
    r"(all|any|each|none|part|some|half|most|nothing|more|what) of it",
    r"(is|are|was|were) others?",
    r"another than",
    r"(for|of|by|with|from) what",
    r"(is|are|was) what",
    r"what (is|are|was|were) (found|asked|new|left|known|there|said|meant|read)",
    r"(the|an?|each|every|that|this|which|no|any|own|new|old|older|earlier|later|same|other) ones?(?! of)",
    r"ones? that",
    r"told",
    r"nobody names",
    r"of (theirs|ours|yours)",
    r"of anybody",
)
_ANY = re.compile("|".join(rf"(?P<p{number}>\b{pattern}\b)" for number, pattern in enumerate(PATTERNS)), re.IGNORECASE)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that somebody reads as a sentence, each with its number."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(re.sub(r"`[^`\n]*`", "", source).splitlines(), start=1)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from enumerate(node.value.splitlines(), start=node.lineno)


def found(paths: Sequence[Path]) -> Iterator[tuple[Path, int, str, str]]:
    """Every phrase: its file, its line, the phrase and the text around it."""
    for path in paths:
        for number, text in texts(path):
            for match in _ANY.finditer(text):
                yield path, number, match[0], text.strip()


def files(places: Sequence[str] = PLACES) -> list[Path]:
    """The files of these places of the checkout."""
    every = [ROOT / place for place in places]
    inside = [path for folder in every for path in (folder.rglob("*") if folder.is_dir() else [folder])]
    return sorted(path for path in inside if path.suffix in (".py", ".md"))


def main() -> None:
    """List every place; `--brief`, as `invoke lint` asks: how many there are of each phrase."""
    if sys.argv[1:] == ["--brief"]:
        counts = Counter(phrase.lower() for _, _, phrase, _ in found(files()))
        phrases = ", ".join(f"{phrase} {count}" for phrase, count in counts.most_common())
        print(f"hard phrases: {counts.total()} places (python -m tests.english lists them): {phrases}")
        return
    count = 0
    for path, number, phrase, text in found(files(sys.argv[1:] or PLACES)):
        print(f"{path.relative_to(ROOT)}:{number}: {phrase}: {text}")
        count += 1
    print(f"{count} places")


if __name__ == "__main__":
    main()
