"""The engine: remember, recall, forget. Orchestration only; searching and ranking live in their own rooms."""
