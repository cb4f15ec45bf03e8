"""What people write, checked: values of options, documents, run files, the configuration, and errors with exit
codes."""
