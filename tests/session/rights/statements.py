"""The scene of the rights matrix, in SQL that Belvedere and PostgreSQL both run, and its rows."""

from __future__ import annotations

ROLES = ("sup", "rita", "gus", "meg", "cora", "paul", "rex", "nob")
"""sup is a superuser, rita owns the objects, gus was granted rights on them, meg is a member of a
group that was, cora has rights on columns, paul those of PUBLIC and CREATEROLE, rex had what gus
has, nob has nothing."""

SETUP = """
create role sup superuser; create role rita; create role gus; create role crowd;
create role meg in role crowd; create role cora; create role paul createrole; create role rex;
create role nob; create role spare;
create schema s; create schema hidden; create schema own;
grant usage, create on schema s to rita;
grant usage on schema s to gus, crowd, cora, paul, rex, nob;
alter schema own owner to rita;
create table s.secret (id integer primary key, x integer);
insert into s.secret values (1, 10);
create view s.peek as select id, x from s.secret;
create materialized view s.peeks as select x, count(*) as n from s.secret group by x;
create table hidden.h (id integer primary key);
grant select on hidden.h to gus, crowd, rex;
set session authorization rita;
create table s.t (id serial primary key, a integer, b integer);
insert into s.t (a, b) values (1, 2), (3, 4);
create table s.parent (k integer primary key, u integer unique);
create index t_a on s.t (a);
create view s.v as select id, a from s.t;
create view s.broken as select id from s.secret;
create materialized view s.m as select a, count(*) as n from s.t group by a;
create sequence s.q;
create table own.things (id integer primary key);
create table s.open (id integer primary key);
grant select on s.open to public;
grant select, insert, update, delete, truncate, references, maintain on s.t, s.parent
  to gus, crowd, rex;
grant select, maintain on s.m to gus, crowd, rex;
grant select on s.v, s.broken to gus, crowd, rex;
grant usage on sequence s.q, s.t_id_seq to gus, crowd, rex;
grant select (id, a), insert (id, a), update (a), references (id) on s.t to cora;
grant select (a) on s.m to cora;
grant references (k) on s.parent to cora;
reset session authorization;
grant select on s.peek, s.peeks to gus, crowd, rex;
grant create on schema s to gus, crowd, rex;
revoke all on all tables in schema s from rex;
revoke all on all sequences in schema s from rex;
revoke create on schema s from rex;
revoke all on hidden.h from rex
"""

TEARDOWN = """
reset session authorization;
drop owned by rita, gus, crowd, meg, cora, paul, rex, nob, spare, sup cascade;
drop schema if exists s cascade; drop schema if exists hidden cascade;
drop schema if exists own cascade;
drop role if exists gus, meg, crowd, cora, paul, rex, nob, spare, rita, sup
"""

EXPLAINED = """
select * from s.t
select a from s.t
select count(*) from s.t
select b from s.t where a = 1
select a from s.t where b = 1
select t.a from s.t join s.secret on t.a = secret.id
select t.a from s.t join s.parent on t.a = parent.k
select id from s.t natural join s.open
select (select max(b) from s.t)
select 1 where exists (select from s.t)
with w as (select a, b from s.t) select a from w
select a from (select * from s.t) as inner_t
select a from s.t union all select id from s.open
select id from s.open
select id, a from s.v
select count(*) from s.v
select id from s.broken
select x from s.peek
select x from s.secret
select a, n from s.m
select a from s.m
select x, n from s.peeks
select * from hidden.h
select id from own.things
select a from s.t for update
select id from s.open for update
insert into s.t values (100, 1, 1)
insert into s.t (id, a) values (100, 1)
insert into s.t (a) values (1)
insert into s.t default values
insert into s.t (id, a) select id, 1 from s.open
insert into s.t (id, a) values (100, 1) returning a
insert into s.t (id, a) values (100, 1) returning b
insert into s.t (id, a) values (1, 1) on conflict (id) do nothing
insert into s.t (id, a) values (1, 1) on conflict (id) do update set a = excluded.a
insert into s.t (id, a) values (1, 1) on conflict (id) do update set b = excluded.a
insert into s.open values (1)
update s.t set a = 1
update s.t set b = 1
update s.t set a = 1 where b = 2
update s.t set a = b
update s.t set a = 7 where id = 1
update s.t set a = o.id from s.open as o where o.id = t.id
update s.secret set x = 1
delete from s.t
delete from s.t where id = 1
delete from s.t where b = 1
delete from s.open
with gone as (delete from s.t where id = 1 returning a) select a from gone
""".strip().splitlines()
"""Statements that EXPLAIN takes too: it needs the same rights."""

OTHERS = """
select nextval('s.q')
select setval('s.q', 5)
table s.t
values (1)
select relname from pg_class where relname = 't'
select * from information_schema.tables where table_name = 't'
select rolname from pg_authid
select usename from pg_shadow
truncate s.t
truncate s.open
lock table s.t in access share mode
lock table s.t in row exclusive mode
lock table s.t in access exclusive mode
copy s.t to stdout
copy s.t (id, a) to stdout
copy (select b from s.t) to stdout
copy s.t to '/nowhere/file'
copy s.t from '/nowhere/file'
declare c cursor for select a from s.t
declare c cursor for select b from s.t
declare c cursor for select x from s.peek
fetch c
move c
close c
prepare p as select b from s.t
prepare p as select a from s.t
create table s.fresh (id integer primary key)
create table own.fresh (id integer primary key)
create table hidden.fresh (id integer primary key)
create table public.fresh (id integer primary key)
create table s.fresh as select a from s.t
create table s.fresh as select b from s.t
create table s.fresh (like s.t)
create table s.fresh (id integer primary key references s.parent (k))
create table s.fresh (id integer primary key references s.parent (u))
create view s.fresh as select a from s.t
create view s.fresh as select x from s.secret
create or replace view s.v as select id, a from s.t
create materialized view s.fresh as select a, count(*) as n from s.t group by a
create materialized view s.fresh as select x, count(*) as n from s.secret group by x
create index fresh on s.t (b)
create sequence s.fresh
create schema fresh
alter table s.t add column c integer
alter table s.t rename to other
alter table s.t rename column a to z
alter table s.t set schema public
alter table s.t owner to spare
alter table s.parent add column c integer references s.t (id)
alter view s.v rename to other
alter materialized view s.m rename to other
alter index s.t_a rename to other
alter sequence s.q rename to other
alter sequence s.q restart with 9
comment on table s.t is 'x'
comment on schema s is 'x'
alter schema own rename to other
drop table s.t cascade
drop view s.v
drop materialized view s.m
drop index s.t_a
drop sequence s.q
drop schema own cascade
drop table own.things
refresh materialized view s.m
refresh materialized view s.peeks
analyze s.t
vacuum s.t
reindex table s.t
reindex index s.t_a
reindex schema own
create role fresh
create role fresh superuser
alter role spare createrole
alter role nob set search_path = s
alter role spare rename to other
drop role spare
grant crowd to spare
revoke crowd from meg
grant pg_read_all_data to spare
grant select on s.t to spare
grant select on s.secret to spare
grant select (a) on s.t to spare
revoke select on s.t from gus
grant usage on schema s to spare
grant usage on sequence s.q to spare
alter default privileges grant select on tables to spare
alter default privileges for role rita grant select on tables to spare
reassign owned by spare to rita
drop owned by spare
set role crowd
set role rita
set session authorization rita
set role none
show role
begin
savepoint x
discard plans
deallocate all
notify news, 'x'
unlisten news
unlisten *
reset all
set constraints all deferred
set transaction read only
""".strip().splitlines()

ONLY_HERE = """
verify materialized view s.m
repair materialized view s.m
verify materialized view s.peeks
explain materialized view s.m
explain materialized view s.peeks
create or replace materialized view s.m as select a, count(*) as n from s.t group by a
select text from belvedere.statements
select name from belvedere.views
select position from belvedere.log
select table_name from belvedere.statistics
set maintenance_share = '0.5'
set freshness = 'latest'
create server hb foreign data wrapper hbase options (gateways 'h')
drop server if exists hb
create foreign table f (a int) server hb options (table 't', key 'a')
""".strip().splitlines()
"""Statements and tables that PostgreSQL does not have."""
