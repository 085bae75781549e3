"""The benchmark: figures about the program, each a ratio or a slope measured within one run.

`python -m lab.bench` is `script/bench`. Each figure has a module of its own; what they share is in `figure.py` and
`worlds.py`.
"""
