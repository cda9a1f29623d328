"""The steps of every sequence, one class each, in a module per service that is asked."""
