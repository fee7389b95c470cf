-- The dimensions of this release, in the order of listings. Checks of the tables call it, so never take one away.
CREATE OR REPLACE FUNCTION usage.dimension_position(dimension text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE dimension
  -- each dimension
  WHEN '{dimension}' THEN {position}
  -- end
END;

-- The meters of this release, with the dimensions that each is split by, and what an id of it stands for.
CREATE OR REPLACE VIEW usage.meter_dimension AS
SELECT * FROM (
  VALUES (NULL, NULL, NULL, NULL, NULL)
  -- each meter and dimension
  , ('{meter}', '{kind}', '{tier}', '{group_by}', '{dimension}')
  -- end
) m (meter, kind, trace_tier, group_by, dimension)
WHERE meter IS NOT NULL;
