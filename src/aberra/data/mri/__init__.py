"""Scans in, slices for a model, and maps back on the scan's own grid."""
