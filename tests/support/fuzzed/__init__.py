"""Finds inputs that readers of foreign text do not stand: ``python -m fuzzed NAME SECONDS SEED`` runs one of them (`make fuzz-readers`)."""
