"""What an application meets on its first day, promise by promise, and the tests that hold each.

A promise without a test, or a test that was renamed, fails here.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

PROMISES = {
    "a forked child is refused at every door": (
        "interfaces/test_forks.py::test_a_child_is_refused_at_every_door_of_a_connection",
        "interfaces/test_forks.py::test_a_child_is_refused_rows_that_its_parent_has_fetched",
        "interfaces/test_forks.py::test_a_server_that_loads_before_it_forks",
    ),
    "an interrupt leaves a store that works": (
        "simulation/interrupts/test_interrupts.py::"
        "test_an_interrupt_at_any_line_leaves_a_store_that_works",
    ),
    "an interrupt stops what DuckDB runs": (
        "interfaces/test_interrupts.py::test_an_interrupt_stops_what_duckdb_runs",
        "interfaces/test_interrupts.py::test_the_shell_survives_an_interrupt_of_duckdb",
        "execution/test_canceled_rows.py::test_rows_that_were_sorted_are_handled_one_by_one",
        "execution/test_canceled_rows.py::test_functions_in_python_notice_before_duckdb",
        "views/deferred/test_cancel.py::test_refresh_is_canceled_while_it_computes",
    ),
    "a repeated read is fresh under READ COMMITTED": (
        "session/context/test_isolation_levels.py::"
        "test_a_repeated_read_is_fresh_under_read_committed_only",
    ),
    "SET transaction_isolation is done": (
        "session/context/test_isolation_levels.py::test_set_transaction_isolation_is_done",
    ),
    "ADD COLUMN .. REFERENCES, and cascades to the table itself": (
        "session/ddl/test_add_column_references.py::test_an_added_column_may_refer_to_a_table",
        "execution/test_row_writes.py::test_a_cascading_update_of_a_self_referencing_key",
    ),
    "Python types decide as psycopg's do": (
        "session/statement/test_parameters_like_psycopg.py::"
        "test_python_types_decide_as_with_psycopg",
    ),
    "every option of COPY is honoured or refused": (
        "session/copy/test_options.py::test_header_match_compares_names",
        "session/copy/test_options.py::test_copy_options_that_are_not_supported_are_refused_by_name",
    ),
    "a view with now() is computed again by REFRESH": (
        "session/materialized/test_undetermined_views.py::"
        "test_refresh_computes_a_view_with_now_again",
    ),
    "hostile values give rows or errors of the database": (
        "session/statement/test_hostile_parameters.py::"
        "test_hostile_parameters_give_rows_or_errors_of_the_database",
        "session/statement/test_hostile_parameters.py::test_executemany_is_all_or_none",
        "session/statement/test_hostile_parameters.py::"
        "test_text_that_is_no_json_is_refused_wherever_it_comes_in",
        "interfaces/client/test_arguments.py::test_hostile_arguments_raise_errors_of_the_database",
        "views/operators/test_unneeded_errors.py::"
        "test_a_view_over_empty_tables_fails_only_where_its_query_fails",
    ),
    "a killed restore is whole or says that it is not": (
        "simulation/crash/test_directory_kills.py::"
        "test_what_a_kill_leaves_is_whole_or_says_that_it_is_not",
        "txn/batch_atomic/test_draft_directory.py::"
        "test_everything_is_synced_before_a_restore_or_a_backup_has_its_name",
    ),
    "LIKE and regular expressions do not freeze": (
        "values/regex/test_engines.py::test_like_does_not_freeze",
        "values/regex/test_engines.py::test_regular_expressions_do_not_freeze",
        "values/regex/test_engines.py::test_matching_by_sets_ends_when_the_statement_is_cancelled",
        "plan/test_hostile_arguments.py::test_no_function_fails_in_python_or_outgrows_its_memory",
        "plan/test_strip_nulls.py::test_cost_does_not_grow_with_depth",
    ),
    "a dump keeps the line ends of values": (
        "interfaces/test_dump.py::test_a_dump_in_the_shell_keeps_the_line_ends_of_values",
    ),
    "statements stay within the memory limit": (
        "plan/test_hostile_arguments.py::test_functions_stay_within_the_memory_limit",
        "execution/test_memory_limit.py::test_a_statement_over_the_limit_fails_alone",
        "execution/test_memory_limit.py::"
        "test_rows_that_do_not_fit_are_counted_before_they_are_sorted",
    ),
    "close does not hang, and an owner without descriptors accepts again": (
        "remote/test_owner_close.py::test_close_ends_the_statement_of_a_peer",
        "remote/test_owner_close.py::test_an_owner_without_descriptors_accepts_again",
    ),
    "all of a store is its owner's alone": (
        "kv/test_files.py::test_all_of_a_store_its_backup_and_what_is_restored_are_the_owners_alone",
    ),
    "long keys do not fail commits, nor other views": (
        "views/test_long_values.py::test_views_over_long_texts_equal_their_queries",
        "views/deferred/test_long_keys.py::"
        "test_one_key_that_is_too_long_does_not_stop_the_other_views_of_its_group",
    ),
    "the shell prints no terminal escapes of values": (
        "interfaces/test_shell_text.py::test_the_shell_prints_no_terminal_escapes_of_values",
    ),
    "after a full disk reading goes on": (
        "interfaces/test_full_disk.py::test_a_session_that_repeats_its_statement_reads_on",
        "interfaces/test_full_disk.py::test_close_on_a_full_disk_raises_an_operational_error",
        "interfaces/test_full_disk.py::test_a_store_on_a_full_disk_is_opened_for_reading",
    ),
    "lock_timeout ends the wait": (
        "session/context/test_isolation_levels.py::test_lock_timeout_ends_the_wait",
        "txn/transaction/test_locks.py::test_a_request_that_must_not_wait_never_enters_the_queue",
    ),
    "the survivor of a deadlock goes on": (
        "session/context/test_isolation_levels.py::test_the_survivor_of_a_deadlock_goes_on",
    ),
    "a statement that waited goes on with the newest row": (
        "session/context/test_isolation_levels.py::"
        "test_a_statement_that_waited_goes_on_with_the_newest_row",
    ),
    "an error that a view causes names view, expression and row": (
        "views/maintain/test_failed_expression.py::"
        "test_an_error_while_create_fills_names_view_expression_and_row",
        "views/maintain/test_failed_expression.py::test_the_error_names_view_expression_and_row",
        "views/maintain/test_failed_expression.py::"
        "test_the_error_of_an_auxiliary_view_names_the_view_of_the_user",
        "views/read/test_reading_errors.py::"
        "test_what_readers_compute_names_view_expression_and_row",
        "views/read/test_reading_errors.py::test_what_maintenance_computes_of_groups_names_them",
        "views/read/test_reading_errors.py::test_a_view_over_a_failing_view_names_itself",
    ),
    "several processes use one store": (
        "interfaces/test_processes.py::test_a_second_process_reads_and_writes",
        "interfaces/test_processes.py::"
        "test_the_end_of_the_owner_is_said_and_the_next_connect_takes_over",
        "interfaces/test_processes.py::test_dump_of_a_store_in_use",
        "interfaces/test_processes.py::test_the_option_refuses_another_process",
        "interfaces/test_processes.py::test_a_read_only_connection_changes_nothing",
    ),
    "views and indexes are made in transactions with changes": (
        "session/ddl/test_created_in_transaction.py::test_a_generated_column_may_be_unique",
        "session/materialized/test_alter_in_transaction.py::"
        "test_the_changes_of_the_transaction_reach_the_view",
        "session/ddl/test_created_in_transaction.py::"
        "test_views_begin_with_the_changes_of_their_transaction",
        "session/ddl/test_created_in_transaction.py::"
        "test_an_index_holds_what_others_wrote_meanwhile",
        "session/ddl/test_index_of_transaction.py::test_on_conflict_finds_rows_by_the_new_index",
        "session/ddl/test_index_of_transaction.py::test_random_transactions_are_those_of_postgresql",
        "session/materialized/test_open_transactions.py::"
        "test_what_a_commit_fills_is_made_beside_changes",
        "session/materialized/test_open_transactions.py::"
        "test_a_view_of_the_transaction_is_verified",
        "session/ddl/test_created_in_transaction.py::"
        "test_a_view_is_replaced_or_dropped_and_created_again",
        "session/ddl/test_created_without_autocommit.py::"
        "test_locks_are_held_to_the_end_of_the_transaction",
        "session/ddl/test_created_without_autocommit.py::test_savepoints_cursors_and_settings_stay",
    ),
    "DDL obeys cancel and statement_timeout": (
        "interfaces/test_interrupts.py::test_ddl_obeys_cancel_and_statement_timeout",
        "interfaces/test_interrupts.py::"
        "test_what_a_commit_fills_obeys_cancel_and_statement_timeout",
    ),
    "columns and tables under views are renamed and altered": (
        "session/ddl/test_rename_in_views.py::test_views_go_on_under_renamed_tables_and_columns",
        "session/ddl/test_renames.py::test_a_materialized_view_with_an_index_is_renamed",
        "session/ddl/test_rebuild_views.py::test_a_column_that_a_view_reads_keeps_its_type",
        "session/ddl/test_rebuild_views.py::test_views_stay_what_they_are",
        "session/ddl/test_dropped_with_indexes.py::"
        "test_views_that_stand_in_the_way_are_named_without_their_indexes",
        "session/ddl/test_dropped_with_indexes.py::test_a_column_of_an_index_names_the_index",
    ),
    "sequences go on where they were": (
        "session/context/test_sequences_go_on.py::"
        "test_sequences_go_on_where_they_were_after_a_clean_close",
    ),
    "SET LOCAL and LOCK TABLE come first without autocommit": (
        "session/context/test_isolation_levels.py::"
        "test_set_local_and_lock_table_come_first_without_autocommit",
    ),
    "rows by name, streams, COPY, Arrow, named parameters, shared memory, asyncio": (
        "interfaces/client/test_daily_use.py::test_rows_come_as_dictionaries",
        "interfaces/client/test_daily_use.py::test_named_parameters_take_values_from_a_mapping",
        "interfaces/client/test_streams.py::test_the_first_row_is_there_before_the_last_is_computed",
        "interfaces/client/test_copy_data.py::test_results_come_as_arrow_pandas_and_polars",
        "interfaces/client/test_aio.py::test_the_loop_goes_on_while_a_statement_runs",
        "interfaces/client/test_daily_use.py::test_rows_come_as_named_tuples",
        "interfaces/client/test_daily_use.py::test_rows_come_as_dataclasses",
        "interfaces/client/test_daily_use.py::test_json_is_text_unless_python_values_are_asked_for",
        "interfaces/client/test_daily_use.py::"
        "test_a_memory_database_with_a_name_is_shared_until_its_last_connection_closes",
        "interfaces/client/test_copy_data.py::test_data_is_copied_in_as_text_or_bytes_in_any_parts",
        "interfaces/client/test_copy_data.py::test_rows_are_copied_out",
    ),
    "errors name column, value and what is refused": (
        "interfaces/client/test_daily_use.py::test_a_traceback_has_the_callers_lines_and_no_inside",
        "interfaces/client/test_daily_use.py::test_addresses_of_other_databases_are_refused_by_name",
        "interfaces/test_values.py::"
        "test_a_real_comes_back_as_the_shortest_float_that_is_the_same_real",
        "interfaces/client/test_daily_use.py::test_a_refusal_says_what_is_refused",
        "interfaces/client/test_daily_use.py::test_habits_of_other_drivers_are_told_what_to_write",
        "interfaces/client/test_daily_use.py::"
        "test_statements_are_logged_when_their_logger_is_enabled",
    ),
    "the shell has psql's commands, and scripts are linear": (
        "interfaces/test_shell_commands.py::"
        "test_a_view_is_described_with_its_maintenance_and_indexes",
        "interfaces/test_shell_text.py::test_a_script_is_scanned_once_whatever_its_lines",
        "interfaces/test_shell_commands.py::test_lists_have_what_the_user_made",
        "interfaces/test_shell_commands.py::test_null_is_told_from_empty_text",
        "interfaces/test_shell_commands.py::test_display_settings",
        "interfaces/test_shell_commands.py::test_output_goes_to_a_file_and_back",
        "interfaces/test_shell_commands.py::test_watch_runs_the_last_statement_again",
        "interfaces/test_shell_commands.py::test_the_editor_changes_the_last_statement",
        "interfaces/test_shell_commands.py::test_several_commands_share_a_session",
    ),
    "intervals of every form, hidden names, changes of tables": (
        "values/test_durations.py::test_what_postgresql_takes_as_a_setting_or_as_an_interval_is_taken",
        "session/system_tables/test_views_table.py::test_hidden_indexes_take_no_names_from_the_user",
        "interfaces/client/test_subscriptions.py::test_changes_of_a_table_come_with_their_positions",
    ),
    "isolation is PostgreSQL's on every path": (
        "consistency/isolation/test_interleavings.py::"
        "test_two_thousand_interleavings_are_those_of_postgresql",
        "consistency/isolation/test_interleavings.py::"
        "test_the_named_anomalies_are_those_of_postgresql",
        "consistency/isolation/test_interleavings.py::"
        "test_a_statement_that_lost_a_row_does_not_wait_for_the_next",
        "execution/test_bulk_writes.py::"
        "test_a_row_with_two_roots_is_checked_before_the_next_is_waited_for",
    ),
    "the lists of the documentation are what the code has": (
        "examples/test_reference.py::test_pages_are_as_the_code_is",
        "examples/test_pages.py::test_names_that_pages_tell_programs_to_use_can_be_reached",
        "examples/test_pages.py::test_blocks_can_be_pasted_one_after_another",
        "examples/test_pages.py::test_the_tutorial_prints_what_it_says",
    ),
    "an application of twelve tables runs on Belvedere and PostgreSQL": (
        "examples/test_orders_service.py::test_same_answers_on_both",
    ),
}


@cache
def _list_tests(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_held_by_tests_that_exist(promise: str) -> None:
    for named in PROMISES[promise]:
        file, _, name = named.partition("::")
        assert name in _list_tests(file), named
