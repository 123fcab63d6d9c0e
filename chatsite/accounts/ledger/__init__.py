"""The usage ledger: a row for every answer and embedding request, its cost, its days, and reports of it.

`booking` writes rows, `prices` values them, `rollup` sums days up, `report` reads both, `spreadsheet` makes CSV of it.
"""
