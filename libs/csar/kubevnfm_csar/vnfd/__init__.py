"""VNF descriptors (SOL001): the models, and the reader that fills them."""
