"""The interface that the functions beside `SplitTable` use is one that `SplitTable` has."""

import inspect

from splitembed import SplitTable
from splitembed.split.protocol import Split


def test_a_split_table_has_every_part_with_the_same_arguments():
    split = SplitTable.from_matrix([[0.0], [1.0]], [1])
    for name, member in vars(Split).items():
        if name.startswith("_"):
            continue
        assert hasattr(split, name), name
        if inspect.isfunction(member):
            assert list(inspect.signature(member).parameters) == list(
                inspect.signature(getattr(SplitTable, name)).parameters
            )
