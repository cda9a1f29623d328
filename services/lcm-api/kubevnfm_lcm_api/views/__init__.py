"""Our own views, ``/kubevnfm/v1``: what people, the command line and the web page ask, answered from what the other subjects store."""
