"""Has the world moved: a compact portrait of the training table, and other rows held against it."""
