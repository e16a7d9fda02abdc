"""What must work where nothing but the wheel and its dependencies is installed."""

import pathlib
import sys

import anynorm
from anynorm import SVC, SparseSVCCV, load_model, report, save_model
from anynorm.datasets import make_relevant

home = pathlib.Path(anynorm.__file__).parent
if not home.is_relative_to(sys.prefix):
    sys.exit(f"anynorm was imported from {home}, not from the installed wheel in {sys.prefix}.")
if not (home / "py.typed").exists():
    sys.exit("the wheel has no py.typed: its types would not be seen.")

X, y = make_relevant(100, n_relevant=4, random_state=0)
for model in (SparseSVCCV(rule="one_se"), SVC()):
    model.fit(X[:80], y[:80])
    save_model(model, "model.anynorm")
    same = (load_model("model.anynorm").predict(X) == model.predict(X)).all()
    report.write_report(model, "report.html", X[80:], y[80:])
    if not same or model.certificate_.gap > model.tol:
        sys.exit(f"{model} is not what was saved, or not solved: {model.certificate_}")
    print(f"anynorm {anynorm.__version__} as a wheel: {type(model).__name__}, {model.certificate_}")
