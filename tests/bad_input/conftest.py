import pytest
from tests.bad_input.bad_zoo import make_bad_zoo


@pytest.fixture(scope="session")
def bad_zoo(tmp_path_factory):
    """evals/ with every fault; not to be written to."""
    folder = tmp_path_factory.mktemp("bad") / "evals"
    make_bad_zoo(folder)
    return folder
