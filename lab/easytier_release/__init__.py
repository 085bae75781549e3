"""An EasyTier release archive for machines that can't download upstream's.

It has upstream's name and inner layout, for Linux on x86_64, and is made from PyPI's `easytier-pyo3`, which
carries EasyTier's own core as a Python extension. Each executable in it is one file, a Python archive that
runs on hosts with Debian 12's `/usr/bin/python3` alone and unpacks nothing there. What surrounds the core is
`standin/`.

Nothing is compiled here, and nothing of upstream's sources is in it.
"""

from lab.easytier_release.build import ARCHIVE_NAME, build

__all__ = ["ARCHIVE_NAME", "build"]
