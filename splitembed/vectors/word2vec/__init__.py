"""Read word2vec binary files."""
