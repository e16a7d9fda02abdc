"""Small data files for the tests."""

import pytest

from anynorm.app.tables import TableError


def written(folder, name, content):
    """A file of this text (or these bytes), and its path."""
    path = folder / name
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return path


def message(call, *arguments, **options):
    """What the TableError of a call says."""
    with pytest.raises(TableError) as caught:
        call(*arguments, **options)
    return str(caught.value)
