"""What every public estimator does with its parameters, and with those that a subclass adds."""

import inspect
import re

import pytest
from sklearn.base import clone

from anynorm.estimators._docs import documented_like
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


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_every_parameter_is_described_once_and_in_order(Estimator):
    """Descriptions that are borrowed from another class are filled in."""
    text = inspect.getdoc(Estimator)
    assert " : as in `" not in text
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    described = re.findall(r"^(\w+) : \S", section[1] if section else "", re.MULTILINE)
    assert described == parameters(Estimator)


def test_borrowed_descriptions_come_from_one_source():
    class Source:
        """A source.

        tol : float, default=1e-4
            The gap
            to reach.
        C : float
            The price.
        """

    @documented_like(Source)
    class Borrower:
        """A borrower.

        own : int
            Its own.
        C, tol : as in `Source`
            More of tol.
        """

    assert inspect.getdoc(Borrower).splitlines()[2:] == [
        *("own : int", "    Its own."),
        *("C : float", "    The price."),
        *("tol : float, default=1e-4", "    The gap", "    to reach.", "    More of tol."),
    ]
