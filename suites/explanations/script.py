"""Workload script: numbers as a script printed them, and wall times of its lines; what is unknown about both."""

from collections.abc import Iterator

from tsuishi.base.language import t
from tsuishi.report.parts.blocks import Bullets, View
from tsuishi.report.parts.explanation import Explanation
from tsuishi.report.parts.suite_cases import SuiteCases


class PrintedNumbers(Explanation):
    """Explains a script's numbers above them, and says what is unknown about them."""

    def opening_views(self, suite_cases: SuiteCases) -> Iterator[View]:
        items = (
            t(
                "Numbers “as printed by the script” are copied from its output. Their meaning is the script's: it "
                "is unknown whether it warmed up, and whether it waited for the device before it read the clock."
            ),
            t(
                "Wall times are measured beside them, from the moments at which lines arrived: the whole script with "
                "its imports, and the time between lines. They do not wait for the device either."
            ),
        )
        yield View((Bullets(items, title=t("Numbers of a script"), warning=True),))
