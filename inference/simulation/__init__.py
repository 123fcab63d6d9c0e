"""The real scheduler and the real block bookkeeping, driven by a cost model instead of a model.

A day of load takes seconds, needs no weights and no torch, and is the same on every run.
"""
