"""The stand-in OpenStack: Keystone, Heat, Nova, Neutron, Glance and Cinder behind one HTTP server."""
