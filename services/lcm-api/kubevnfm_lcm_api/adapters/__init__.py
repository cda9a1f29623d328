"""What lcm-api reaches outside of itself."""
