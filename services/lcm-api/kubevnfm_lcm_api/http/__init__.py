"""What the resources of every subject share over HTTP: requests, answers, lists, errors and versions."""
