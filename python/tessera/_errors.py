"""Errors of the library as exceptions, with the same text."""


class Error(Exception):
    """What the library refused; `code` is its reason in a word or two, such as "invalid argument"."""

    code: str = "internal"


class InputError(Error, ValueError):
    """A bad model, or inputs that do not fit it."""


class UnavailableError(Error, RuntimeError):
    """Not possible here: unsupported, out of memory or time, device lost."""


class InternalError(Error, RuntimeError):
    """A fault of the library's own."""


_INPUT = {"invalid argument", "not found", "already exists", "out of range", "failed precondition", "data loss"}


def make(code, message):
    kind = InputError if code in _INPUT else InternalError if code == "internal" else UnavailableError
    error = kind(message)
    error.code = code
    return error
