-- The objects of some tables ($1): kind and name, and the definition.
WITH own AS (
    SELECT oid, relname, relkind, relrowsecurity, relforcerowsecurity FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relname::text = ANY ($1::text[])
)
SELECT 'table ' || relname,
    CASE relkind WHEN 'r' THEN 'table' ELSE 'other' END
    || CASE WHEN relrowsecurity OR relforcerowsecurity THEN ', row security' ELSE '' END
FROM own
UNION ALL
SELECT 'column ' || own.relname || '.' || attname, format_type(atttypid, atttypmod)
    || CASE WHEN attcollation NOT IN (0, typcollation)
        THEN ' collate ' || (SELECT collname FROM pg_collation WHERE oid = attcollation)
        ELSE '' END
    || CASE WHEN attnotnull THEN ' not null' ELSE '' END
    || CASE WHEN attgenerated <> '' OR attidentity <> '' THEN ' generated' ELSE '' END
    || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
FROM own JOIN pg_attribute ON attrelid = own.oid JOIN pg_type ON pg_type.oid = atttypid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index ' || indexrelid::regclass || ' on ' || own.relname,
    replace(pg_get_indexdef(indexrelid, 0, true), '"', '')
        || CASE WHEN indisvalid THEN '' ELSE ', not valid' END
FROM own JOIN pg_index ON indrelid = own.oid
UNION ALL
SELECT 'constraint ' || conname || ' on ' || own.relname,
    replace(pg_get_constraintdef(pg_constraint.oid, true), '"', '')
FROM own JOIN pg_constraint ON conrelid = own.oid WHERE contype <> 'n'
UNION ALL
SELECT 'trigger ' || tgname || ' on ' || own.relname, pg_get_triggerdef(pg_trigger.oid, true)
FROM own JOIN pg_trigger ON tgrelid = own.oid
UNION ALL
SELECT 'rule ' || rulename || ' on ' || own.relname, pg_get_ruledef(pg_rewrite.oid, true)
FROM own JOIN pg_rewrite ON ev_class = own.oid
UNION ALL
SELECT 'policy ' || polname || ' on ' || own.relname, ''
FROM own JOIN pg_policy ON polrelid = own.oid
UNION ALL
SELECT 'child table ' || inhrelid::regclass || ' of ' || own.relname, ''
FROM own JOIN pg_inherits ON inhparent = own.oid
