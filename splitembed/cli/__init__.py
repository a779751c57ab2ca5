"""The `splitembed` command."""
