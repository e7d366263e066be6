"""The explorable of chapter `limits_of_the_learned_algorithm`."""

from typing import Any

import traitlets

from explainer.explorables.base import Explorable, Number

MOST = 20
SMALLEST, LARGEST = 0.01, 100.0


class Eigenvalues(traitlets.List):
    """One to MOST numbers from SMALLEST to LARGEST, in any order."""

    def validate(self, obj: traitlets.HasTraits, value: Any) -> list[float]:
        """Return the value as a list of floats, or raise TraitError."""
        try:
            eigenvalues = [float(entry) for entry in value]
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(f"{self.name} = {value!r}: {error}") from None
        if not 1 <= len(eigenvalues) <= MOST:
            raise traitlets.TraitError(f"{self.name} has {len(eigenvalues)} numbers; it must have 1 to {MOST}.")
        if not all(SMALLEST <= entry <= LARGEST for entry in eigenvalues):
            raise traitlets.TraitError(
                f"{self.name} = {eigenvalues}; each must lie between {SMALLEST:g} and {LARGEST:g}."
            )
        return super().validate(obj, eigenvalues)


class ErrorLaw(Explorable):
    """Error of the trained one-layer transformer over the length N of its training prompts and the length M of tests.

    Traits: `training_length` N; `prompt_length` M; `noise`, the standard deviation of the noise on the targets of the
    test prompts; `eigenvalues` of the inputs' covariance. The sum of the three terms that are drawn is
    `explainer.theory.linear_transformer.population_risk` of Gamma^-1, plus the noise.
    """

    name = "error_law"
    question = "How long must prompts be, in training and at the test?"
    height = 760

    training_length = traitlets.Int(20, min=1, max=1000).tag(sync=True, explorable=True)
    prompt_length = traitlets.Int(60, min=1, max=10_000).tag(sync=True, explorable=True)
    noise = Number(0, min=0, max=2).tag(sync=True, explorable=True)
    eigenvalues = Eigenvalues([2.0, 1.5, 1.0, 0.6, 0.3]).tag(sync=True, explorable=True)
