"""The vocabulary of TPC-H's generated values."""

from __future__ import annotations

from itertools import product

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")

NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4),
    ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2),
    ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)  # fmt: skip
"""Name and region, by nation key."""

GERMANY = 7

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")

TYPES = tuple(
    " ".join(parts)
    for parts in product(
        ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
        ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
        ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
    )
)
CONTAINERS = tuple(
    " ".join(parts)
    for parts in product(
        ("SM", "LG", "MED", "JUMBO", "WRAP"),
        ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
    )
)

COLOURS = tuple(
    """almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood
    burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger
    drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian
    ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight
    mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff
    purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel
    tan thistle tomato turquoise violet wheat white yellow""".split()
)

SENTENCE = tuple(
    """special requests pending deposits furiously quickly carefully blithely slyly accounts
    packages instructions theodolites foxes ideas pinto beans regular express unusual final even
    ironic silent bold sleep wake haggle nag cajole detect among across above the special requests
    after against beneath daringly platelets asymptotes dependencies sheaves courts""".split()
)

PLANTED_PARTS: tuple[dict[str, str | int], ...] = (
    {"p_size": 15, "p_type": "LARGE POLISHED BRASS"},
    {"p_type": "ECONOMY ANODIZED STEEL"},
    {"p_brand": "Brand#23", "p_container": "MED BOX"},
    {"p_name": "forest green tomato navy plum"},
    {"p_brand": "Brand#12", "p_container": "SM CASE", "p_size": 3},
    {"p_brand": "Brand#34", "p_container": "LG BOX", "p_size": 12},
)
"""Parts that match the queries 2, 8, 17, 20 and 19."""
