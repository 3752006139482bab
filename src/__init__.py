"""TARTAN: end-task aware training (Dery, Michel, Talwalkar, Neubig, ICLR 2022)."""
