"""Benchmarks: one module a workload, every figure a ratio measured side by side in one run."""
