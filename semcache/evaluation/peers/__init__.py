"""Other semantic caches, asked the same questions with the same vectors.

`compare` runs in the project's environment: it writes jobs, starts `ask`, and turns what comes back into the lines of a
table. `ask` and the two peers run in an environment of their own and know nothing of the project.
"""
