"""Files of other programs, read in a child process that may crash or hang without harm."""
