"""An example for each command, shown at the end of its `--help`. A test reads each as the command line would."""

from __future__ import annotations

from collections.abc import Mapping

ID = "0197f3c2-6a1e-7b54-9d0c-5f1b2a7e8c31"

EXAMPLES: Mapping[str, str] = {
    "demo": "recollect demo",
    "doctor": "recollect doctor --store sqlite:///memory.db",
    "config": "recollect config --json",
    "remember": 'recollect remember "Invoice 12345 was paid on 3 May" --tag billing',
    "recall": 'recollect recall "when was that bill settled?" --since 7d --explain',
    "get": f"recollect get {ID}",
    "list": "recollect list --newest --tag billing",
    "update": f'recollect update {ID} --title "Invoice 12345"',
    "supersede": f'recollect supersede {ID} "The beans come from Trieste now"',
    "history": f"recollect history {ID}",
    "forget": f"recollect forget {ID}",
    "used": f"recollect used {ID}",
    "link": f'recollect link {ID} OTHER_ID --relation "caused by"',
    "unlink": f"recollect unlink {ID} OTHER_ID",
    "neighbors": f"recollect neighbors {ID} --depth 2",
    "grant": "recollect grant notes work --space team",
    "revoke": "recollect revoke notes work --space team",
    "accept": "recollect accept notes team --space work",
    "refuse": "recollect refuse notes team --space work",
    "grants": "recollect grants --space work",
    "import": "recollect import memories.jsonl --space work",
    "export": "recollect export memories.jsonl --space work",
    "copy": "recollect copy sqlite:///memory.db postgresql://agents@db.example.org/agents",
    "backup": "recollect backup memory-backup.db",
    "restore": "recollect restore memory-backup.db --store sqlite:///memory.db",
    "spaces": "recollect spaces",
    "stats": "recollect stats --space work --since 24h",
    "score": "recollect score --space work",
    "migrate": "recollect migrate --dry-run",
    "reembed": "recollect reembed --embedder local-multilingual",
    "serve": "recollect serve --port 8080",
    "mcp": "recollect mcp --space work --read-only",
    "sync": "recollect sync",
    "rebuild": "recollect rebuild qdrant",
    "recipes": "recollect recipes",
    "eval": "recollect eval sets/scifact --recipe balanced --recipe pgmemory",
    "tune": "recollect tune sets/mine --recipe careful --name mine --write",
    "token create": "recollect token create --space work --scope write --expires 90d",
    "token list": "recollect token list --space work",
    "token revoke": "recollect token revoke 1f0c9a4be7d25836",
}


def example_of(command: str) -> str | None:
    """The last line of a command's help."""
    return f"Example: {EXAMPLES[command]}" if command in EXAMPLES else None
