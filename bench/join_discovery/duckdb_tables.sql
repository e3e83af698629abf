-- Every column, and every distinct value of each.
CREATE TABLE facts (number INTEGER, "table" INTEGER, type VARCHAR, distinct_count BIGINT, is_unique BOOLEAN);
CREATE TABLE cell (number INTEGER, value VARCHAR);
SET enable_progress_bar = false;
