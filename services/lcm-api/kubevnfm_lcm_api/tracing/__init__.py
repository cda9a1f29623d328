"""The export of the traces of operations that have ended, to a collector of OpenTelemetry."""
