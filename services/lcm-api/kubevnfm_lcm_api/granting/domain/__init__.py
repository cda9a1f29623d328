"""GrantRequests from drafts, and drafts with grants applied: no I/O."""
