"""Claims that are common about fast LLM serving, each measured on this engine: `python -m tests.bench.claims`.

One module for each claim, with a function `measure(rig) -> Finding`; `docs/claims.md` shows what came out.
"""
