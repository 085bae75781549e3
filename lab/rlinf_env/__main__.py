"""`python -m lab.rlinf_env`: builds the environment in the cache and prints where it is."""

from __future__ import annotations

from lab.paths import Cache
from lab.rlinf_env import build


def main() -> None:
    """Builds what is missing; prints the virtual environment's path."""
    cache = Cache.from_environment()
    print(build(cache.rlinf, cache.uv))


if __name__ == "__main__":
    main()
