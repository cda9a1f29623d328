"""The HTTP gateway: SOL003 life-cycle management, VNF packages, VIMs, and kubevnfm's own views."""
