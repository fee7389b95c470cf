import { METER, type Meter } from "../../../../src/core/domain/usage/meter.ts";
import type { StoreBundle } from "../setup.ts";

const shown = new WeakMap<StoreBundle, Meter>();

/**
 * `usage.trace_scope` shows the scopes of traces of all tiers. Here it shows those of the history's meter, and all views with it.
 * It reads the meter from a table: with a view replaced for each history, every session would plan every statement again.
 */
export async function showMeter(bundle: StoreBundle, meter: Meter): Promise<void> {
  const before = shown.get(bundle);
  if (meter === (before ?? "traces")) return;
  if (before === undefined) {
    await bundle.reader.query(`
      CREATE TABLE public.shown_meter (one boolean PRIMARY KEY DEFAULT true, kind text, tier text);
      INSERT INTO public.shown_meter DEFAULT VALUES;
      CREATE OR REPLACE VIEW usage.trace_scope AS
      SELECT scope_id, source_id, kind, trace_tier, group_by, workspace_id, stride FROM usage.scope
      WHERE (kind, trace_tier) IN (SELECT kind, tier FROM public.shown_meter);
      CREATE OR REPLACE FUNCTION usage.meter_of(kind text, trace_tier text) RETURNS text LANGUAGE sql STABLE
      RETURN CASE WHEN (kind, trace_tier) = (SELECT x.kind, x.tier FROM public.shown_meter x) THEN 'traces' ELSE trace_tier END`);
  }
  const { kind, tier } = METER[meter];
  await bundle.reader.query("UPDATE public.shown_meter SET kind = $1, tier = $2", [kind, tier]);
  shown.set(bundle, meter);
}
