"""`python -m tocsin.cli` is `tocsin`."""

import sys

from tocsin.cli.main import main

sys.exit(main())
