"""What setup.py builds with: which architectures, what is out of date, in what order."""
