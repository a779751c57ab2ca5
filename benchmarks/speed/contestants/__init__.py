"""The methods that are compared, in one small file each. Each class runs in its own process."""
