"""What a person says of a column: `--columns`."""

from tsuishi.base.errors import UserError, unknown
from tsuishi.extras.tables.printed_quantities import STEP, header_words, is_unit_of_column, quantity_of_unit
from tsuishi.specs import numerals
from tsuishi.specs.printed_table import HARDWARE, NOTHING, PARAMETERS, PrintedColumn
from tsuishi.specs.vocabulary import Vocabulary

# Factors of axes and facts: parameters in millions.
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6}


def given_column(name: str, text: str, words: Vocabulary) -> PrintedColumn:
    """A column as a person says it: a unit; or an axis or a quantity, and its unit if it differs. Raises UserError."""
    holds, _, unit = text.strip().partition(" ")
    known = {*words.selectable, *words.quantities, HARDWARE, PARAMETERS, NOTHING}
    if holds not in known and is_unit_of_column(text) and (of_unit := quantity_of_unit(header_words(text))):
        quantity, scale, inverse = of_unit
        return PrintedColumn(name=name, holds=quantity, scale=scale, inverse=inverse)
    if holds not in known:
        near = str(unknown("unit, axis or quantity", holds, known)).partition("known: ")[0]
        raise UserError(f"--columns: {near}units are as images/s, ms, it/s; suites/ describes axes and quantities")
    if holds not in words.quantities:
        if unit not in _FACTORS:
            raise UserError(f"--columns: {unknown(f'factor of {holds}', unit, _FACTORS)}")
        return PrintedColumn(name=name, holds=holds, scale=_FACTORS[unit])
    if not unit:
        return PrintedColumn(name=name, holds=holds)
    units = numerals.printed_units(words.quantities[holds].unit)
    units |= {text: (factor, True) for text, factor in {"it/s": 1.0, "batches/s": 1.0}.items() if holds == STEP}
    if unit not in units:
        raise UserError(f"--columns: {unknown(f'unit of {holds}', unit, units)}")
    factor, inverse = units[unit]
    return PrintedColumn(name=name, holds=holds, scale=factor, inverse=inverse)
