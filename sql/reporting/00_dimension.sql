-- The dimensions of this release, in the order of listings. Checks of the tables call this function, so never remove
-- one.
CREATE OR REPLACE FUNCTION usage.dimension_position(dimension text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE dimension WHEN 'workspace' THEN 1 WHEN 'project' THEN 2 WHEN 'user' THEN 3 WHEN 'api_key' THEN 4 END;

-- The meters of this release (src/core/domain/usage/meter.ts), with the dimensions that split each one, and what an id
-- of each dimension names.
CREATE OR REPLACE VIEW usage.meter_dimension AS
SELECT * FROM (
  VALUES
    ('traces', 'traces', 'all', 'workspace', 'workspace'),
    ('traces', 'traces', 'all', 'project', 'project'),
    ('traces', 'traces', 'all', 'user', 'user'),
    ('traces', 'traces', 'all', 'api_key', 'api_key'),
    ('longlived', 'traces', 'longlived', 'workspace', 'workspace'),
    ('longlived', 'traces', 'longlived', 'project', 'project'),
    ('longlived', 'traces', 'longlived', 'user', 'user'),
    ('longlived', 'traces', 'longlived', 'api_key', 'api_key'),
    ('shortlived', 'traces', 'shortlived', 'workspace', 'workspace'),
    ('shortlived', 'traces', 'shortlived', 'project', 'project'),
    ('shortlived', 'traces', 'shortlived', 'user', 'user'),
    ('shortlived', 'traces', 'shortlived', 'api_key', 'api_key'),
    ('deployments', 'langsmith_deployments', 'all', 'workspace', 'workspace'),
    ('deployments', 'langsmith_deployments', 'all', 'project', 'deployment'),
    ('deployments', 'langsmith_deployments', 'all', 'user', 'user'),
    ('deployments', 'langsmith_deployments', 'all', 'api_key', 'api_key'),
    ('sandboxes', 'sandboxes', 'all', 'workspace', 'workspace'),
    ('sandboxes', 'sandboxes', 'all', 'project', 'sandbox'),
    ('evaluators', 'evaluators', 'all', 'workspace', 'workspace'),
    ('evaluators', 'evaluators', 'all', 'project', 'run_rule')
) m (meter, kind, trace_tier, group_by, dimension);

-- Everything that is counted, priced and billed: the meter that counts it, the service that it is billed for, its name
-- and unit in FOCUS, and how many digits after the point a part of it may have (an owner's share, or the unit itself).
-- The units of deployments are charged, but the platform's API does not report them.
CREATE OR REPLACE VIEW usage.measure AS
SELECT * FROM (
  VALUES
    ('traces', 'traces', 'traces', 'Traces', 'Traces', 4, true),
    ('longlived', 'longlived', 'traces', 'Long-lived Traces', 'Traces', 4, true),
    ('shortlived', 'shortlived', 'traces', 'Short-lived Traces', 'Traces', 4, true),
    ('nodes_executed', 'deployments', 'deployments', 'Nodes Executed', 'Nodes', 4, true),
    ('agent_runs', 'deployments', 'deployments', 'Agent Runs', 'Runs', 4, true),
    ('agent_uptime_seconds', 'deployments', 'deployments', 'Agent Uptime', 'Seconds', 4, true),
    ('lcu', 'sandboxes', 'sandboxes', 'Sandbox Compute Units', 'LCU', 6, true),
    ('lsu', 'sandboxes', 'sandboxes', 'Sandbox Storage Units', 'LSU', 6, true),
    ('compute_standard_units', 'sandboxes', 'sandboxes', 'Sandbox Compute Standard Units', 'Standard Units', 6, true),
    ('storage_standard_units', 'sandboxes', 'sandboxes', 'Sandbox Storage Standard Units', 'Standard Units', 6, true),
    ('spend_usd', 'evaluators', 'evaluators', NULL, NULL, NULL, true),
    ('evaluated_traces', 'evaluators', 'evaluators', NULL, NULL, NULL, true),
    ('deployment_lcu', 'deployments', 'deployments', NULL, NULL, NULL, false),
    ('deployment_lsu', 'deployments', 'deployments', NULL, NULL, NULL, false)
) m (measure, meter, service, name, unit, digits, is_reported);
