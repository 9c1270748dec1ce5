"""Secrets are told by their form; whatever else is said stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.base.redaction import redacted, redacted_values

A = "aZ09" * 10


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://ada:p@ss@host/x: 404", "https://host/x: 404"),
        ("proxy http://ada:hunter2@proxy:3128 refused", "proxy http://proxy:3128 refused"),
        ("AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE.", "[redacted] and [redacted]."),
        (f"clone with ghp_{A}, gho_{A} or github_pat_{A}_x", "clone with [redacted], [redacted] or [redacted]"),
        (f"hf_{A} sk-proj-{A} glpat-{A[:20]} pypi-AgEI{A}", "[redacted] [redacted] [redacted] [redacted]"),
        ("xoxb-1234567890-abc and AIza" + "x" * 35, "[redacted] and [redacted]"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "[redacted]"),
        ("x-eyJaaa-eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ", "x-[redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- is bad", "[redacted] is bad"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE, cut", "[redacted]"),
        ("Authorization: Basic YWRhOmh1bnRlcjI=", "Authorization: Basic [redacted]"),
        ("{'Authorization': 'Bearer abcdefgh12'}", "{'Authorization': 'Bearer [redacted]'}"),
        ("sent bearer abcdefgh12, got 401", "sent bearer [redacted], got 401"),
        ("AWS_SECRET_ACCESS_KEY=wJalr/XUt+n is set", "AWS_SECRET_ACCESS_KEY=[redacted] is set"),
        ("connect(user='ada', password='hunter2')", "connect(user='ada', password='[redacted]')"),
        ('{"token": "hunter2", "n": 1}', '{"token": "[redacted]", "n": 1}'),
        ("http://ada:hun/ter2@proxy:3128 refused", "http://proxy:3128 refused"),
        ("https://host/t.csv?se=2026-01-01&sig=aB%2Bc", "https://host/t.csv?se=2026-01-01&sig=[redacted]"),
        ("https://host/t.csv?X-Amz-Signature=0a1b", "https://host/t.csv?X-Amz-Signature=[redacted]"),
        ("?api_key=hunter2&page=2", "?api_key=[redacted]&page=2"),
        ("passwd = hunter2", "passwd = [redacted]"),
    ],
)
def test_a_secret_is_not_told(given: str, told: str) -> None:
    assert redacted(given) == told


@pytest.mark.parametrize(
    "sentence",
    [
        "https://host/simple: ada@host does not answer",
        "https://host:8080/@scope/package and ada@host",
        "SyntaxError: unexpected token: '='",
        "the tokenizer needs max_tokens=512, pad_token=0 and eos_token=None",
        "a password is needed: give one with --ask",
        "secret: nothing is told before the report",
        "KeyError: 'key' of sk-learn 0.24, hf_hub 1.0 and AKIA",
        "authorization: insufficient permissions of the bearer certificate",
        "authorization failed for the bearer of bad news",
        "RuntimeError: CUDA error: an illegal memory access was encountered (key = 12)",
        "batch 2048 did not fit; sha256:" + "0123456789abcdef" * 4,
        "GPU-1dfd3d6e-8b0f-7c6a-5a3b-0e2f8a1b9c4d at 00000000:01:00.0",
    ],
)
def test_a_plain_sentence_stays_as_it_is(sentence: str) -> None:
    assert redacted(sentence) == sentence


def test_texts_anywhere_in_a_value_are_redacted_and_numbers_stay() -> None:
    value = {"a": ["token=hunter2", 1, None, {"https://ada:x@host": 2.5}], "b": True}
    assert redacted_values(value) == {"a": ["token=[redacted]", 1, None, {"https://host": 2.5}], "b": True}


@given(st.text(max_size=200))
def test_nothing_is_redacted_twice(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)
