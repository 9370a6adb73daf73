"""The one lifecycle of everything long that workers do: rounds, training jobs, campaigns."""
