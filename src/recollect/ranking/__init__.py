"""Pure ranking: normalise, fuse, diversify. No I/O, no async."""
