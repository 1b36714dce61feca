"""torch's layers without the weights they draw when they are made: a family's ``reset_parameters`` draws its own.

Drawing twice is waste, and drawing on the meta device, where a loader builds the model that then takes the file's
tensors, makes torch import sympy: about 2 s in every process that loads a checkpoint.
"""

from __future__ import annotations

from torch import nn


class Linear(nn.Linear):
    """y = x Wᵀ + b with W stored [out, in]; both hold whatever was in memory."""

    def reset_parameters(self) -> None:
        """Nothing."""


class Embedding(nn.Embedding):
    """A table whose rows hold whatever was in memory."""

    def reset_parameters(self) -> None:
        """Nothing."""
