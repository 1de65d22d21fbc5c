"""Calls: how a recall asks an engine, and how long it waits for the answer.

    caller ──> Admission          32 recalls at once; the others wait for their turn before their time begins
                  │
               Deadline           what this lane still waits for engines outside the process; charged as time passes
                  │
               SharedWork         what several lanes ask alike (the vector, the nearest) is asked once
                  │
                Gate ── Breaker   an engine that keeps failing is not asked for a while: Skipped, at once
                  │               (for the space whose questions time out; for all when it fails for all)
                  │  room         32 calls under way on one engine; the others wait, on their own deadline
                  │  one retry    where the first try was cut off at once
                  ▼
               engine             a store, an index, an embedder
                  │
                  ├── answer ───────────────> the caller
                  ├── failure ──> Breaker ──> the caller, as the engine's own error
                  └── no answer in time ────> the caller gets BackendTimeout on its deadline; the call goes on to its
                                              own end, and that end is what the breaker counts

An engine that runs inside this process does not hang: it is not timed unless the caller gave a deadline. A call that
an engine makes to another one (FalkorDB asks the store what may be seen) passes the other's gate: each engine is
charged for its own time and its own failures.
"""
