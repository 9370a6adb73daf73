"""A simulated society: agents on a grid answer questions, criticise each other's answers and revise their own.

Source: Liu et al. 2023, arXiv 2305.16960.
"""
