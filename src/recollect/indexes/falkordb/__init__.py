"""FalkorDB as the graph leg: a graph per space beside the store, walked there."""
