-- A login for dashboards and BI tools: reads the schemas reporting and reporting_detail and nothing else. Safe to run again; run it with
--   READER_PASSWORD=... psql "$DATABASE_URL" --file docs/deploy/monitoring/reader.sql
\set ON_ERROR_STOP on
SET client_min_messages = warning;
\getenv password READER_PASSWORD
SELECT 'CREATE ROLE usage_dashboard LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'usage_dashboard') \gexec
ALTER ROLE usage_dashboard PASSWORD :'password';
-- A dashboard that is left open must not keep the database busy.
ALTER ROLE usage_dashboard SET statement_timeout = '60s';
-- An open transaction holds up an upgrade.
ALTER ROLE usage_dashboard SET idle_in_transaction_session_timeout = '10min';
ALTER ROLE usage_dashboard SET default_transaction_read_only = on;
-- Every day and hour of the views is a UTC one.
ALTER ROLE usage_dashboard SET timezone = 'UTC';
-- Views are found without their schema, and nothing of another schema is taken for one.
ALTER ROLE usage_dashboard SET search_path = reporting, reporting_detail;
GRANT usage_reader TO usage_dashboard;
