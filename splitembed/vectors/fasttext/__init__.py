"""Read fastText .bin models."""
