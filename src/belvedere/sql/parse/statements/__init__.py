"""The grammar of statements: DML, DDL, utility.

In reading order; an entry uses only those before it:

    ddl_clauses   clauses that DDL statements share: qualified names, options, expressions
    dml           parses INSERT, UPDATE and DELETE
    comment       parses COMMENT ON
    create_table  parses CREATE TABLE: columns, constraints, options
    foreign       parses CREATE and DROP SERVER, and CREATE FOREIGN TABLE
    grants        parses GRANT, REVOKE and default privileges
    roles         parses CREATE, ALTER and DROP ROLE
    utility       parses utility statements: transactions, settings, PREPARE, EXPLAIN, COPY ..
    cursors       parses DECLARE, FETCH, MOVE and CLOSE
    ddl           parses CREATE of everything but tables; DROP, TRUNCATE; REFRESH, VERIFY, REPAIR
    alter         parses ALTER of tables, indexes, views, sequences and schemas
"""
