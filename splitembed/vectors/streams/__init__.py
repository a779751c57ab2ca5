"""Open files of vectors: compressions, archives and format recognition."""
