"""The small operations in C++: `build` compiles them at set-up, `library` loads what fits this machine.

The sources use ATen's portable vectors and its threads. They are called through ctypes with addresses, so that they
need few headers and compile in seconds.
"""
