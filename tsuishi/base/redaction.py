"""Removes secrets from texts: reasons, errors, logs and facts of environments are meant to be published.

A text may be a log of 33 MiB on a single line. Each expression here and in archives/ takes a time in proportion to the
text: a repetition cannot begin again in the middle of text it has read. `python -m benchmarks.long_texts` shows it.
"""

import re
from typing import Any

HIDDEN = "[redacted]"

# A password may hold a "/" that nobody encoded: then no port stands behind the ":".
_URL_USER = re.compile(r"(?<=://)(?:[^/\s]+|[^/\s:@]{0,200}:(?!\d*(?:[/?#\s]|$))[^\s@]{1,200})@")
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
# The forms of tokens, as their issuers define them.
_TOKEN = re.compile(
    r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|hf_\w{20,}|pypi-[\w-]{20,}"
    r"|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AIza[\w-]{35})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
# A token of JSON (RFC 7519). It is looked for once in each row of its characters, from the first place it may begin at.
_JSON_TOKEN = re.compile(r"(?<![\w-])((?>[\w-]*?\b(?=eyJ)))[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]++")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?(?:[a-z]+\s+)?|bearer\s+)(?=\S{0,128}[\d=])[\w.~+/=-]{8,}"
)
# `token=5` and `token=None` are settings of a model. A colon counts only as in {"password": "..."}, not in prose.
_PAIR = re.compile(
    r"(?i)((?:passw(?:or)?d|pwd|secret|token|(?:api|access|secret|private)[_-]?key|[?&](?:x-\w+-)?sig(?:nature)?)"
    r"(?:['\"]\s*:\s*['\"]|['\"]?\s*=\s*['\"]?))(?!(?:[\d.]+|none|null|true|false)\b)[^\s'\",;&]+"
)


def redacted(text: str) -> str:
    """The text without parts that have the form of a secret.

    >>> redacted("https://ada:secret@packages.example/simple: 404")
    'https://packages.example/simple: 404'
    >>> redacted("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI is set")
    'AWS_SECRET_ACCESS_KEY=[redacted] is set'
    """
    text = _JSON_TOKEN.sub(rf"\1{HIDDEN}", _TOKEN.sub(HIDDEN, _URL_USER.sub("", text)))
    return _PAIR.sub(rf"\1{HIDDEN}", _HEADER.sub(rf"\1{HIDDEN}", text))


def holds_secret(text: str) -> bool:
    """Whether a part of the text has the form of a secret; the name of a user in a URL is none.

    >>> holds_secret("ssh://git@packages.example/simple"), holds_secret("https://ada:secret@packages.example/simple")
    (False, True)
    >>> holds_secret("AWS_SECRET_ACCESS_KEY=[redacted] is set")
    False
    """
    without = _URL_USER.sub("", text)
    return bool(_URL_PASSWORD.search(text)) or redacted(without) != without


def redacted_values(values: Any) -> Any:
    """The same JSON value with all its texts redacted, keys included."""
    if isinstance(values, str):
        return redacted(values)
    if isinstance(values, list):
        return [redacted_values(value) for value in values]
    if isinstance(values, dict):
        return {redacted(key): redacted_values(value) for key, value in values.items()}
    return values
