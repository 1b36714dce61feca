"""``python -m tinyllm`` is the console script."""

from __future__ import annotations

import sys

from tinyllm.cli import main

if __name__ == "__main__":
    sys.exit(main())
