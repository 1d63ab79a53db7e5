-- kinds: server sqlite postgresql
-- may_stop: mariadb_118 1364
CREATE DATABASE d;
USE d;
CREATE TABLE g (id INT PRIMARY KEY, a INT, b INT AS (a*2) STORED, c INT AS (a+1) VIRTUAL, s VARCHAR(20), u VARCHAR(20) AS (UPPER(s)) STORED, t TEXT, at DATETIME DEFAULT '2024-01-02 03:04:05', KEY (b));
CREATE TABLE h (a INT, b INT AS (a*2) STORED, t BLOB, s VARCHAR(9) AS (CONCAT('x', a)) VIRTUAL);
SET binlog_row_image=MINIMAL;
INSERT INTO g (id, a, s, t) VALUES (1, 1, 'one', 'T1'), (2, 2, 'two', 'T2'), (3, NULL, NULL, NULL), (4, 4, 'four', REPEAT('x', 3000));
UPDATE g SET a=a+10 WHERE id<3;
UPDATE g SET t=NULL WHERE id=4;
INSERT INTO h (a, t) VALUES (1, 'one'), (1, 'one'), (2, NULL);
UPDATE h SET a=5 WHERE a=1 LIMIT 1;
SET binlog_row_image=NOBLOB;
UPDATE g SET s='drei', a=3 WHERE id=3;
UPDATE g SET t='new' WHERE id=1;
DELETE FROM h WHERE a=2;
UPDATE h SET t='changed' WHERE a=1;
UPDATE g SET id=id+100 WHERE id=2;
SET binlog_row_image=FULL;
REPLACE INTO g (id, a, s) VALUES (1, 77, 'replaced'), (5, 5, 'five');
INSERT INTO g (id, a) VALUES (5, 6) ON DUPLICATE KEY UPDATE a=VALUES(a)+100;
ALTER TABLE g MODIFY b INT AS (a*3) STORED;
SET binlog_row_image=MINIMAL;
UPDATE g SET a=a-1;
DELETE FROM g WHERE b=6;
ALTER TABLE g ADD d INT AS (id+a) VIRTUAL, DROP u;
UPDATE g SET s=CONCAT(s, '!');
