"""Denoising diffusion: the process, its noise and the objectives of the ADDM paper."""
