"""What a command tells of an audit, and what it keeps, needs few rounds of it."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def audits_in_few_rounds(in_few_rounds):
    pass
