"""The lab, clouds and what is in them."""
