"""Pure text: terms, query terms, snippets. No I/O."""
