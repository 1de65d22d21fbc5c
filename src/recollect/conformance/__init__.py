"""What every store must do, as runnable specs: for our stores and for other people's.

    from recollect.conformance import run

    @asynccontextmanager
    async def fresh_store():            # an empty store, opened; closed and thrown away afterwards
        store = MyStore(...)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    print(await run(fresh_store))

A spec is an async function of a fresh store that raises when the store misbehaves; its docstring is the rule. To have
each as a test of its own, parametrise over `SPECS`.
"""

from recollect.conformance.report import SPECS, Report, Result, Spec, run

__all__ = ["SPECS", "Report", "Result", "Spec", "run"]
