"""How VIMs are reached."""
