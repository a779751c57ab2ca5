"""Words beside a matrix: in memory, in containers and in frozen tables."""
