// What the test of the JDBC driver runs; its arguments are the URL, the user and the password.
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.util.Arrays;
import java.util.UUID;
import org.postgresql.PGConnection;

public class Client {
  static void check(Object found, Object expected) {
    if (!String.valueOf(found).equals(String.valueOf(expected)))
      throw new AssertionError("found " + found + ", expected " + expected);
  }

  /** The values of some columns, row by row. */
  static String list(ResultSet rows, String... columns) throws SQLException {
    StringBuilder text = new StringBuilder();
    while (rows.next()) {
      for (String column : columns) text.append(rows.getString(column)).append(' ');
      text.append("| ");
    }
    return text.toString().trim();
  }

  public static void main(String[] arguments) throws Exception {
    try (Connection connection =
        DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
      createTables(connection);
      useParameters(connection);
      useTransactions(connection);
      readMetadata(connection.getMetaData());
      copyRows(connection);
      updateRows(connection);
    }
    System.out.println("done");
  }

  static void createTables(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(
          "create table customers (id bigserial primary key, name varchar(20) not null,"
              + " n numeric(10,2), d date, ok boolean, b bytea, u uuid, f float8)");
      statement.execute(
          "create table orders (id integer primary key, customer bigint references customers (id))");
      statement.execute("create view names as select name from customers");
      statement.execute(
          "create materialized view counts as"
              + " select name, count(*) as n from customers group by name");
    }
  }

  static void useParameters(Connection connection) throws SQLException {
    UUID id = UUID.randomUUID();
    PreparedStatement insert =
        connection.prepareStatement(
            "insert into customers (name, n, d, ok, b, u, f) values (?, ?, ?, ?, ?, ?, ?)",
            Statement.RETURN_GENERATED_KEYS);
    insert.setString(1, "Ann");
    insert.setBigDecimal(2, new BigDecimal("1.50"));
    insert.setDate(3, Date.valueOf("2024-01-02"));
    insert.setBoolean(4, true);
    insert.setBytes(5, new byte[] {1, 2});
    insert.setObject(6, id);
    insert.setDouble(7, 2.5);
    check(insert.executeUpdate(), 1);
    check(list(insert.getGeneratedKeys(), "id", "name"), "1 Ann |");

    PreparedStatement batch = connection.prepareStatement("insert into customers (name) values (?)");
    for (int number = 0; number < 100; number++) {
      batch.setString(1, "n" + number);
      batch.addBatch();
    }
    check(Arrays.stream(batch.executeBatch()).sum(), 100);

    // From the fifth run on the driver uses a named statement and binary values.
    PreparedStatement byKey = connection.prepareStatement("select * from customers where id = ?");
    for (int run = 0; run < 12; run++) {
      byKey.setLong(1, 1);
      ResultSet row = byKey.executeQuery();
      row.next();
      check(row.getBigDecimal("n"), "1.50");
      check(row.getDate("d"), "2024-01-02");
      check(row.getObject("u"), id);
      check(row.getDouble("f"), 2.5);
    }
    PreparedStatement any =
        connection.prepareStatement("select count(*) as n from customers where id = any(?)");
    any.setArray(1, connection.createArrayOf("bigint", new Long[] {1L, 2L, 999L}));
    check(list(any.executeQuery(), "n"), "2 |");
  }

  static void useTransactions(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    Statement statement = connection.createStatement();
    statement.setFetchSize(10); // by portals, inside of a transaction
    ResultSet rows = statement.executeQuery("select id from customers order by id");
    int count = 0;
    while (rows.next()) count++;
    check(count, 101);
    Savepoint before = connection.setSavepoint();
    try {
      statement.execute("insert into orders values (1, -1)");
      throw new AssertionError("no error");
    } catch (SQLException error) {
      check(error.getSQLState(), "23503");
      connection.rollback(before);
    }
    statement.execute("listen news");
    statement.execute("notify news, 'hello'");
    connection.commit();
    connection.setAutoCommit(true);
    var heard = connection.unwrap(PGConnection.class).getNotifications(60_000);
    check(heard[0].getParameter(), "hello");
  }

  static void readMetadata(DatabaseMetaData about) throws SQLException {
    String[] kinds = {"TABLE", "VIEW", "MATERIALIZED VIEW"};
    check(
        list(about.getTables(null, "public", "%", kinds), "TABLE_NAME", "TABLE_TYPE"),
        "counts MATERIALIZED VIEW | customers TABLE | orders TABLE | names VIEW |");
    check(
        list(about.getColumns(null, "public", "orders", null), "COLUMN_NAME", "TYPE_NAME"),
        "id int4 | customer int8 |");
    check(
        list(about.getImportedKeys(null, "public", "orders"), "PKTABLE_NAME", "FKCOLUMN_NAME"),
        "customers customer |");
    check(list(about.getCatalogs(), "TABLE_CAT"), "shop |");
    for (ResultSet rows :
        new ResultSet[] {
          about.getTypeInfo(), about.getSchemas(), about.getTableTypes(),
          about.getFunctions(null, null, "l%"), about.getTablePrivileges(null, "public", "orders")
        }) check(rows.next(), true);
    check(
        list(about.getPrimaryKeys(null, "public", "orders"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
        "id 1 orders_pkey |");
    check(
        list(
            about.getIndexInfo(null, "public", "customers", false, true),
            "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC", "NON_UNIQUE"),
        "customers_pkey 1 id A f |");
    check(
        list(about.getBestRowIdentifier(null, "public", "orders", 0, true), "COLUMN_NAME"), "id |");
    check(about.getSQLKeywords().contains("ilike"), true);
    check(about.getMaxColumnNameLength(), 63);
  }

  static void updateRows(Connection connection) throws SQLException {
    try (Statement statement =
        connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
      ResultSet rows = statement.executeQuery("select id, customer from orders order by id");
      check(rows.getMetaData().unwrap(org.postgresql.PGResultSetMetaData.class).getBaseTableName(1),
          "orders");
      check(rows.getMetaData().isAutoIncrement(1), false);
      check(rows.getMetaData().isNullable(1), ResultSetMetaData.columnNoNulls);
      rows.next();
      rows.updateLong(2, 2);
      rows.updateRow();
    }
  }

  static void copyRows(Connection connection) throws Exception {
    var copies = connection.unwrap(PGConnection.class).getCopyAPI();
    check(copies.copyIn("copy orders from stdin csv", new StringReader("5,1\n6,1\n")), 2);
    StringWriter out = new StringWriter();
    copies.copyOut("copy (select * from orders order by id) to stdout csv", out);
    check(out.toString().trim(), "5,1\n6,1");
  }
}
