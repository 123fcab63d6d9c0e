"""What a number format costs and gives: quality against fp32, speed, memory and start of the engine.

Run with `make bench-precision`; docs/engine/precision.md tells the result.
"""
