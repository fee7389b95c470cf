-- A process that reads from a replica writes here every few seconds. A replica that shows the time has all that was committed
-- before it, so this says how old the replica's figures are, also while it is cut off or the primary is idle.
CREATE TABLE usage.heartbeat (
  process text NOT NULL,
  beat_at timestamptz NOT NULL,
  CONSTRAINT heartbeat_pkey PRIMARY KEY (process)
);
