"""Data files to matrices: reading, column types, preparation, matching of columns.

Examples
--------
>>> import pandas as pd
>>> from anynorm import tables
>>> frame = pd.DataFrame({"age": [31.0, None, 45.0], "sex": ["f", "m", "f"]})
>>> preparation = tables.Preparation(scale="none").fit(frame)
>>> preparation.get_feature_names_out().tolist()
['age', 'sex=m']
>>> preparation.transform(frame).tolist()
[[31.0, 0.0], [38.0, 1.0], [45.0, 0.0]]
"""

from anynorm.app.tables.errors import TableError
from anynorm.app.tables.preparation import Preparation, match_columns
from anynorm.app.tables.read import Table, read_table
from anynorm.app.tables.svmlight import SparseFrame

__all__ = ["Preparation", "SparseFrame", "Table", "TableError", "match_columns", "read_table"]
