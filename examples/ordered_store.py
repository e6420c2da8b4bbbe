"""The lowest layer by itself: an ordered store in which a batch is written whole or not at all.

Run it: .venv/bin/python examples/ordered_store.py
"""

from belvedere.errors import InvalidInput
from belvedere.kv.memory import MemoryStore

store = MemoryStore()
store.write([(b"fruit/apple", b"3"), (b"fruit/pear", b"5"), (b"tool/saw", b"1")])

print("a point read:", store.get(b"fruit/pear"))
print(
    "a range, in key order:", [pair for batch in store.scan(b"fruit/", b"fruit0") for pair in batch]
)

try:
    store.write([(b"fruit/fig", b"7"), (b"", b"an empty key is refused")])
except InvalidInput as error:
    print("refused:", error.message)
print("and nothing of that batch was written:", store.get(b"fruit/fig"))
store.close()
