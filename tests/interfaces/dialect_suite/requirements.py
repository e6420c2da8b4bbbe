"""What PostgreSQL can do, for SQLAlchemy's dialect suite.

The same list is used for the run on PostgreSQL and for those on Belvedere: a test that the list
lets run and that PostgreSQL passes has to pass here, or is listed with its reason.
"""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

REQUIREMENTS_VARIABLE = "BELVEDERE_SUITE_REQUIREMENTS"
"""Has the name of the class that a run of the suite takes."""
SUPPORTED = """
create_table_as create_temp_table_as table_ddl_if_exists index_ddl_if_exists uuid_data_type
unique_constraints_reflect_as_index table_value_constructor deferrable_fks
repeated_column_foreign_keys repeated_remote_col_foreign_keys
boolean_col_expressions nullsordering intersect except_
window_functions window_range window_range_numeric window_range_non_numeric
ctes ctes_with_update_delete ctes_with_values ctes_on_dml tuple_in
views cross_schema_fk_reflection foreign_key_constraint_name_reflection implicit_default_schema
default_schema_name_switch reflects_pk_names reflect_tables_no_columns
temp_table_comment_reflection comment_reflection comment_reflection_full_unicode
constraint_comment_reflection column_collation_reflection schema_create_delete
foreign_key_constraint_option_reflection_ondelete fk_constraint_option_reflection_ondelete_restrict
foreign_key_constraint_option_reflection_onupdate fk_constraint_option_reflection_onupdate_restrict
temp_table_names has_temp_table temporary_views create_or_replace_view
index_reflects_included_columns indexes_check_column_order indexes_with_expressions
reflect_indexes_with_expressions inline_check_constraint_reflection check_constraint_reflection
unicode_ddl datetime_interval datetime_literals datetime_timezone time_timezone
timestamp_microseconds datetime_historic datetime_timezone_historic date_historic
autocommit skip_autocommit_rollback isolation_level array_type json_type
precision_numerics_enotation_small precision_numerics_many_significant_digits
server_defaults expression_server_defaults aggregate_order_by
precision_numerics_retains_significant_digits infinity_floats
float_or_double_precision_behaves_generically savepoints two_phase_transactions
update_from delete_from mod_operator_as_percent_sign percent_schema_names
order_by_label_with_expression computed_columns computed_columns_stored
computed_columns_reflect_persisted supports_distinct_on identity_columns
identity_columns_standard regexp_match regexp_replace fetch_first fetch_ties fetch_no_order_by
fetch_offset_with_options fetch_expression reflect_table_options materialized_views
supports_bitwise_or supports_bitwise_and supports_bitwise_not supports_bitwise_xor
supports_bitwise_shift
""".split()


class PostgresRequirements(SuiteRequirements):
    """Switches that the suite has closed and PostgreSQL opens."""

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        levels = set(config.db.dialect.get_isolation_level_values(None))
        default = config.db.dialect.default_isolation_level
        return {"default": default, "supported": levels}


def _open_switch(_: Any) -> Any:
    return exclusions.open()


for _name in SUPPORTED:
    assert hasattr(SuiteRequirements, _name), _name
    setattr(PostgresRequirements, _name, property(_open_switch))


MISSING = {
    "temp_table_reflection": "temporary tables",
    "temp_table_names": "temporary tables",
    "has_temp_table": "temporary tables",
    "temporary_tables": "temporary tables",
    "temporary_views": "temporary views",
    "temp_table_comment_reflection": "temporary tables",
    "create_temp_table_as": "temporary tables",
    "array_type": "arrays as columns",
    "materialized_views": "CREATE INDEX of a view inside a transaction",
}
"""Switches that are closed for Belvedere, and what it lacks. What they skip here and PostgreSQL
runs counts as failed."""


class BelvedereRequirements(PostgresRequirements):
    """PostgreSQL's, without what would keep whole classes of tests from being set up."""


def _closed_switch(_: Any) -> Any:
    return exclusions.closed()


for _name in MISSING:
    assert hasattr(SuiteRequirements, _name), _name
    setattr(BelvedereRequirements, _name, property(_closed_switch))

ChosenRequirements: type[SuiteRequirements] = globals()[
    os.environ.get(REQUIREMENTS_VARIABLE, BelvedereRequirements.__name__)
]
