"""Model providers for other harnesses. Each module is loaded only by its harness."""
