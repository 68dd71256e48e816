"""`python -m rookery` is `rook`."""

from rookery.client.main import run

if __name__ == "__main__":
    run()
