"""Measurements that users can repeat: each figure is a ratio of two things that were timed in one run."""
