"""The stories run on the built wheel, not on the checkout."""

import subprocess

from system.loop.installation import ROOT


def test_what_runs_is_the_wheel(here):
    code = "import tocsin.contract, tocsin.cli.main; print(tocsin.contract.__file__, tocsin.cli.main.__file__)"
    said = subprocess.run(
        [here.bin / "python", "-c", code], env=here.environment, cwd=here.home, capture_output=True, text=True, check=True
    )
    assert str(ROOT) not in said.stdout
    assert here.run("ls").returncode == 0
