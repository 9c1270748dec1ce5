"""The pictures and the counts of the documentation are those of the kept report and of the sources."""

from benchmarks.pictures import KEPT, OF_THE_RUN, ROOT, TWO_GPUS, source_of, with_source
from tests.reports import table_of
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.specs.source import read_sources

SOURCES = read_sources(Checkout().published, WORDS)
CLAIMS = sum(len(source.claims) for source in SOURCES)
NUMBERS = {7: "seven", 8: "eight", 9: "nine"}


def test_every_picture_of_the_run_is_of_the_kept_report() -> None:
    digest = sha256_of(KEPT / "report.json")
    assert {path.name: source_of(path) for path in OF_THE_RUN} == {path.name: digest for path in OF_THE_RUN}


def test_a_picture_keeps_its_data_beside_its_source() -> None:
    png = TWO_GPUS.read_bytes()
    assert source_of(TWO_GPUS) == ""
    marked = with_source(png, "0" * 64)
    assert marked[:33] == png[:33]
    assert marked.endswith(png[33:])
    assert len(marked) == len(png) + 12 + len("Source") + 1 + 64


def test_the_kept_report_has_every_claim_of_the_sources() -> None:
    kept = {(row["source"], row["claim"]) for row in table_of(KEPT, "verdicts")}
    assert kept == {(source.name, claim.id) for source in SOURCES for claim in source.claims}
    assert f"Published claims that were not tested: {CLAIMS} of {CLAIMS}." in (KEPT / "report.md").read_text(
        encoding="utf-8"
    )


def test_counts_of_claims_and_sources_in_the_readme_are_those_of_the_code() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"None of the {CLAIMS} published claims is judged" in readme
    derived = sum(not claim.stated for source in SOURCES for claim in source.claims)
    assert f"{CLAIMS} claims of {NUMBERS[len(SOURCES)]} published sources, {derived} of them only follow" in readme
