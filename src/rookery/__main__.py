"""`python -m rookery` is `rook`."""

import sys

from rookery.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
