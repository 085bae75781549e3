"""`python -m lab.toolchain [pulumi|mirror]`: makes them, and says what is used."""

from __future__ import annotations

import argparse
import subprocess
import sys

from lab.progress import note
from lab.toolchain import ensure
from lab.toolchain.mirror import ensure_mirror


def main() -> int:
    """Makes what the command line asks for and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m lab.toolchain", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["pulumi", "mirror"],
        default="pulumi",
        help="pulumi (default): CLI, language host and command plugin; mirror: what the lab serves",
    )
    try:
        if parser.parse_args().what == "mirror":
            mirror = ensure_mirror()
            sentences = [f"Mirror: {mirror.root}", *mirror.substitutes]
        else:
            toolchain = ensure()
            sentences = [f"{toolchain.found}.", *toolchain.substitutes]
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        command = " ".join(str(part) for part in error.cmd[:4])
        print(f"error: `{command} …` failed with exit status {error.returncode}; see above", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    for sentence in sentences:
        note(sentence)
    return 0


if __name__ == "__main__":
    sys.exit(main())
