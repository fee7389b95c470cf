import { type CalendarMonth, monthAt } from "../../core/domain/months/month.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { sendAside } from "../../core/pipeline/source/send-request.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import type { LineKind, WireLine } from "../../core/platform/billing/statement.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { noteBillPart, type StatementPart } from "./bill-terms.store.ts";
import { keepLines, type ReadPart, refusalOf, requestBill, requestOptional } from "./read-terms.ts";

interface Reading {
  readonly kinds: readonly LineKind[];
  read(source: OpenSource, month: CalendarMonth): Promise<WireLine[]>;
}

const READINGS: Readonly<Record<StatementPart, Reading>> = {
  members: {
    kinds: ["members"],
    read: (source) => {
      const { billing, signal } = source;
      return billing.members({ signal, sendMore: (send) => sendAside(source, send) });
    },
  },
  gateway_spend: {
    kinds: ["gateway_spend"],
    read: ({ billing, signal }) => billing.gatewaySpend({ signal }),
  },
  engine_units: {
    kinds: ["engine_units", "engine_enforced_limit"],
    read: ({ billing, signal }, { start, end }) =>
      billing.engineUnits({ start: Date.parse(start), end: Date.parse(end), signal }),
  },
  engine_limit: {
    kinds: ["engine_limit"],
    read: ({ billing, signal }) => billing.engineLimit({ signal }),
  },
};

export async function readStatementPart(source: OpenSource, part: StatementPart): Promise<ReadPart> {
  const { sourceId, store } = source;
  const { kinds, read } = READINGS[part];
  // On the first day of a month, Engine's units are those of the whole month before.
  const month = monthAt((await storeNow(store.db)) - (part === "engine_units" ? DAY_MS : 0));
  const request = part === "engine_units" ? requestOptional : requestBill;
  const requested = await request(source, () => read(source, month));
  await noteBillPart(store.db, { sourceId, part, refusal: refusalOf(requested) });
  if ("refusal" in requested) return { read: 0, refusal: requested.refusal };
  const lines = requested.response;
  await keepLines(source, { kinds, month, lines });
  return { read: lines.length, refusal: null };
}
