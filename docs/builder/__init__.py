"""What the documentation's build needs beside Sphinx: pages from the configs and the code."""
