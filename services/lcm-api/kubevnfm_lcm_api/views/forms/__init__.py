"""Forms: a JSON Schema of the body of each SOL003 v2 request, made from the package, the instance and our own checks."""
