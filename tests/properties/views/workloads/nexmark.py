"""The queries q0 to q22 of Nexmark as views over a stream of events, and q101 to q103 of others.

Some events also change and go, which a stream never does. None of the queries is left out: what a
watermark closes in a stream is here right at every moment, and changes when an event comes late.
Windows of time are groups by the time's truncation (q7, q8, q12), a hopping window the same for
each of its steps (q5), a session is what a running sum of gaps counts (q11). q6 is over the last
ten auctions of a seller; q10, which writes files by day and minute, is the rows with these; q12 has
the time of the event for the time of processing; q13's side input is a table.
"""

from __future__ import annotations

import random

TABLES = (
    "CREATE TABLE person (id int PRIMARY KEY, name text, email text, city text, state text,"
    " date_time timestamp)",
    "CREATE TABLE auction (id int PRIMARY KEY, item_name text, initial_bid int, reserve int,"
    " date_time timestamp, expires timestamp, seller int, category int)",
    "CREATE TABLE bid (id int PRIMARY KEY, auction int, bidder int, price int, channel text,"
    " url text, date_time timestamp)",
    "CREATE TABLE side_input (key int PRIMARY KEY, value text)",
)

_HOP = "date_trunc('minute', b.date_time) - h.back * interval '1 minute'"
_LATE = "a.date_time <= b.date_time AND b.date_time <= a.expires"
QUERIES = {
    "q0": "SELECT auction, bidder, price, date_time FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 3 = 0",
    "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id"
    " WHERE a.category = 2 AND p.state IN ('OR', 'ID', 'CA')",
    "q4": "SELECT category, avg(final) AS average FROM (SELECT a.id, a.category, max(b.price) AS"
    f" final FROM auction a JOIN bid b ON a.id = b.auction WHERE {_LATE}"
    " GROUP BY a.id, a.category) q GROUP BY category",
    "q5": f"SELECT w, auction, n FROM (SELECT {_HOP} AS w, b.auction, count(*) AS n,"
    f" rank() OVER (PARTITION BY {_HOP} ORDER BY count(*) DESC) AS place"
    " FROM bid b CROSS JOIN (VALUES (0), (1), (2)) h (back) GROUP BY 1, 2) q WHERE place = 1",
    "q6": "SELECT seller, avg(final) AS average FROM (SELECT a.seller, max(b.price) AS final,"
    " row_number() OVER (PARTITION BY a.seller ORDER BY a.expires DESC, a.id) AS place"
    f" FROM auction a JOIN bid b ON a.id = b.auction WHERE {_LATE}"
    " GROUP BY a.id, a.seller, a.expires) q WHERE place <= 10 GROUP BY seller",
    "q7": "SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b JOIN (SELECT"
    " date_trunc('minute', date_time) AS w, max(price) AS most FROM bid GROUP BY 1) m"
    " ON m.w = date_trunc('minute', b.date_time) AND m.most = b.price",
    "q8": "SELECT DISTINCT p.id, p.name, date_trunc('minute', p.date_time) AS w FROM person p"
    " JOIN auction a ON a.seller = p.id"
    " AND date_trunc('minute', a.date_time) = date_trunc('minute', p.date_time)",
    "q9": "SELECT id, bidder, price FROM (SELECT a.id, b.bidder, b.price, row_number() OVER"
    " (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.id) AS place"
    f" FROM auction a JOIN bid b ON a.id = b.auction WHERE {_LATE}) q WHERE place = 1",
    "q10": "SELECT auction, bidder, price, date_time, CAST(date_time AS date) AS day,"
    " CAST(date_trunc('minute', date_time) AS time) AS minute FROM bid",
    "q11": "SELECT bidder, session, count(*) AS n, min(date_time) AS starts, max(date_time) AS ends"
    " FROM (SELECT bidder, date_time, sum(fresh) OVER (PARTITION BY bidder ORDER BY date_time, id)"
    " AS session FROM (SELECT id, bidder, date_time, CASE WHEN date_time - lag(date_time) OVER"
    " (PARTITION BY bidder ORDER BY date_time, id) <= interval '10 seconds' THEN 0 ELSE 1 END"
    " AS fresh FROM bid) b) s GROUP BY bidder, session",
    "q12": "SELECT bidder, date_trunc('minute', date_time) AS w, count(*) AS n FROM bid"
    " GROUP BY bidder, date_trunc('minute', date_time)",
    "q13": "SELECT b.auction, b.price, s.value FROM bid b JOIN side_input s ON s.key = b.auction",
    "q14": "SELECT auction, bidder, 0.908 * price AS price, CASE WHEN extract(hour FROM date_time)"
    " BETWEEN 8 AND 18 THEN 'day' ELSE 'other' END AS kind, length(url) AS n FROM bid"
    " WHERE 0.908 * price > 40",
    "q15": "SELECT date_trunc('day', date_time) AS day, count(*) AS bids, count(*) FILTER"
    " (WHERE price < 50) AS low, count(DISTINCT bidder) AS bidders, count(DISTINCT auction)"
    " FILTER (WHERE price >= 50) AS auctions FROM bid GROUP BY 1",
    "q16": "SELECT channel, date_trunc('day', date_time) AS day, max(date_time) AS latest,"
    " count(*) AS bids, count(DISTINCT bidder) AS bidders FROM bid GROUP BY 1, 2",
    "q17": "SELECT auction, date_trunc('day', date_time) AS day, count(*) AS bids, count(*) FILTER"
    " (WHERE price < 50) AS low, min(price) AS least, max(price) AS most, avg(price) AS mean,"
    " sum(price) AS total FROM bid GROUP BY 1, 2",
    "q18": "SELECT DISTINCT ON (bidder, auction) bidder, auction, price, date_time FROM bid"
    " ORDER BY bidder, auction, date_time DESC, id",
    "q19": "SELECT auction, bidder, price, place FROM (SELECT auction, bidder, price, row_number()"
    " OVER (PARTITION BY auction ORDER BY price DESC, id) AS place FROM bid) q WHERE place <= 3",
    "q20": "SELECT b.auction, b.bidder, b.price, a.item_name FROM bid b JOIN auction a"
    " ON a.id = b.auction WHERE a.category = 2",
    "q21": "SELECT auction, bidder, price, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google'"
    " THEN '1' ELSE regexp_replace(url, '.*channel_id=', '') END AS channel FROM bid"
    " WHERE url LIKE '%channel_id%' OR lower(channel) IN ('apple', 'google')",
    "q22": "SELECT auction, bidder, price, split_part(url, '/', 4) AS one,"
    " split_part(url, '/', 5) AS two FROM bid",
    "q101": "SELECT a.id, a.item_name, q.most FROM auction a LEFT JOIN (SELECT auction, max(price)"
    " AS most FROM bid GROUP BY auction) q ON q.auction = a.id",
    "q102": "SELECT a.id, count(b.id) AS n FROM auction a JOIN bid b ON a.id = b.auction"
    " GROUP BY a.id HAVING count(b.id) >= (SELECT count(*) /"
    " greatest(count(DISTINCT auction), 1) FROM bid)",
    "q103": "SELECT id, item_name FROM auction WHERE id NOT IN (SELECT auction FROM bid"
    " WHERE auction IS NOT NULL GROUP BY auction HAVING count(*) > 2)",
}


class Events:
    """Statements of a stream of events, some of them taken back or changed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = {"person": 0, "auction": 0, "bid": 0}

    def statements(self, count: int) -> list[str]:
        found = []
        for _ in range(count):
            drawn = self._rng.random()
            if drawn < 0.8:
                kinds = ("person", "auction", "bid")
                (table,) = self._rng.choices(kinds, (10, 20, 70))
                found.append(self._insert(table))
            elif drawn < 0.9:
                found.append(self._update())
            else:
                table = self._rng.choice(("person", "auction", "bid", "bid"))
                found.append(f"DELETE FROM {table} WHERE id = {self._key(table)}")
        return found

    def _key(self, table: str) -> int:
        return self._rng.randrange(self._next[table] + 1)

    def _insert(self, table: str) -> str:
        rng = self._rng
        number = self._next[table] = self._next[table] + 1
        hour, minute, second = rng.randrange(7, 9), rng.randrange(2), rng.choice((15, 20, 45))
        time = f"timestamp '2026-01-01 {hour:02}:{minute:02}:{second}'"
        match table:
            case "person":
                state = rng.choice(("OR", "ID", "CA", "NY"))
                values = f"'name {number}', 'mail', 'city', '{state}', {time}"
            case "auction":
                values = (
                    f"'item {number}', {rng.randrange(50)}, 99, {time},"
                    f" {time} + interval '5 hours', {rng.randrange(1, 8)}, {rng.randrange(4)}"
                )
            case _:
                channel = rng.choice(("Apple", "google", "other"))
                values = (
                    f"{rng.randrange(1, 12)}, {rng.randrange(1, 8)}, {rng.randrange(100)},"
                    f" '{channel}', 'https://x/{number % 5}/y{number % 3}?channel_id={number % 4}',"
                    f" {time}"
                )
        return f"INSERT INTO {table} VALUES ({number}, {values})"

    def _update(self) -> str:
        rng = self._rng
        return rng.choice(
            (
                f"UPDATE bid SET price = {rng.randrange(100)}, auction = {rng.randrange(1, 12)}"
                f" WHERE id = {self._key('bid')}",
                f"UPDATE auction SET category = {rng.randrange(4)}, seller = {rng.randrange(1, 8)}"
                f" WHERE id = {self._key('auction')}",
                f"UPDATE person SET state = 'CA' WHERE id = {self._key('person')}",
                f"UPDATE side_input SET value = 'v{rng.randrange(9)}' WHERE key % 3 = 1",
            )
        )
