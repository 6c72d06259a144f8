"""Nothing: there is no operating system here. The standard library asks only whether the module exists."""
