"""tinyllm: language-model evaluation as pytest tests."""

__version__ = "0.1.0"
