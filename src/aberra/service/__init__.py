"""A model behind an address: rows in, scores out, for other programs."""
