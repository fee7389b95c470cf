import { activity } from "./features/activity/feature.ts";
import { agents } from "./features/agents/feature.ts";
import { alerts } from "./features/alerts/feature.ts";
import { backfill } from "./features/backfill/feature.ts";
import { catalog } from "./features/catalog/feature.ts";
import { close } from "./features/close/feature.ts";
import { costs } from "./features/costs/feature.ts";
import { coverage } from "./features/coverage/feature.ts";
import { exporting } from "./features/export/feature.ts";
import type { Feature } from "./features/feature.ts";
import { figures } from "./features/figures/feature.ts";
import { invoice } from "./features/invoice/feature.ts";
import { mcp } from "./features/mcp/feature.ts";
import { owners } from "./features/owners/feature.ts";
import { probe } from "./features/probe/feature.ts";
import { standin } from "./features/standin/feature.ts";
import { status } from "./features/status/feature.ts";

/** A feature may import the core, the shared code of commands and pages, and features earlier in this list. */
export const FEATURES: readonly Feature[] = [
  standin,
  agents,
  probe,
  catalog,
  exporting,
  owners,
  costs,
  figures,
  close,
  invoice,
  coverage,
  backfill,
  activity,
  alerts,
  status,
  mcp,
];
