"""Assessments: two models answer the same held-out questions, and raters say how good each answer is."""
