-- SPDX-License-Identifier: Apache-2.0
-- SQLite in memory: a table, two indices, joins, an update and a deletion; the command line sets
-- the number of rows.
CREATE TABLE facts (id INTEGER PRIMARY KEY, key INTEGER, value INTEGER, name TEXT);
WITH RECURSIVE counter(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counter WHERE i < :rows)
INSERT INTO facts
SELECT i, (i * 2654435761) % 1000003, (i * 40503) % 65521, printf('name %d of %d', i, i % 977)
FROM counter;
CREATE INDEX by_key ON facts(key);
CREATE INDEX by_name ON facts(name, value);
SELECT count(*), sum(key), sum(value), max(name) FROM facts;
SELECT sum(a.value - b.value) FROM facts a JOIN facts b ON b.key = a.key + 1 WHERE a.id % 4 = 0;
UPDATE facts SET value = value + 1, name = name || '!' WHERE key % 10 = 3;
DELETE FROM facts WHERE key % 17 = 5;
SELECT name, value FROM facts ORDER BY name DESC LIMIT 5;
SELECT count(*), sum(value), sum(length(name)) FROM facts WHERE name > 'name 5';
PRAGMA integrity_check;
