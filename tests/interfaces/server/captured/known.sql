-- Metabase: table privileges
with table_privileges as (
  select NULL as role, t.schemaname as schema, t.objectname as table,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'select') as select,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'insert') as insert,
    pg_catalog.has_table_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union select schemaname, viewname as objectname from pg_views
    union select schemaname, matviewname as objectname from pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and t.schemaname <> 'belvedere'
    and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
select t.* from table_privileges t where t.select or t.update or t.insert or t.delete;
-- Metabase: tables
SELECT n.nspname AS schema, c.relname AS name,
  CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
  d.description AS description, stat.n_live_tup IS NOT NULL AS estimated
FROM pg_catalog.pg_class AS c
  INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
  LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
  LEFT JOIN pg_stat_user_tables AS stat ON n.nspname = stat.schemaname AND c.relname = stat.relname
WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'belvedere')
  AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
ORDER BY type, schema, name;
-- Metabase: fields
SELECT c.column_name AS name, CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN FORMAT('%s', c.udt_name) ELSE FORMAT('"%s"."%s"', c.udt_schema, c.udt_name) END AS "database-type",
  c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema", c.table_name AS "table-name",
  pk.column_name IS NOT NULL AS "pk?",
  COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
  ((column_default IS NULL) OR (LOWER(column_default) = 'null')) AND (is_nullable = 'NO') AND NOT (((column_default IS NOT NULL) AND (column_default LIKE '%nextval(%')) OR (is_identity <> 'NO')) AS "database-required",
  ((column_default IS NOT NULL) AND (column_default LIKE '%nextval(%')) OR (is_identity <> 'NO') AS "database-is-auto-increment"
FROM information_schema.columns AS c
  LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name
    FROM information_schema.table_constraints AS tc
    INNER JOIN information_schema.key_column_usage AS kc ON (tc.constraint_name = kc.constraint_name) AND (tc.table_schema = kc.table_schema) AND (tc.table_name = kc.table_name)
    WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
  ON (c.table_schema = pk.table_schema) AND (c.table_name = pk.table_name) AND (c.column_name = pk.column_name)
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_|belvedere'
UNION ALL
SELECT pa.attname AS name, CASE WHEN ptn.nspname IN ('public', 'pg_catalog') THEN FORMAT('%s', pt.typname) ELSE FORMAT('"%s"."%s"', ptn.nspname, pt.typname) END AS "database-type",
  pa.attnum - 1 AS "database-position", pn.nspname AS "table-schema", pc.relname AS "table-name", FALSE AS "pk?", NULL AS "field-comment", FALSE AS "database-required", FALSE AS "database-is-auto-increment"
FROM pg_catalog.pg_class AS pc
  INNER JOIN pg_catalog.pg_namespace AS pn ON pn.oid = pc.relnamespace
  INNER JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = pc.oid
  INNER JOIN pg_catalog.pg_type AS pt ON pt.oid = pa.atttypid
  INNER JOIN pg_catalog.pg_namespace AS ptn ON ptn.oid = pt.typnamespace
WHERE (pc.relkind = 'm') AND (pa.attnum >= 1)
ORDER BY "table-schema", "table-name", "database-position";
-- Metabase: foreign keys
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name",
  pk_ns.nspname AS "pk-table-schema", pk_table.relname AS "pk-table-name", pk_column.attname AS "pk-column-name"
FROM pg_constraint AS c
  INNER JOIN pg_class AS fk_table ON c.conrelid = fk_table.oid
  INNER JOIN pg_namespace AS fk_ns ON c.connamespace = fk_ns.oid
  INNER JOIN pg_attribute AS fk_column ON c.conrelid = fk_column.attrelid
  INNER JOIN pg_class AS pk_table ON c.confrelid = pk_table.oid
  INNER JOIN pg_namespace AS pk_ns ON pk_table.relnamespace = pk_ns.oid
  INNER JOIN pg_attribute AS pk_column ON c.confrelid = pk_column.attrelid
WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND c.contype = 'f'
  AND fk_column.attnum = ANY(c.conkey) AND pk_column.attnum = ANY(c.confkey)
ORDER BY fk_ns.nspname, fk_table.relname;
-- Metabase: indexes
SELECT tmp.table_schema AS "table-schema", tmp.table_name AS "table-name", TRIM(BOTH '"' FROM PG_CATALOG.PG_GET_INDEXDEF(tmp.ci_oid, tmp.pos, FALSE)) AS "field-name"
FROM (SELECT n.nspname AS table_schema, ct.relname AS table_name, ci.oid AS ci_oid, (INFORMATION_SCHEMA._PG_EXPANDARRAY(i.indkey)).n AS pos
  FROM pg_catalog.pg_class AS ct INNER JOIN pg_catalog.pg_namespace AS n ON ct.relnamespace = n.oid
  INNER JOIN pg_catalog.pg_index AS i ON ct.oid = i.indrelid
  INNER JOIN pg_catalog.pg_class AS ci ON ci.oid = i.indexrelid
  WHERE PG_CATALOG.PG_GET_EXPR(i.indpred, i.indrelid) IS NULL AND n.nspname !~ '^information_schema|pg_') AS tmp
WHERE tmp.pos = 1;
-- DBeaver: schemas
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
WHERE nspname NOT IN ('information_schema', 'belvedere') AND nspname !~ '^pg_' ORDER BY nspname;
-- DBeaver: relations
SELECT c.oid,c.relname,c.relkind,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace='public'::regnamespace AND c.relkind not in ('i','I','c');
-- DBeaver: columns
SELECT c.relname,a.attname,a.attnum,a.atttypid,a.atttypmod,a.attnotnull,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND a.attnum > 0 AND c.oid='orders'::regclass
ORDER BY a.attnum;
-- DBeaver: constraints
SELECT c.conname,c.contype,c.conkey,c.confkey,c.confupdtype,c.confdeltype,t.relname as tabrelname,rt.relnamespace::regnamespace::text as refnamespace,d.description
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE c.conrelid='orders'::regclass AND c.contype <> 'n' ORDER BY c.oid;
-- DBeaver: session
SELECT current_schema(), current_user;
-- DBeaver: settings
SHOW search_path;
-- DBeaver: types
SELECT t.typname, t.typlen, t.typcategory, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name
FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_class c ON c.oid=t.typrelid
WHERE t.typname IN ('int4', 'text', 'bool', 'numeric', 'timestamptz') ORDER BY 1;
-- DBeaver: dashboards
SELECT 'session_stats' AS chart_name, count(*) > 0 AS there FROM pg_catalog.pg_stat_activity WHERE datname = current_database();
-- DBeaver: dashboard of transactions
SELECT count(*), min(xact_commit) >= 0 FROM pg_catalog.pg_stat_database WHERE datname = current_database();
-- DBeaver: locks
SELECT count(*) >= 0 FROM pg_catalog.pg_locks bl JOIN pg_catalog.pg_stat_activity a ON a.pid = bl.pid;
-- pgAdmin: sessions
SELECT count(*) > 0 FROM pg_catalog.pg_stat_activity sa WHERE sa.datname = current_database() AND sa.pid = pg_backend_pid() AND sa.state = 'active' AND sa.usename = session_user
  AND sa.backend_start <= now() AND sa.query ~ 'pg_stat_activity';
-- pgAdmin: statistics of a table
SELECT relname, seq_scan >= 0, n_live_tup >= 0, pg_catalog.pg_size_pretty(pg_catalog.pg_relation_size(relid)) IS NOT NULL
FROM pg_catalog.pg_stat_all_tables WHERE schemaname = 'public' ORDER BY relname;
-- pgAdmin: locks
SELECT count(*) >= 0 FROM (SELECT pid, locktype, datname, relation::regclass, page, tuple, virtualxid, transactionid, classid::regclass, objid, virtualtransaction, mode, granted, fastpath
  FROM pg_catalog.pg_locks l LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid)) s;
-- Grafana: tables
SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
    string_to_array(current_setting('search_path'),',') s)
  THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', 'belvedere', '_timescaledb_cache') ORDER BY 1;
-- Grafana: columns
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE quote_ident(table_name) = 'orders' ORDER BY 1;
-- Prisma: columns
SELECT oid.namespace, info.table_name, info.column_name, format_type(att.atttypid, att.atttypmod) as formatted_type,
  info.numeric_precision, info.numeric_scale, info.numeric_precision_radix, info.datetime_precision, info.data_type,
  info.udt_schema as type_schema_name, info.udt_name as full_data_type, info.is_nullable, info.is_identity, info.character_maximum_length,
  col_description(att.attrelid, ordinal_position) AS description
FROM information_schema.columns info
JOIN pg_attribute att ON att.attname = info.column_name
JOIN (SELECT pg_class.oid, relname, pg_namespace.nspname as namespace FROM pg_class JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace
  AND pg_namespace.nspname = ANY ('{public}') WHERE reltype > 0) as oid on oid.oid = att.attrelid AND relname = info.table_name AND namespace = info.table_schema
ORDER BY namespace, info.table_name, ordinal_position;
-- Prisma: tables
SELECT tbl.relname AS table_name, namespace.nspname as namespace, (tbl.relhassubclass and tbl.relkind = 'p') as is_partition,
  (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass, tbl.relrowsecurity as has_row_level_security, reloptions, obj_description(tbl.oid, 'pg_class') as description
FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
WHERE tbl.relkind = 'r' AND namespace.nspname = ANY ('{public}') ORDER BY namespace, table_name;
-- common: foreign keys by information_schema
SELECT tc.constraint_name, tc.table_name, kcu.column_name, ccu.table_name AS foreign_table_name, ccu.column_name AS foreign_column_name
FROM information_schema.table_constraints AS tc
JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name AND tc.table_schema = kcu.table_schema
JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name AND ccu.table_schema = tc.table_schema
WHERE tc.constraint_type = 'FOREIGN KEY' ORDER BY 1, 3, 5;
-- common: grants by information_schema
SELECT grantee, table_name, privilege_type, is_grantable FROM information_schema.role_table_grants
WHERE table_schema = 'public' AND table_name IN ('orders', 'recent') ORDER BY 1, 2, 3;
-- common: triggers by information_schema
SELECT trigger_name, event_manipulation, action_statement FROM information_schema.triggers;
