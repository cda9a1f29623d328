"""The inventory: which objects of VNFs exist in each region, and where their pods and virtual machines run (multicloud.md chapter 14)."""
