"""What the installation spends on models: figures by day, model, run and study, its limits, and one stop for all."""
