-- vendors: mariadb_118
-- kinds: server sqlite postgresql
-- may_stop: mariadb_118 1364
CREATE DATABASE d;
USE d;
CREATE TABLE g (id INT PRIMARY KEY, a INT, b INT AS (a*2) STORED, c INT AS (a+1) VIRTUAL, t TEXT, e VARCHAR(30) AS (CONCAT(t, a)) STORED);
CREATE TABLE h (a INT, b INT AS (a*2) STORED, t TEXT);
SET binlog_row_image=FULL_NODUP;
INSERT INTO g (id, a, t) VALUES (1, 1, 'x'), (2, NULL, 'y'), (3, 3, NULL);
UPDATE g SET a=5 WHERE id=1;
UPDATE g SET t='z' WHERE id IN (2, 3);
UPDATE g SET id=id+10, a=a+1;
BEGIN;
SAVEPOINT s;
UPDATE g SET a=NULL WHERE id=11;
ROLLBACK TO s;
UPDATE g SET a=9 WHERE id=13;
UPDATE g SET a=10, t='twice' WHERE id=13;
COMMIT;
INSERT INTO h (a, t) VALUES (1, 'q'), (1, 'q'), (2, 'r');
UPDATE h SET a=3 WHERE a=1 LIMIT 1;
UPDATE h SET t='s' WHERE a=3;
CREATE OR REPLACE TABLE k (id INT PRIMARY KEY) SELECT id, a, b, c FROM g;
UPDATE k SET b=b+1, c=NULL WHERE id=13;
SET binlog_row_image=FULL;
UPDATE g SET a=1000 WHERE id=12;
