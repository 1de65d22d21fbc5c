"""The dashboard: pages that show what a memory holds and why it answered as it did."""
