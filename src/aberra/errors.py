"""What can go wrong, named so that callers can tell it apart."""


class AberraError(Exception):
    """Base of every error that Aberra defines."""


class DataError(AberraError, ValueError):
    """The data cannot be used as given; the message says where and what to do."""


class ArgumentError(AberraError, ValueError):
    """An argument makes no sense, or not together with another one.

    Parameters
    ----------
    argument : str
        Its name.
    message : str
        What is wrong with it, and what to do.
    """

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(message)
        self.argument = argument


class ModelFileError(AberraError):
    """A model cannot be saved, or its file not be loaded; the message names the part."""


class MissingExtraError(AberraError, ImportError):
    """An optional part of the installation is not there; the message says how to get it."""


class DivergenceError(AberraError, ArithmeticError):
    """Training gave numbers that are not finite."""


class CollapseWarning(UserWarning):
    """A detector gives every training row the same score, so it separates nothing."""


class RoundsExhaustedWarning(UserWarning):
    """IADC used all its rounds before the ranking settled."""
