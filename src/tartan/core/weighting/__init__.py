"""Task weightings: how several tasks' gradients of the body become one."""
