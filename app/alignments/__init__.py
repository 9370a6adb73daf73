"""Alignments: demonstrations, a society, a training on its data, the society again, and an assessment by raters.

Source: the recipe of Liu et al. 2023, arXiv 2305.16960.
"""
