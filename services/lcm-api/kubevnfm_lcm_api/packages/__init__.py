"""VNF packages: onboarding, content, states (SOL005 clause 9; api.md chapter 7)."""
