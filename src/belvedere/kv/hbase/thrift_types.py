"""The structs and calls of HBase's Thrift2 gateway, built from `gateway.thrift` beside this module.

The file names only what the store uses, with HBase's own field ids; what a gateway sends beyond
that is skipped. thriftpy2 is optional (the extra `hbase`), so it is loaded on first use.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from belvedere.errors import Unsupported

IDL_FILE = Path(__file__).with_name("gateway.thrift")
VERSIONS_ALL = 2**31 - 1
EQUAL = 2
DELETE_VERSION, DELETE_UP_TO = 0, 1


@cache
def load_types() -> Any:
    """The module that thriftpy2 builds from the file."""
    try:
        import thriftpy2  # heavy
    except ImportError:
        raise Unsupported(
            "hbase:// needs the package thriftpy2",
            hint="pip install 'belvedere[hbase]'",
        ) from None
    return thriftpy2.load(str(IDL_FILE), module_name="belvedere_hbase_thrift")
