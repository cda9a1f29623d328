"""Who calls the gateway, and what they may. Identity servers are asked by `adapters`; here are the rules."""
