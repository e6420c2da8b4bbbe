"""Run the service: `python -m orders_service shop.db` or `python -m orders_service postgresql://..`.

Applies the migrations, loads the catalog once, lets four shoppers loose, and prints what is so
afterwards. With two processes: start it twice at the same time.
"""

from __future__ import annotations

import sys

from orders_service import invariants, migrate, workload
from orders_service.database import Connection, is_postgres, open_database


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "shop.db"
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    con = open_database(name)
    print("migrations applied:", ", ".join(migrate.apply_migrations(con)) or "none")
    if con.execute("SELECT count(*) FROM products").fetchone() == (0,):
        con.commit()
        workload.load_catalog(con)
    con.commit()
    print("calls:", dict(workload.run_threads(name, threads=4, steps=60, seed=seed)))
    if is_postgres(name):
        refresh_views(con)
    print("best customers:")
    for row in con.execute("SELECT * FROM best_customers ORDER BY spent DESC, id").fetchall():
        print("   ", *row)
    violations = invariants.find_violations(con)
    print("violations:", violations or "none")
    con.close()
    return bool(violations)


def refresh_views(con: Connection) -> None:
    """PostgreSQL's views show what was so at the last REFRESH."""
    for view in invariants.VIEWS:
        con.execute(f"REFRESH MATERIALIZED VIEW {view}")
    con.commit()


if __name__ == "__main__":
    sys.exit(main())
