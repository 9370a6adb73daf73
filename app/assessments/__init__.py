"""Assessments: two models answer the same held-out questions, and raters rate each answer."""
