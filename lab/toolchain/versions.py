"""The versions of what the lab runs on, one line each.

uv and Ray are pinned in lock files (`locks/`), with the digests of what is installed; they are repeated here
for the names of folders and archives, and a test keeps both alike.
"""

PULUMI = "3.274.1"
"""Pulumi CLI and engine."""

PULUMI_MINIMUM = (3, 100, 0)
"""The oldest Pulumi on PATH that is used; an older one is left alone, and ours is used beside it."""

LANGUAGE_HOST = "3.79.0"
"""The last version of Pulumi's Go SDK module that holds the Python language host."""

GO_MINIMUM = (1, 26, 6)
"""The oldest Go that compiles `PULUMI`, as its `go.mod` says."""

EASYTIER = "2.6.4"
"""The EasyTier release that the mirror serves."""

UV = "0.9.16"
"""The uv that makes environments here and, from the mirror, on the lab's hosts."""

RAY = "2.60.0"
"""The Ray whose wheels the mirror serves."""
