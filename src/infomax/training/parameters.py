"""The parameters of an estimator as scikit-learn reads and sets them, without importing it, which takes 1.5 s."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

from infomax.errors import InputError


class Parameters:
    """A base class whose parameters are the arguments of ``__init__``, which stores them under their names.

    With it `sklearn.base.clone`, pipelines and searches take an estimator as one of scikit-learn's own.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name. ``deep`` is part of scikit-learn's signature: there are no nested ones."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Set some of the parameters."""
        known = signature(type(self)).parameters
        for name in parameters.keys() - known.keys():
            raise InputError(f"parameters of {type(self).__name__}", f"one of {', '.join(known)}", name)
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        given = (f"{name}={value!r}" for name, value in self.get_params().items() if value != usual[name])
        return f"{type(self).__name__}({', '.join(given)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def not_fitted(message: str) -> Exception:
    """Make the exception that scikit-learn raises for an estimator without a fit."""
    from sklearn.exceptions import NotFittedError

    return NotFittedError(message)  # type: ignore[no-any-return]
