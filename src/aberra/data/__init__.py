"""Data: reading it, and making it dirty on purpose."""
