import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;

/**
 * What a tool on JDBC sees of both schemas: a line a column of its metadata, a line a view with the number of its
 * rows, each value read as an object, and the values of the queries given. Arguments: URL, user, password, queries.
 */
class Jdbc {
  public static void main(String[] given) throws Exception {
    try (Connection connection = DriverManager.getConnection(given[0], given[1], given[2])) {
      List<String> views = new ArrayList<>();
      DatabaseMetaData metadata = connection.getMetaData();
      try (ResultSet found = metadata.getTables(null, "reporting%", "%", new String[] {"VIEW"})) {
        while (found.next()) {
          views.add(found.getString("TABLE_SCHEM") + "." + found.getString("TABLE_NAME"));
          line("view", found.getString("TABLE_NAME"), isSaid(found));
        }
      }
      try (ResultSet found = metadata.getColumns(null, "reporting%", "%", "%")) {
        while (found.next()) {
          String type = JDBCType.valueOf(found.getInt("DATA_TYPE")).getName();
          line("column", found.getString("TABLE_NAME") + "." + found.getString("COLUMN_NAME"), type,
              found.getString("TYPE_NAME"), isSaid(found));
        }
      }
      for (String view : views) {
        try (Statement statement = connection.createStatement();
            ResultSet rows = statement.executeQuery("SELECT * FROM " + view)) {
          int count = 0;
          for (; rows.next(); count++) {
            for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) rows.getObject(at);
          }
          line("rows", view.substring(view.indexOf('.') + 1), Integer.toString(count));
        }
      }
      for (int query = 3; query < given.length; query++) {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(given[query])) {
          while (rows.next()) {
            List<String> cells = new ArrayList<>(List.of("value"));
            for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) cells.add(text(rows, at));
            line(cells.toArray(String[]::new));
          }
        }
      }
    }
  }

  /** Each value as a tool takes it from its type: a day by both of the ways there are. */
  static String text(ResultSet rows, int at) throws SQLException {
    switch (rows.getMetaData().getColumnType(at)) {
      case Types.DATE:
        String day = rows.getObject(at, LocalDate.class).toString();
        String before = rows.getDate(at).toString();
        return day.equals(before) ? day : day + " and " + before;
      case Types.TIMESTAMP, Types.TIMESTAMP_WITH_TIMEZONE:
        return rows.getObject(at, OffsetDateTime.class).toInstant().toString();
      case Types.BIGINT:
        return Long.toString(rows.getLong(at));
      case Types.NUMERIC, Types.DECIMAL:
        BigDecimal exact = rows.getBigDecimal(at);
        return exact.toPlainString();
      default:
        return rows.getString(at);
    }
  }

  /** Whether the comment of a view or column comes with it. */
  static String isSaid(ResultSet found) throws SQLException {
    String remarks = found.getString("REMARKS");
    return Boolean.toString(remarks != null && !remarks.isEmpty());
  }

  static void line(String... cells) {
    System.out.println(String.join("\t", cells));
  }
}
