-- The beginnings of the telling words of columns' names, and of their tables' names, while joins are looked for.
-- may_be_parent: the column is unique, or has no values to tell.
CREATE TEMPORARY TABLE name_stem (
    column_id bigint NOT NULL, table_id bigint NOT NULL, stem text COLLATE "C" NOT NULL, is_own boolean NOT NULL, may_be_parent boolean NOT NULL
)
