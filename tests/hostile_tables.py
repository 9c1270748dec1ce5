"""Tables made to take much of a reader: of each way that was tried, as large as `adopt` reads them, or refuses them."""

import json
from collections.abc import Callable
from itertools import count, islice, takewhile

from tsuishi.base import toml
from tsuishi.specs.grids import MOST_CELLS, MOST_COLUMNS, MOST_OF_PAGE

_SPAN = "<td colspan=100 rowspan=100>"
_TABLE = "| model | images/s |\n|---|---|\n| resnet50 | 10 |\n\n"
# Pieces of pages that parsers were slow at, or took much memory for.
_HTML = (
    *("<", "<a ", '<a b="', "</", "<!", "<!--", "<![a", "<?", "&", "&#", "<table>", "<tr><td>", f"<tr>{_SPAN}x"),
    *("<table><tr><td>a<tr><td>1", "<table><tr><td>a<tr><td>1</table>", "<h1>a", "<li>a", "<script>"),
)
_MARKDOWN = ("[", "![", "[](", "*a ", "**a_", "> ", "- ", "`a``", "<", "&", "\\", "a\n", "# a\n", "[a]: b\n", "|a|b|\n")


def hostile_tables(size: int = toml.MOST_TEXT_BYTES) -> dict[str, Callable[[], bytes]]:
    """The contents of files of at most `size` bytes by name, each made when it is asked for."""
    page = min(size, MOST_OF_PAGE)

    def rows(header: str, row: Callable[[int], str], cells: int) -> Callable[[], bytes]:
        """As many rows of so many cells as are read."""
        most = MOST_CELLS // cells - 2
        return lambda: _filled(size, header, islice(map(row, count(1)), most))

    def repeated(begin: str, piece: str, most: int = page) -> Callable[[], bytes]:
        return lambda: (begin + piece * ((most - len(begin)) // len(piece))).encode()

    networks = ("resnet50", "vgg16", "cnn10", "mlp", "resnet18", "alexnet")
    csv = {
        "batches": rows("model,batch_size,images/s", lambda row: f"resnet50,{row},{100 + row % 97}", 3),
        "readings": rows("model,batch_size,images/s", lambda row: f"resnet50,64,{100 + row % 97}", 3),
        "cases": rows("model,batch_size,images/s", lambda row: f"{networks[row % 6]},{row},{row % 97}.5", 3),
        "devices": rows(
            "model,batch_size,GPUs,images/s", lambda row: f"resnet50,{row // 300 + 1},{row % 300 + 1},5", 4
        ),
        "hardware": rows("model,batch_size,images/s,GPU", lambda row: f"resnet50,64,{row},V100 {row}", 4),
        "names": rows("model,batch_size,images/s", lambda row: f"network{row},64,{row}", 3),
        "words": rows("model,batch_size,images/s,Run", lambda row: f"resnet50,64,{row},run {row}", 4),
        "long texts": rows("model,batch_size,images/s", lambda row: f"resnet50,64,{'x ' * 3000}", 60),
        "columns": rows(
            f"model,{','.join(f'images/s (bs={batch})' for batch in range(1, MOST_COLUMNS))}",
            lambda row: f"{networks[row % 6]},{','.join(str(row + batch) for batch in range(1, MOST_COLUMNS))}",
            MOST_COLUMNS,
        ),
        "more rows": repeated("model,images/s\n", "vgg16,1\n", size),
        "more columns": repeated("", ",", size),
        "open quotation": repeated('model,images/s\nvgg16,"', "1,\n", size),
        "long header": repeated("model,", "per image (", 130_000),
        "digits": repeated("model,batch_size,images/s\nvgg16,", "9", size),
        "exponents": repeated("model,images/s,ms/step\n", "vgg16,1e300,1e999\n", 90_000),
        "invisible": lambda: "model,batch_size,images/s,GPU\nvgg16,64,1,V100\u202e\x07\n".encode(),
        "no text": repeated("model,", "\0", size),
    }
    keys = takewhile(lambda keys: keys * (keys + 1) <= MOST_CELLS, count(1))
    most_keys = max(keys)
    made = {
        "distinct keys": lambda: json.dumps([{f"k{key}": 1} for key in range(most_keys)]).encode(),
        "more keys": lambda: json.dumps([{f"k{key}": 1} for key in range(size // 18)]).encode(),
        "tables of keys": lambda: json.dumps(
            {f"t{table}": [{f"k{key}": 1} for key in range(300)] for table in range(size // 4400)}
        ).encode(),
        "long key": lambda: json.dumps([{"k" * (size // 2): {str(key): 1 for key in range(size // 32)}}]).encode(),
        "levels": repeated("", '{"a":', size),
        "integer": repeated('[{"model": ', "9", size),
        "half a character": lambda: b'[{"model": "vgg16", "batch_size": 64, "images/s": 1, "GPU": "V100 \\ud800"}]',
    }
    pages = {
        "headings.html": repeated(f"<h1>{'V100 batch 3 ' * (page // 26)}</h1>", "<table><tr><td>a<tr><td>1</table>"),
        "long span.html": lambda: f"<table><tr>{_SPAN}{'x ' * (page // 2 - 900)}{'<tr>' * 100}</table>".encode(),
        "nested.html": lambda: ("<table><tr><td>a" * (page // 40) + "<tr><td>1</table>" * (page // 40)).encode(),
        "headings.md": repeated("", f"# resnet50 batch 4\n\n{_TABLE}"),
        "long heading.md": lambda: f"# {'V100 batch 3 resnet50 ' * (page // 24)}\n\n{_TABLE}".encode(),
        "facts.md": repeated("---\n", "-a: b\n"),
        "wide.md": repeated(f"|{'a|' * 900}\n|{'-|' * 900}\n", "a\n"),
        "larger.md": repeated("", "a\n", size),
    }
    return {
        **{f"{name}.csv": content for name, content in csv.items()},
        **{f"{name}.json": content for name, content in made.items()},
        **{f"{piece!r}.html": repeated("", piece) for piece in _HTML},
        **{f"{piece!r}.md": repeated("", piece) for piece in _MARKDOWN},
        **pages,
    }


def _filled(size: int, header: str, rows: "islice[str]") -> bytes:
    lines, left = [header], size - len(header)
    for row in rows:
        left -= len(row) + 1
        if left < 0:
            break
        lines.append(row)
    return ("\n".join(lines) + "\n").encode()
