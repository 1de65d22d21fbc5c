"""Each command does what it says, for people and for programs."""

from __future__ import annotations

import json

import pytest

from tests.servers.cli_runner import Cli


def test_remember_then_recall(cli: Cli) -> None:
    """What was remembered is recalled, with its fields and its reasons."""
    id = cli.remember(
        "Invoice 12345 was paid on 3 May",
        *("--title", "Payment", "--kind", "episodic", "--namespace", "books", "--tag", "billing", "--tag", "2026"),
        *("--source", "bank.csv", "--metadata", '{"amount": 12.5}', "--occurred-at", "2026-05-03T10:00+02:00"),
        *("--expires-at", "2999-01-01", "--thread", "ledger", "--place", "7"),
    )
    answer = cli.json("recall", "invoice 12345")
    hit = answer["hits"][0]
    assert hit["memory"]["id"] == id
    assert hit["memory"]["tags"] == ["billing", "2026"]
    assert hit["memory"]["metadata"] == {"amount": 12.5}
    assert hit["memory"]["occurred_at"] == "2026-05-03T08:00:00+00:00"
    assert (hit["memory"]["thread"], hit["memory"]["place"]) == ("ledger", 7)
    assert {"lane", "rank", "raw", "normalised", "contribution", "kind"} == set(hit["why"][0])
    assert hit["snippet"]["text"] == "Invoice 12345 was paid on 3 May"
    assert set(answer) == {
        "hits",
        "answerable",
        "degraded",
        "lanes",
        "took",
        "query",
        "recipe",
        "expected",
        "truncated",
        "nearest_miss",
    }
    assert {lane["lane"] for lane in answer["lanes"]} == {"vector", "keyword", "graph"}


def test_remember_says_when_it_was_there_already(cli: Cli) -> None:
    """An exact copy is answered with the first one's id."""
    id = cli.remember("Tea is at four")
    again = cli("remember", "Tea is at four")
    assert again.exit_code == 0
    assert again.stdout == f"already there as {id}\n"


def test_remember_reads_standard_input(cli: Cli) -> None:
    """`-` takes the text from standard input, without its last line break."""
    assert cli.json("remember", "-", input="Grüße aus Bozen\n")["memory"]["text"] == "Grüße aus Bozen"


def test_a_text_may_start_with_a_dash(cli: Cli) -> None:
    """After `--` everything is text."""
    result = cli("remember", "--json", "--", "-40 degrees")
    assert json.loads(result.stdout)["memory"]["text"] == "-40 degrees"


def test_spaces_are_apart(cli: Cli) -> None:
    """One space does not see another's memories, and `spaces` names both."""
    cli.remember("The red door", "--space", "one")
    cli.remember("The blue door", "--space", "two")
    hits = cli.json("recall", "door", "--space", "one")["hits"]
    assert [hit["memory"]["text"] for hit in hits] == ["The red door"]
    assert cli.json("spaces") == ["one", "two"]
    assert cli("spaces").stdout.split() == ["one", "two"]


def test_recall_takes_every_option(cli: Cli) -> None:
    """Filters, weights, bounds and the recipe reach the library."""
    cli.remember("The red door", "--tag", "door", "--source", "house/plan.md", "--occurred-at", "2026-01-01")
    cli.remember("The red window", "--tag", "window", "--source", "house/plan.md", "--occurred-at", "2026-01-01")
    words = ("--tag", "door", "--source", "house/", "--kind", "fact", "--namespace", "default", "--since", "2025-12-31")
    more = ("--until", "2026-01-02", "--weight", "keyword=1", "--weight", "vector=0", "--limit", "5", "--fanout", "50")
    rest = ("--min-quality", "0.1", "--min-score", "0", "--ef-search", "50", "--superseded", "--expired")
    answer = cli.json("recall", "red", "--recipe", "novamem", *words, *more, *rest)
    assert [hit["memory"]["text"] for hit in answer["hits"]] == ["The red door"]
    assert answer["recipe"] == "novamem"
    assert {lane["lane"]: lane["status"] for lane in answer["lanes"]}["vector"] == "skipped"


def test_a_recipe_can_be_changed_in_json(cli: Cli) -> None:
    """Lanes, fusion and diversity are JSON objects; anything else is refused by the name of the option."""
    cli.remember("The red door", "--id", "door")
    how = ("--fusion", '{"method": "rrf", "k": 10}', "--lanes", '{"graph": {"depth": 1}}', "--no-renormalise")
    hit = cli.json("recall", "red", "--recipe", "novamem", *how, "--weight", "vector=0")["hits"][0]
    assert hit["memory"]["id"] == "door"
    assert hit["score"] == pytest.approx(0.3 / 11)
    refused = cli("recall", "red", "--fusion", "[1]")
    assert refused.exit_code == 2
    assert "--fusion: '[1]' is not a JSON object" in refused.stderr


def test_recall_refuses_an_effort_out_of_bounds(cli: Cli) -> None:
    """In one sentence, which says what the bounds are."""
    cli.remember("The red door")
    refused = cli("recall", "door", "--ef-search", "500")
    assert refused.exit_code == 2
    assert "ef_search of lane 'vector' is 500, and must be from 1 to 200" in refused.stderr


def test_recall_shows_the_thread_around_a_hit(cli: Cli) -> None:
    """`--window` brings the neighbours, in their order."""
    for text in ("Who drives?", "I do, said the walrus", "Thank you"):
        cli.remember(text, "--thread", "chat", "--kind", "message")
    hit = cli.json("recall", "walrus", "--window", "1")["hits"][0]
    assert [m["text"] for m in hit["before"]] == ["Who drives?"]
    assert [m["text"] for m in hit["after"]] == ["Thank you"]
    shown = cli("recall", "walrus", "--window", "1", "--limit", "1").stdout
    assert shown.index("| Who drives?") < shown.index("I do, said") < shown.index("| Thank you")


def test_explain_shows_each_lane(cli: Cli) -> None:
    """`--explain` has a row for each lane of a hit and for each lane of the answer."""
    cli.remember("The walrus and the carpenter")
    shown = cli("recall", "walrus", "--explain").stdout
    for word in ("rank", "raw", "normalised", "contribution", "status", "candidates", "keyword", "vector", "graph"):
        assert word in shown


def test_expect_names_the_stage(cli: Cli) -> None:
    """`--expect` says where a memory was lost."""
    old = cli.remember("The beans come from Hamburg")
    cli("supersede", old, "The beans come from Trieste")
    answer = cli.json("recall", "beans", "--expect", old)
    assert answer["expected"]["stage"] == "superseded"
    assert "expected " + old + ": superseded" in cli("recall", "beans", "--expect", old).stdout
    assert cli.json("recall", "beans", "--expect", "nobody")["expected"]["stage"] == "not stored"


def test_nothing_found_is_said(cli: Cli) -> None:
    """An empty answer is a success, and says so."""
    result = cli("recall", "anything")
    assert result.exit_code == 0
    assert "nothing found" in result.stdout


def test_get_shows_all_fields(cli: Cli) -> None:
    """`get` has the whole text and every field that holds something."""
    id = cli.remember("First line\nsecond line", "--title", "Notes", "--metadata", '{"a": 1}', "--tag", "x")
    shown = cli("get", id).stdout
    for part in ("First line\nsecond line", "Notes", '{"a": 1}', id, "default / default", "fact", "ready"):
        assert part in shown
    assert cli.json("get", id)["text"] == "First line\nsecond line"


def test_list_pages(cli: Cli) -> None:
    """`list` goes on where `--after` says, and filters."""
    ids = [cli.remember(f"Memory number {n}", "--tag", f"t{n}") for n in range(3)]
    first = cli.json("list", "--limit", "2")
    assert [m["id"] for m in first["memories"]] == ids[:2]
    rest = cli.json("list", "--after", first["cursor"])
    assert [m["id"] for m in rest["memories"]] == ids[2:]
    assert [m["id"] for m in cli.json("list", "--tag", "t1")["memories"]] == [ids[1]]
    shown = cli("list", "--limit", "2").stdout
    assert all(
        part in shown
        for part in (*ids[:2], "Memory number 0", f"more: recollect list --limit 2 --after {first['cursor']}")
    )
    assert cli("list", "--tag", "none").stdout == "no memories\n"


def test_a_list_shows_dates_and_can_begin_with_the_newest(cli: Cli) -> None:
    """When it happened, else when it was stored; `--after` goes on in the same order."""
    old = cli.remember("The oak was planted", "--occurred-at", "1999-04-02")
    new = cli.remember("The oak was felled", "--occurred-at", "2024-11-30")
    page = cli.json("list", "--newest", "--limit", "1")
    assert [memory["id"] for memory in page["memories"]] == [new]
    rest = cli.json("list", "--newest", "--after", page["cursor"])
    assert [memory["id"] for memory in rest["memories"]] == [old]
    shown = cli("list", "--newest").stdout
    assert shown.index("2024-11-30") < shown.index("1999-04-02")


def test_update_changes_and_clears(cli: Cli) -> None:
    """`update` changes what is named, clears what is asked for, and leaves the rest."""
    id = cli.remember("It was paid on 3 May", "--tag", "a", "--source", "s", "--expires-at", "2999-01-01")
    changed = cli.json("update", id, "--text", "It was paid on 4 May", "--tag", "b", "--clear", "expires-at")
    assert (changed["text"], changed["tags"], changed["source"]) == ("It was paid on 4 May", ["b"], "s")
    assert changed["expires_at"] is None
    assert cli.json("recall", "4 May")["hits"][0]["memory"]["id"] == id


def test_supersede_by_text_and_by_id(cli: Cli) -> None:
    """A superseded memory is no longer recalled, and still there."""
    first, other = cli.remember("Beans from Hamburg"), cli.remember("Beans from Bremen")
    new = cli.json("supersede", first, "Beans from Trieste", "--tag", "now")
    assert cli.json("supersede", other, "--by", new["id"])["id"] == new["id"]
    assert [hit["memory"]["id"] for hit in cli.json("recall", "beans")["hits"]] == [new["id"]]
    assert cli.json("get", first)["superseded_by"] == new["id"]
    everything = cli.json("recall", "beans", "--superseded")["hits"]
    assert {hit["memory"]["id"] for hit in everything} == {first, other, new["id"]}


def test_history_shows_every_version(cli: Cli) -> None:
    """Whichever is asked for: oldest first, and which of them holds now."""
    ids = [cli.remember("Beans from Hamburg")]
    for town in ("Bremen", "Trieste"):
        ids.append(cli.json("supersede", ids[-1], f"Beans from {town}")["id"])
    for id in ids:
        assert [version["id"] for version in cli.json("history", id)] == ids
    lines = cli("history", ids[1]).stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ids
    assert ["holds now" in line for line in lines] == [False, False, True]
    assert "Beans from Hamburg" in lines[0]
    unknown = cli("history", "nobody")
    assert (unknown.exit_code, "holds no memory 'nobody'" in unknown.stderr) == (1, True)


def test_forget_deletes_and_names_what_was_missing(cli: Cli) -> None:
    """`forget` deletes those that exist; an unknown id makes the exit code 1."""
    one, two = cli.remember("one"), cli.remember("two")
    assert cli.json("forget", one) == {"forgotten": 1}
    result = cli("forget", two, one)
    assert result.exit_code == 1
    assert result.stdout == "forgot 1 memory\n"
    assert "1 of the 2 ids" in result.stderr
    assert cli("get", two).exit_code == 1


def test_link_neighbors_unlink(cli: Cli) -> None:
    """A link is made, shown, and removed again."""
    a, b = cli.remember("The outage"), cli.remember("A blown fuse")
    made = cli.json("link", a, b, "--relation", "caused by", "--strength", "0.5")
    assert made == {"source": a, "target": b, "relation": "caused by", "strength": 0.5}
    near = [n for n in cli.json("neighbors", a) if n["relation"] == "caused by"]
    assert [(n["memory"]["id"], n["strength"], n["steps"]) for n in near] == [(b, 0.5, 1)]
    assert "A blown fuse" in cli("neighbors", a, "--depth", "2").stdout
    assert cli.json("unlink", a, b, "--relation", "caused by") == {"removed": 1}
    assert cli.json("unlink", a, b, "--relation", "caused by") == {"removed": 0}


def test_stats_counts(cli: Cli) -> None:
    """`stats` counts memories by kind and namespace."""
    cli.remember("one")
    cli.remember("two", "--kind", "message", "--namespace", "chat")
    held = cli.json("stats")
    assert (held["memories"], held["kinds"], held["namespaces"]) == (
        2,
        {"fact": 1, "message": 1},
        {"default": 1, "chat": 1},
    )
    assert "fact 1, message 1" in cli("stats").stdout


def test_doctor_is_content_with_a_good_store(cli: Cli) -> None:
    """`doctor` lists its checks, and exits with 0 when all are well."""
    cli.remember("one")
    diagnosis = cli.json("doctor")
    assert diagnosis["ok"] is True
    assert all(set(check) == {"name", "ok", "detail"} for check in diagnosis["checks"])
    assert "ok" in cli("doctor").stdout


def test_migrate_has_nothing_to_do(cli: Cli) -> None:
    """A store of this version needs no steps."""
    cli.remember("one")
    assert cli.json("migrate", "--dry-run") == {"dry_run": True, "steps": [], "advice": []}
    assert cli("migrate").stdout == "the store is up to date\n"


def test_recipes_lists_them_all(cli: Cli) -> None:
    """`recipes` shows all of them with their lanes."""
    names = ["balanced", "careful", "polyant", "polyant_knowledge", "sci", "pgmemory", "drobek", "novamem"]
    assert [recipe["name"] for recipe in cli.json("recipes")] == names
    shown = cli("recipes").stdout
    for part in (*names, "episodic-keyword", "RRF k=60", "MMR lambda 0.7", "ts_rank_cd", "+0.5 for the title"):
        assert part in shown


@pytest.mark.parametrize("command", ["recall", "get", "list", "stats", "spaces", "doctor", "recipes"])
def test_json_is_one_document(cli: Cli, command: str) -> None:
    """With `--json`, standard output is exactly one line of JSON, and standard error is empty."""
    id = cli.remember("Über [bold]dich[/bold] \x1b[31mrot")
    words = {"recall": ("dich",), "get": (id,)}.get(command, ())
    result = cli(command, *words, "--json")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    assert result.stdout.endswith("\n")
    assert result.stderr == ""
