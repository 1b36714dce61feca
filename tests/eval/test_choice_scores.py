"""What keeps choices and their scores apart from each other, inside `tinyllm.eval.lm`."""

from __future__ import annotations

import numpy as np
import pytest

from tinyllm.eval.lm import ByteTokenizer, _scores
from tinyllm.scoring.choices import encode_choice


def test_fault_row_31b_choices_and_encodings_of_another_number_are_never_zipped_short():
    encoded = [encode_choice(ByteTokenizer(), "a", choice) for choice in ("b", "c")]
    with pytest.raises(ValueError, match="argument"):
        _scores(lambda ids: np.zeros((*ids.shape, 256)), encoded, ["b", "c", "d"], normalize=False)
