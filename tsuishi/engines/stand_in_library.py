"""Generates a shared library (ELF, x86-64) whose functions all do one thing: return an error code, or end the process.

It takes the place of a library that an environment cannot have, so that what is linked with it can be loaded. No
compiler is needed: the file is the tables that glibc's loader reads, and one function. Format: System V gABI, chapters
4 and 5, and the LSB's symbol versioning.
"""

import struct
from collections.abc import Sequence

_PAGE = 0x1000
_EXIT_CODE = 1
# Of ELF: sizes, types of segments and their flags, tags of the dynamic section.
_HEADER, _SEGMENT, _SYMBOL = 64, 56, 24
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_RW, _RX = 6, 5
_HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME = 4, 5, 6, 10, 11, 14
_VERSYM, _VERDEF, _VERDEFNUM = 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
_GLOBAL_FUNCTION, _SOME_SECTION = 0x12, 1


def stand_in(name: str, symbols: Sequence[str], *, versioned: bool, returns: int | None, why: str) -> bytes:
    """The bytes of the library `name` with these functions; the same arguments give the same bytes.

    versioned: the version of each function is the name of the library. returns: what each function returns; None: it
    ends the process with `why` on stderr.
    """
    names, at = _strings((name, *symbols))
    code = _returning(returns) if returns is not None else _ending(f"{name}: {why}\n".encode())
    count = len(symbols) + 1
    of_versions = _versions(name, at[name], count) if versioned else (b"", b"")
    tables = [_hash_table(symbols), bytes(_SYMBOL * count), names, *of_versions, code]
    places, end = [], _aligned(_HEADER + 4 * _SEGMENT)
    for table in tables:
        places.append(end)
        end = _aligned(end + len(table))
    hashes, symbol_table, strings, versions, definitions, function = places
    entries = (struct.pack("<IBBHQQ", at[each], _GLOBAL_FUNCTION, 0, _SOME_SECTION, function, 0) for each in symbols)
    tables[1] = bytes(_SYMBOL) + b"".join(entries)
    tags = [(_HASH, hashes), (_STRTAB, strings), (_SYMTAB, symbol_table), (_STRSZ, len(names)), (_SYMENT, _SYMBOL)]
    tags += [(_SONAME, at[name])]
    tags += [(_VERSYM, versions), (_VERDEF, definitions), (_VERDEFNUM, 2)] if versioned else []
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in (*tags, (0, 0)))
    place = end + _PAGE  # on a page of its own, as the loader writes into it
    segments = [(_LOAD, _RX, 0, 0, end, _PAGE), (_LOAD, _RW, end, place, len(dynamic), _PAGE)]
    segments += [(_DYNAMIC, _RW, end, place, len(dynamic), 8), (_STACK, _RW, 0, 0, 0, 16)]
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        3,
        62,
        1,
        0,
        _HEADER,
        0,
        0,
        _HEADER,
        _SEGMENT,
        len(segments),
        0,
        0,
        0,
    )
    head += b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, alignment)
        for kind, flags, offset, address, size, alignment in segments
    )
    content = bytearray(head)
    for where, table in zip(places, tables, strict=True):
        content += bytes(where - len(content)) + table
    return bytes(content + bytes(end - len(content)) + dynamic)


def _aligned(size: int) -> int:
    return -(-size // 8) * 8


def _strings(texts: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    """A string table, and where each text begins in it."""
    table, at = b"\0", dict[str, int]()
    for text in texts:
        at[text] = len(table)
        table += text.encode() + b"\0"
    return table, at


def _returning(code: int) -> bytes:
    return b"\xb8" + struct.pack("<I", code) + b"\xc3"  # mov eax, code; ret


def _ending(line: bytes) -> bytes:
    """Writes a line to stderr, and ends the process: system calls 1 (write) and 231 (exit_group)."""
    end = b"\xbf" + struct.pack("<I", _EXIT_CODE) + b"\xb8" + struct.pack("<I", 231) + b"\x0f\x05"
    write = b"\xba" + struct.pack("<I", len(line)) + b"\xb8" + struct.pack("<I", 1) + b"\x0f\x05"
    # mov edi, 2; lea rsi, [the line, behind this code]
    return b"\xbf\x02\0\0\0" + b"\x48\x8d\x35" + struct.pack("<i", len(write) + len(end)) + write + end + line


def _hash_table(symbols: Sequence[str]) -> bytes:
    """The table by which the loader finds a symbol, whose number is its place from 1 on."""
    buckets, chains = [0] * len(symbols), [0] * (len(symbols) + 1)
    for number, name in enumerate(symbols, 1):
        bucket = _hash(name) % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    return struct.pack(f"<{2 + len(buckets) + len(chains)}I", len(buckets), len(chains), *buckets, *chains)


def _hash(name: str) -> int:
    """The hash function of System V's gABI."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def _versions(name: str, at: int, count: int) -> tuple[bytes, bytes]:
    """The version of each symbol, and the definitions: of the library itself (1), and of its functions (2)."""
    of_symbols = struct.pack(f"<{count}H", 0, *[2] * (count - 1))
    definitions = b""
    for flags, number, following in ((1, 1, 28), (0, 2, 0)):
        definitions += struct.pack("<HHHHIII", 1, flags, number, 1, _hash(name), 20, following)
        definitions += struct.pack("<II", at, 0)
    return of_symbols, definitions
