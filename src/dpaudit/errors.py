"""The exceptions that dpaudit raises on purpose.

Every one of them derives from `DPAuditError`, carries one sentence that names the
offending argument, its value and what is allowed, and is safe to show to a user
without a traceback (the command line does just that, with exit code 2).
"""

__all__ = [
    "DPAuditError",
    "DataUnavailableError",
    "ExecutorError",
    "InputError",
    "MechanismError",
    "UnsupportedError",
]


class DPAuditError(Exception):
    """Base class of every error that dpaudit raises on purpose."""


class InputError(DPAuditError, ValueError):
    """An argument is outside what is allowed."""


class MechanismError(DPAuditError, RuntimeError):
    """The mechanism under audit raised, or changed the shape of its output."""


class ExecutorError(DPAuditError, RuntimeError):
    """The workers of an executor were lost, or cannot be given the work."""


class UnsupportedError(DPAuditError, NotImplementedError):
    """A quantity was asked for that has no proven closed form in this case."""


class DataUnavailableError(DPAuditError, FileNotFoundError):
    """A dataset that does not ship with the package was not found on this machine."""

    # FileNotFoundError would otherwise format two arguments as errno and strerror.
    __str__ = Exception.__str__
