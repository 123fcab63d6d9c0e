"""Starts, awaits and stops the local processes of one installation. Knows neither Django nor the model."""
