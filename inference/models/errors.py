"""Errors of finding, converting and loading a model; `exit_code` is what a program that meets one ends with.

ModelError
├── ModelNotUsable     model_not_usable     a setting names something that cannot be served; starting again won't help
└── ModelDownload      model_download       the network or the registry failed; the same command may work later
"""

from __future__ import annotations


class ModelError(Exception):
    """The message is one line that says what is wrong and what to do about it."""

    code = "model_error"
    exit_code = 1
    retryable = False


class ModelNotUsable(ModelError):
    """Missing folder, wrong checksum, unknown package, unsupported architecture, full disk."""

    code = "model_not_usable"
    exit_code = 78  # EX_CONFIG of sysexits.h: a supervisor must not retry


class ModelDownload(ModelError):
    """The package or the hub could not be reached."""

    code = "model_download"
    exit_code = 75  # EX_TEMPFAIL
    retryable = True
