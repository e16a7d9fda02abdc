"""What every public estimator does with its parameters, and with those that a subclass adds."""

import inspect

import pytest
from sklearn.base import clone

from tests.estimators.plain import noisy_classes
from tests.estimators.public import ESTIMATORS, made, parameters

X, Y = noisy_classes(n=40, p=3)
EACH = [(Estimator, name) for Estimator in ESTIMATORS for name in parameters(Estimator)]


@pytest.mark.parametrize(("Estimator", "name"), EACH)
def test_a_parameter_that_cannot_be_used_is_named_by_fit(Estimator, name):
    model = made(Estimator).set_params(**{name: object()})
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        model.fit(X, Y)


def extended(Estimator):
    """A subclass with one more parameter, for which there is no rule."""

    class Extended(Estimator):
        def __init__(self, *, note=None, **given):
            super().__init__(**given)
            self.note = note

    own = list(inspect.signature(Extended.__init__).parameters.values())[:2]
    given = inspect.signature(Estimator).parameters.values()
    given = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in given]
    Extended.__init__.__signature__ = inspect.Signature([own[0], *given, own[1]])
    return Extended


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_a_subclass_may_have_parameters_of_its_own(Estimator):
    """A parameter without a rule ended in a bare KeyError."""
    model = made(Estimator)
    other = extended(Estimator)(note={"any": "thing"}, **model.get_params(deep=False))
    assert clone(other).get_params(deep=False).keys() - {"note"} == model.get_params(False).keys()
    other.fit(X, Y)
    assert other.note == {"any": "thing"}
    method = "predict" if hasattr(model, "predict") else "transform"
    expected = getattr(model.fit(X, Y), method)(X)
    assert (getattr(other, method)(X) == expected).all()


@pytest.mark.parametrize("Estimator", [E for E in ESTIMATORS if "tol" in parameters(E)])
def test_a_subclass_still_has_its_other_parameters_checked(Estimator):
    with pytest.raises(ValueError, match=r"^tol must be a positive"):
        extended(Estimator)(**made(Estimator, tol=0).get_params(deep=False)).fit(X, Y)
