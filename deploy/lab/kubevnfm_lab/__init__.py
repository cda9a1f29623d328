"""The lab: a stand-in cloud, machines and clusters over their real protocols."""
