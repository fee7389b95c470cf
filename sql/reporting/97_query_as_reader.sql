-- An AI client sends a SELECT of its own, which must read no more than a reader may. SET LOCAL ROLE would not do: a
-- function in that SELECT could set the role back, and another could then read a table. So each reader's role owns a
-- function that runs the statement. Postgres lets nothing set the role inside a function with SECURITY DEFINER, at any
-- depth, and a STABLE function runs exactly one statement, which only reads.
DO $do$
DECLARE
  reader text;
BEGIN
  FOREACH reader IN ARRAY ARRAY['usage_reader', 'usage_reader_masked'] LOOP
    CONTINUE WHEN NOT EXISTS (SELECT FROM pg_roles WHERE rolname = reader);
    BEGIN
      EXECUTE format($create$
        CREATE OR REPLACE FUNCTION usage.query_as_%1$s(statement text, first_row integer, most_rows integer, most_bytes integer)
        RETURNS text
        LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER
        SET search_path = reporting, reporting_detail, pg_temp
        SET jit = off
        SET cursor_tuple_fraction = 1
        AS $body$
        DECLARE
          response refcursor := 'response';
          row_read record;
          columns text := '[]';
          cells text;
          rows_read text[] := '{}';
          bytes bigint := 0;
          has_more boolean := false;
        BEGIN
          -- A dump that is restored without owners leaves the function to the owner of the tables.
          IF current_user <> %1$L THEN
            RAISE insufficient_privilege
              USING MESSAGE = 'The function usage.query_as_%1$s does not belong to its role.';
          END IF;
          OPEN response FOR EXECUTE statement;
          MOVE FORWARD first_row FROM response;
          LOOP
            FETCH response INTO row_read;
            EXIT WHEN NOT FOUND;
            -- Arrays, because two columns may have one name.
            SELECT coalesce(json_agg(key), '[]'), coalesce(json_agg(value), '[]') INTO columns, cells
            FROM json_each(row_to_json(row_read));
            bytes := bytes + octet_length(cells);
            has_more := cardinality(rows_read) = most_rows OR bytes > most_bytes;
            IF has_more AND rows_read = '{}' THEN
              RAISE program_limit_exceeded USING
                MESSAGE = concat('Row ', first_row + 1, ' alone has more than ', most_bytes, ' bytes'),
                HINT = 'Select fewer or shorter columns.';
            END IF;
            EXIT WHEN has_more;
            rows_read := rows_read || cells;
          END LOOP;
          CLOSE response;
          RETURN concat('{"columns":', columns, ',"rows":[', array_to_string(rows_read, ','), '],"has_more":',
              has_more::text, '}');
        END
        $body$
      $create$, reader);
      EXECUTE format('REVOKE ALL ON FUNCTION usage.query_as_%s FROM public', reader);
      EXECUTE format('GRANT EXECUTE ON FUNCTION usage.query_as_%s TO pg_read_all_data', reader);
      -- Postgres requires this of a role that is to own a function.
      EXECUTE format('GRANT CREATE ON SCHEMA usage TO %I', reader);
      EXECUTE format('ALTER FUNCTION usage.query_as_%1$s OWNER TO %1$I', reader);
      EXECUTE format('REVOKE CREATE ON SCHEMA usage FROM %I', reader);
    EXCEPTION
      -- This login is not a member of the role. The tool `query` then says which statement an administrator must run.
      WHEN insufficient_privilege THEN NULL;
    END;
  END LOOP;
END
$do$;
