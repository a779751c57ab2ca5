"""Matching of tokens to the words of pretrained vectors."""
