"""The account that the contract of the aws plugin is tried on: moto's, strict, in a process of its own."""

from __future__ import annotations

import sys

from lab.aws_world.account import Account

if __name__ == "__main__":
    account = Account("127.0.0.1", 0, [f"203.0.113.{number}" for number in range(60, 80)])
    print(account.port, flush=True)
    sys.stdout.close()
    account.serve()
