"""The `splitembed` command line."""
