-- The dimensions of this release, in the order of listings. Checks of the tables call it, so never take one away.
CREATE OR REPLACE FUNCTION usage.dimension_position(dimension text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE dimension
  -- each dimension
  WHEN '{dimension}' THEN {position}
  -- end
END;
