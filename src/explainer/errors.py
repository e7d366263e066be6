"""The errors that a user of this package can meet; each message names the value."""


class ExplainerError(Exception):
    """Base of every error that is the user's to mend (network, disk, names, data)."""


class DownloadError(ExplainerError):
    """A starter asset could not be fetched, or what arrived is not what was asked for."""


class CheckpointError(ExplainerError):
    """A checkpoint name, file or architecture cannot be used."""


class DivergenceError(ExplainerError):
    """Training or fine-tuning diverged, so there is no trained model to use."""


class ResultsError(ExplainerError):
    """Results cannot be read or written."""


class ShapeError(ExplainerError, ValueError):
    """A tensor does not have the shape that the equation needs."""


class ExperimentError(ExplainerError):
    """A setting or a grid of an experiment is not possible, its corpus cannot be used, or some of its runs failed."""


class TaskError(ExplainerError):
    """A task, its data or its label words cannot be used."""


def require(condition: bool, message: str) -> None:
    """Raise ExperimentError with the message unless the condition holds."""
    if not condition:
        raise ExperimentError(message)
