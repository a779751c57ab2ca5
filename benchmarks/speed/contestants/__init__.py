"""One small file for each way to do the job; each class here is made and timed in a process of its own."""
