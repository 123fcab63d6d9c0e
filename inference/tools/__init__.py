"""Functions that a model may call: what is offered, how calls are written, and how they are found in an answer.

Pure text and JSON, for the front, the site and tests alike. Knows no template, no token and no transport.
"""
