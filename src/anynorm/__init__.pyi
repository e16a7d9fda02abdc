# The public names, each with its home; __init__.py reads this list.
from anynorm import datasets as datasets
from anynorm import losses as losses
from anynorm import norms as norms
from anynorm import plotting as plotting
from anynorm import reductions as reductions
from anynorm import screening as screening
from anynorm.app import job as job
from anynorm.app import report as report
from anynorm.app import tables as tables
from anynorm.app.model_files import ModelFileError as ModelFileError
from anynorm.app.model_files import load_metadata as load_metadata
from anynorm.app.model_files import load_model as load_model
from anynorm.app.model_files import save_model as save_model
from anynorm.app.onnx import to_onnx as to_onnx
from anynorm.estimators.budget_svc import BudgetSVC as BudgetSVC
from anynorm.estimators.constrained_lasso import ConstrainedLasso as ConstrainedLasso
from anynorm.estimators.constrained_lasso_cv import ConstrainedLassoCV as ConstrainedLassoCV
from anynorm.estimators.dictionaries import KernelDictionary as KernelDictionary
from anynorm.estimators.dictionaries import PolynomialDictionary as PolynomialDictionary
from anynorm.estimators.kernel_lasso import kernel_lasso as kernel_lasso
from anynorm.estimators.least_norm_svc import LeastNormSVC as LeastNormSVC
from anynorm.estimators.least_squares_svc import LeastSquaresSVC as LeastSquaresSVC
from anynorm.estimators.linear_svc import LinearSVC as LinearSVC
from anynorm.estimators.min_norm_point import min_norm_point as min_norm_point
from anynorm.estimators.paths.lasso_path import LassoPath as LassoPath
from anynorm.estimators.paths.solution_path import PathInterrupted as PathInterrupted
from anynorm.estimators.paths.solution_path import SolutionPath as SolutionPath
from anynorm.estimators.reweighted_any import Reweighted as Reweighted
from anynorm.estimators.reweighted_svc import ReweightedSVC as ReweightedSVC
from anynorm.estimators.reweighted_svc_cv import ReweightedSVCCV as ReweightedSVCCV
from anynorm.estimators.sparse_path import sparse_svm_path as sparse_svm_path
from anynorm.estimators.sparse_svc import SparseSVC as SparseSVC
from anynorm.estimators.sparse_svc_cv import SparseSVCCV as SparseSVCCV
from anynorm.estimators.sublinear_svm import sublinear_svm as sublinear_svm
from anynorm.estimators.svc import SVC as SVC
from anynorm.estimators.svc_cv import SVCCV as SVCCV
from anynorm.problem.certificate import Certificate as Certificate
from anynorm.problem.solution import Status as Status

__version__: str
__all__: list[str]
