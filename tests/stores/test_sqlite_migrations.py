"""Schema versions: a migrated file equals a fresh one, and a migration happens once or not at all."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from recollect.errors import SchemaOutdated
from recollect.stores.named_sql import load, newest, read
from recollect.stores.nearest import text_digest
from recollect.stores.sqlite import migrations, words
from recollect.stores.sqlite.postings import LENGTH_BITS
from tests.stores.test_sqlite_words import Index

BASELINES = Path(__file__).parent / "schemas"
"""`NNN.sql`: the schema of an earlier version, kept when `schema.sql` goes on to the next."""
PATH = Path("memory.db")
FIELDS = ("title", "text", "context")
V1 = "CREATE TABLE things (name TEXT NOT NULL) STRICT;"
V3 = "CREATE TABLE things (name TEXT NOT NULL, colour TEXT) STRICT; CREATE INDEX by_colour ON things (colour);"
COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)'
STEPS = {2: "ALTER TABLE things ADD COLUMN colour TEXT;", 3: "CREATE INDEX by_colour ON things (colour);"}


def database(schema: str, steps: dict[int, str]) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    migrations.migrate(db, PATH, schema, steps)
    return db


def shape(db: apsw.Connection) -> object:
    """All that makes up a schema, apart from how its SQL was typed."""
    objects = db.execute("SELECT type, name, tbl_name FROM sqlite_schema ORDER BY 1, 2").fetchall()
    tables = {name: db.execute(COLUMNS, (name,)).fetchall() for kind, name, _ in objects if kind == "table"}
    indexes = {
        name: db.execute('SELECT name, "desc", coll FROM pragma_index_xinfo(?)', (name,)).fetchall()
        for kind, name, _ in objects
        if kind == "index"
    }
    return objects, tables, indexes


def test_every_shipped_version_migrates_to_the_schema() -> None:
    """From each version that ever was, the migrations lead to what a new file gets."""
    shipped = dict(migrations.shipped())
    last = newest(shipped)
    assert sorted(shipped) == list(range(2, last + 1))
    fresh = shape(database(read("recollect.stores.sqlite.store", "schema.sql"), shipped))
    for version in range(1, last):
        old = database((BASELINES / f"{version:03}.sql").read_text(), {})
        old.pragma("user_version", version)
        migrations.migrate(old, PATH, read("recollect.stores.sqlite.store", "schema.sql"), shipped)
        assert shape(old) == fresh


def test_grants_that_were_in_use_stay_so() -> None:
    """What an earlier version granted counts as accepted; what is granted from now on is an offer."""
    db = apsw.Connection(":memory:")
    db.execute((BASELINES / "002.sql").read_text())
    words.register(db)
    db.execute("INSERT INTO spaces (name) VALUES ('team')")
    db.execute("INSERT INTO grants (space, namespace, grantee, access) VALUES (1, 'notes', 'work', 'read')")
    db.pragma("user_version", 2)
    migrations.migrate(db, PATH, "", dict(migrations.shipped()))
    ledger = load("recollect.stores.sqlite.store", "ledger.sql")
    db.execute(ledger["grant"], {"space": 1, "namespace": "letters", "to": "work", "access": "read"})
    found = db.execute(ledger["granted_by"], {"space": 1})
    assert [(namespace, accepted) for _, namespace, _, _, accepted in found] == [("letters", 0), ("notes", 1)]


def test_vectors_of_an_older_file_get_their_digests() -> None:
    """Version 3 chooses the sample of a space by what its texts say, also of those that were there before."""
    old = apsw.Connection(":memory:")
    old.execute((BASELINES / "002.sql").read_text())
    old.execute("INSERT INTO spaces (number, name) VALUES (1, 'one'); INSERT INTO generations VALUES (1, 'a', 1)")
    old.execute(
        "INSERT INTO memories (row, space, id, hash, namespace, kind, text, title, tags, source, metadata, created_at, "
        "updated_at, embedding) "
        "VALUES (5, 1, 'a', x'00', 'default', 'fact', 'Grüße', 'Title', '[]', '', '{}', 0, 0, 'ready')"
    )
    old.execute("INSERT INTO vectors (row, space, generation, seq, vector) VALUES (5, 1, 1, 1, x'0000803f')")
    old.pragma("user_version", 2)
    migrations.migrate(old, PATH, "", dict(migrations.shipped()))
    assert old.execute("SELECT digest FROM vectors").get == text_digest("Title", "Grüße")


def test_words_are_found_after_their_keys_were_changed() -> None:
    """Version 2 holds lengths in the keys of the word index: title, text and context are kept, in their order."""
    fresh = Index()
    fresh.put("quick brown fox", "a fox that jumps", "!!!", "banana", thread="t", title="about foxes")
    old = apsw.Connection(":memory:")
    old.execute((BASELINES / "001.sql").read_text())
    words.register(old)
    for table in ("spaces", "memories", "clock", "lengths"):
        columns = [name for _, name, *_ in old.pragma("table_info", table)]
        rows = fresh.db.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        marks = ", ".join("?" * len(columns))
        old.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)
    fields = {(key, column): "" for (key,) in fresh.db.execute("SELECT id FROM words_docsize") for column in FIELDS}
    for key, column, term in fresh.db.execute("SELECT doc, col, term FROM temp.word_places ORDER BY doc, col, offset"):
        fields[key, column] += f" {term}"
    for key in {key for key, _ in fields}:
        old.execute("INSERT INTO words (rowid, title, text, context) VALUES (?, ?, ?, ?)",
                    (key >> LENGTH_BITS, *(fields[key, column] for column in FIELDS)))  # fmt: skip
    old.pragma("user_version", 1)
    migrations.migrate(old, PATH, "", dict(migrations.shipped()))
    places = "SELECT * FROM temp.word_places ORDER BY term, doc, col, offset"
    assert old.execute(places).fetchall() == fresh.db.execute(places).fetchall()
    keys = "SELECT id, sz FROM words_docsize ORDER BY id"
    assert old.execute(keys).fetchall() == fresh.db.execute(keys).fetchall()


def test_a_migrated_file_equals_a_fresh_one() -> None:
    """Steps are applied in order from the file's own version on, and what it holds is kept."""
    old = database(V1, {})
    old.execute("INSERT INTO things VALUES ('umbrella')")
    migrations.migrate(old, PATH, V3, STEPS)
    fresh = database(V3, STEPS)
    assert shape(old) == shape(fresh)
    assert old.pragma("user_version") == fresh.pragma("user_version") == 3
    assert old.execute("SELECT name FROM things").fetchall() == [("umbrella",)]


def test_a_file_in_between_takes_the_rest() -> None:
    """A file of version 2 is not taken through step 2 again."""
    db = database(V1, {})
    migrations.migrate(db, PATH, V3, {2: STEPS[2]})
    migrations.migrate(db, PATH, V3, STEPS)
    migrations.migrate(db, PATH, V3, STEPS)
    assert shape(db) == shape(database(V3, STEPS))


def test_a_failing_migration_changes_nothing() -> None:
    """All steps are one transaction."""
    db = database(V1, {})
    before = shape(db)
    with pytest.raises(apsw.SQLError):
        migrations.migrate(db, PATH, V3, {2: STEPS[2], 3: "CREATE INDEX by_size ON things (size);"})
    assert shape(db) == before
    assert db.pragma("user_version") == 1


def test_a_newer_file_is_refused() -> None:
    """A file of a later version is not taken back."""
    with pytest.raises(SchemaOutdated, match="version 3"):
        migrations.migrate(database(V3, STEPS), PATH, V1, {})


@pytest.mark.parametrize("name", ["records.sql", "graph.sql", "words.sql", "vectors.sql", "ledger.sql"])
def test_every_statement_is_described(name: str) -> None:
    """Each named statement has a name of its own and a line that says what it is for."""
    blocks = read("recollect.stores.sqlite.store", name).split("-- name: ")[1:]
    names = [block.split("\n", 1)[0] for block in blocks]
    assert len(set(names)) == len(names) == len(load("recollect.stores.sqlite.store", name))
    assert all(block.split("\n")[1].startswith("-- ") for block in blocks)
    assert all(
        statement and "--" not in statement.split("\n")[0]
        for statement in load("recollect.stores.sqlite.store", name).values()
    )
