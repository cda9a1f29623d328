"""The export of the inventory to A&AI, the inventory of ONAP (multicloud.md MC-109 to MC-111)."""
