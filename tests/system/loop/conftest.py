"""An installation of the built wheel for each story."""

from collections.abc import Iterator

import pytest

from system.loop.installation import Installation


@pytest.fixture
def here() -> Iterator[Installation]:
    """An installation that runs."""
    with Installation() as one:
        yield one
