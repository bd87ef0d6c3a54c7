"""A profile whose reports take seconds, for the modules that ask for it."""

import pytest
from tiny_profile import install_tiny


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        install_tiny(patch)
        yield
