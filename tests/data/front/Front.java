import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;

/** Asks a front as an application would, and prints one line for each answer. Arguments: URL user password. */
public class Front {
  public static void main(String[] arguments) {
    try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
      System.out.println("connect ok, valid " + connection.isValid(30));
      try (Statement statement = connection.createStatement();
          ResultSet rows = statement.executeQuery("SHOW REPLICA STATUS")) {
        rows.next();
        System.out.println("status " + rows.getMetaData().getColumnCount() + " " + rows.getString("Source_Host") + " "
            + rows.getInt("Source_Port") + " " + rows.getString("Seconds_Behind_Source"));
      }
      try (PreparedStatement statement = connection.prepareStatement("SHOW REPLICA STATUS");
          ResultSet rows = statement.executeQuery()) {
        rows.next();
        System.out.println("prepared " + rows.getMetaData().getColumnCount() + " " + rows.getString("Source_Host") + " "
            + rows.getInt("Source_Port") + " " + rows.getString("Seconds_Behind_Source"));
      }
      try (PreparedStatement statement = connection.prepareStatement("SELECT ? + 1, CONCAT(?, 'x'), ?")) {
        for (int number = 4; number < 6; number++) {
          statement.setInt(1, number);
          statement.setString(2, "a'\\b");
          statement.setNull(3, Types.VARCHAR);
          try (ResultSet rows = statement.executeQuery()) {
            rows.next();
            System.out.println("parameters " + rows.getInt(1) + " " + rows.getString(2) + " " + rows.getString(3));
          }
        }
      }
      connection.setAutoCommit(false);
      connection.rollback();
      connection.setAutoCommit(true);
      DatabaseMetaData data = connection.getMetaData();
      System.out.println("catalogs " + count(data.getCatalogs()));
      System.out.println("tables " + count(data.getTables("mysql", null, "slave%", null)));
      try (Statement statement = connection.createStatement()) {
        statement.execute("frobnicate");
      } catch (SQLException error) {
        System.out.println("error " + error.getErrorCode() + " " + error.getSQLState());
      }
    } catch (SQLException error) {
      System.out.println("failed " + error.getErrorCode() + " " + error.getSQLState());
    }
  }

  private static int count(ResultSet rows) throws SQLException {
    int found = 0;
    while (rows.next()) {
      found++;
    }
    rows.close();
    return found;
  }
}
