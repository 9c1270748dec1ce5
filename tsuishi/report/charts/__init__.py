"""Charts of a report, as Vega-Lite specifications."""
