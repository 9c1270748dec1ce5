"""How an environment is made and entered: the interface, virtual environments and the host."""
