CREATE OR REPLACE TABLE loaded AS FROM read_csv('{file}', header = true, all_varchar = true, delim = ',', quote = '"');
