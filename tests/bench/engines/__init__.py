"""All engines as servers over streaming HTTP, the same prompts for each: `python -m tests.bench.engines`.

`goals.py` says what is aimed at, `workloads.py` what is asked, `every.py` who is asked; docs/engine/benchmarks.md shows
what came out.
"""
