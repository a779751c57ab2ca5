"""fastText .bin models."""
