-- The id and name of a dimension's value are dimension_id and dimension_name in every view. CREATE OR REPLACE cannot rename
-- columns, so the view of an earlier release is renamed here. Views that read it go on working.
ALTER VIEW IF EXISTS usage.labelled_entity RENAME COLUMN label TO dimension_id;
ALTER VIEW IF EXISTS usage.labelled_entity RENAME COLUMN name TO dimension_name;
