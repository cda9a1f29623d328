"""The HTTP application: the routes of all subjects, the VIM API, API versions, the audit log, the OpenAPI document."""
