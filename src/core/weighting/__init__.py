"""Task weightings: how the body's gradients of several tasks become one."""
