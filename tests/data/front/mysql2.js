// Asks a front as an application would, and prints one line of JSON for each answer. Arguments: port user password [CA].
"use strict";
const fs = require("node:fs");
const mysql = require("mysql2/promise");

const [port, user, password, ca] = process.argv.slice(2);
const options = { host: "127.0.0.1", port: Number(port), user, password, connectTimeout: 60000 };
if (ca) options.ssl = { ca: fs.readFileSync(ca), verifyIdentity: false };

async function print(name, answer) {
  let found;
  try {
    found = await answer();
  } catch (error) {
    found = { errno: error.errno, sqlState: error.sqlState };
  }
  console.log(JSON.stringify([name, found]));
}

async function main() {
  let connection;
  await print("connect", async () => {
    connection = await mysql.createConnection(options);
    return "ok";
  });
  if (!connection) return;
  await print("status", async () => {
    const [rows, fields] = await connection.query("SHOW REPLICA STATUS");
    return [fields.length, rows[0].Source_Host, rows[0].Source_Port, rows[0].Seconds_Behind_Source];
  });
  await print("prepared status", async () => {
    const [rows, fields] = await connection.execute("SHOW REPLICA STATUS");
    return [fields.length, rows[0].Source_Host, rows[0].Source_Port, rows[0].Seconds_Behind_Source];
  });
  await print("parameters", async () => {
    const sql = "SELECT ? + 1 AS n, CONCAT(?, 'x') AS t, ? AS nothing, ? AS d";
    return (await connection.execute(sql, [4, "a'\\b", null, new Date("2026-11-30T09:05:06Z")]))[0];
  });
  await print("twice", async () => {
    const sql = "SELECT port FROM performance_schema.replication_connection_configuration WHERE channel_name = ?";
    const statement = await connection.prepare(sql);
    const found = [(await statement.execute([""]))[0], (await statement.execute(["nope"]))[0]];
    await statement.close();
    return found;
  });
  await print("error", async () => await connection.query("frobnicate"));
  await print("prepared error", async () => await connection.execute("SELECT * FROM mysql.nope"));
  await print("change user", async () => {
    await connection.changeUser({ user, password });
    return (await connection.query("SELECT CURRENT_USER() AS name"))[0][0].name;
  });
  await connection.end();
  await print("pool", async () => {
    const pool = mysql.createPool({ ...options, connectionLimit: 2 });
    const found = await Promise.all([1, 2, 3, 4].map((n) => pool.execute("SELECT ? AS n", [n])));
    await pool.end();
    return found.map(([rows]) => rows[0].n);
  });
}

main();
