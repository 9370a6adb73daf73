"""Alignments: demonstrations, a society, a training on what came of it, a society again, and what raters say of it.

Source: the recipe of Liu et al. 2023, arXiv 2305.16960.
"""
