"""The comparison with a baseline as JUnit XML, which every CI shows: a test case for each case and environment.

There is no standard; this is the part that Jenkins, GitLab and GitHub's actions all read. `junitparser` writes the same
from the same four calls and has no other use here; `xml.etree` is enough, since control characters, which XML cannot
hold, were made visible when the runs were read.
"""

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from tsuishi.base.printable import visible
from tsuishi.report.parts.blocks import BaselineCase


def junit_xml(cases: Sequence[BaselineCase], summary: str) -> str:
    """The text of junit.xml. Slower and lost cases are failures; open cases and those without a match are skipped."""
    standings = Counter(case.standing for case in cases)
    skipped = standings["open"] + standings["not matched"]
    failures = sum(case.fails for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    suites = ElementTree.Element("testsuites", {"name": "tsuishi", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "baseline", **counts})
    for case in cases:
        names = {"classname": visible(case.environment), "name": visible(case.case)}
        element = ElementTree.SubElement(suite, "testcase", names)
        if case.fails:
            ElementTree.SubElement(element, "failure", {"type": case.standing, "message": visible(case.text)})
        elif case.standing != "not slower":
            ElementTree.SubElement(element, "skipped", {"message": visible(f"{case.standing}: {case.text}")})
        else:
            ElementTree.SubElement(element, "system-out").text = visible(case.text)
    ElementTree.SubElement(suite, "system-out").text = visible(summary)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'
