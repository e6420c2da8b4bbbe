// What the test of node-postgres runs; its argument is how to connect.
const assert = require('assert');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');

async function main(target) {
  const client = new Client(target);
  await client.connect();
  await client.query(
    'create table t (id serial primary key, name text, n numeric, at timestamptz, j json, b bytea)');
  const at = new Date('2024-01-02T03:04:05.678Z');
  const given = ['x', '1.50', at, { a: 1 }, Buffer.from([1, 2])];
  const made = await client.query(
    'insert into t (name, n, at, j, b) values ($1, $2, $3, $4, $5) returning *', given);
  assert.deepStrictEqual(Object.values(made.rows[0]), [1, ...given]);

  const named = { name: 'by id', text: 'select name from t where id = $1', values: [1] };
  for (let run = 0; run < 3; run++) assert.strictEqual((await client.query(named)).rowCount, 1);
  assert.strictEqual((await client.query('select 1; select 2')).length, 2);
  const any = await client.query('select id from t where id = any($1)', [[1, 2]]);
  assert.deepStrictEqual(any.rows, [{ id: 1 }]);
  await assert.rejects(client.query('insert into t (id) values (1)'), { code: '23505' });

  await client.query('insert into t (name) select g::text from generate_series(1, 100) g');
  const cursor = client.query(new Cursor('select id from t order by id'));
  assert.strictEqual((await cursor.read(10)).length, 10);
  assert.strictEqual((await cursor.read(200)).length, 91);
  await cursor.close();

  await client.query('begin');
  await client.query('delete from t');
  await client.query('rollback');
  assert.deepStrictEqual(
    (await client.query('select count(*)::int as n from t')).rows, [{ n: 101 }]);

  const heard = new Promise((resolve) => client.on('notification', resolve));
  await client.query('listen news');
  await client.query("notify news, 'hello'");
  assert.strictEqual((await heard).payload, 'hello');
  await client.end();

  const pool = new Pool(target);
  const asked = [1, 2, 3].map((number) => pool.query('select $1::int as v', [number]));
  assert.deepStrictEqual((await Promise.all(asked)).map((one) => one.rows[0].v), [1, 2, 3]);
  await pool.end();
  console.log('done');
}

main({ connectionString: process.argv[2] });
