import { z } from "zod";
import { sourceFlagsOf } from "../../core/base/config.ts";
import {
  DIFFERENCE_KINDS,
  DIFFERENCE_STATES,
  type DifferenceState,
} from "../../core/domain/proof/difference.ts";
import { addDays, dayOf, intervalOf, shortInstant } from "../../core/domain/time/days.ts";
import { ceilToGrid, DAY_MS } from "../../core/domain/time/stride.ts";
import { METER, METER_NAME, METERS } from "../../core/domain/usage/meter.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import type { Counted } from "../../core/store/figures/counted.ts";
import {
  ALL,
  address,
  capital,
  choice,
  count,
  cursorField,
  cursorText,
  dayField,
  dimensionTitle,
  type Html,
  html,
  instant,
  lastDayField,
  name,
  numberHead,
  optional,
  sourceField,
  table,
  twin,
} from "../../web/parts.ts";
import { rangeText } from "../../web/query.ts";
import type { Web } from "../../web/routes.ts";
import { chosenSource } from "../close/month.page.ts";
import { COUNTED_WORDS } from "../figures/question.ts";
import { type ListedDifference, listDifferences, SAYERS } from "./difference-list.store.ts";

const ON_A_PAGE = 50;

const AT = z.iso.datetime({ precision: 6 });
const ID = z.string().max(1000);
const NUMBER = z.int().min(0);
const SCOPE = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
const cursor = z.union([
  z.tuple([z.enum(["export", "total"]), AT, SCOPE, ID, AT, AT, ID, ID]),
  z.tuple([z.literal("restatement"), AT, NUMBER]),
]);
const query = z.object({
  source: optional(z.string().max(63)),
  says: optional(z.enum(SAYERS)),
  state: optional(z.enum(["left", "all"])),
  from: optional(z.iso.date()),
  to: optional(z.iso.date()),
  meter: optional(z.enum(METERS)),
  group_by: optional(z.enum(GROUPINGS)),
  workspace: optional(ID),
  before: cursorField(cursor),
});
type Query = z.output<typeof query>;

export function addDifferences(web: Web): void {
  web.page("/differences", { query }, async (context) => {
    const { db, masked } = context;
    const { source, sources } = await chosenSource(context, context.query.source);
    const requested = { ...context.query, source: source.source };
    const sourceFlags = sourceFlagsOf(context.config, source.source);
    const rows = await listDifferences(db, {
      source: source.source,
      says: requested.says,
      onlyLeft: requested.state !== "all",
      from: requested.from,
      to: requested.to,
      groupBy: requested.group_by,
      workspaceId: requested.workspace,
      meter: requested.meter,
      before: requested.before,
      most: ON_A_PAGE + 1,
      masked,
    });
    const shown = rows.slice(0, ON_A_PAGE);
    const last = rows.length > ON_A_PAGE ? shown.at(-1) : undefined;
    const body = html`${filterForm(
      requested,
      sources.map((one) => one.source),
    )}
      ${shown.length === 0 ? nothing(requested) : list(shown, requested.source)}
      ${last !== undefined && html`<p><a href="${here({ ...requested, before: cursorText(last.cursor) })}">Older differences</a></p>`}
      ${requested.before !== undefined && html`<p><a href="${here({ ...requested, before: undefined })}">The newest differences</a></p>`}
      <h2>Compare again</h2>
      ${twin(
        `usage-etl reconcile --from ${requested.from ?? source.dataStart} --to ${requested.to ?? shortInstant(context.now).slice(0, 10)}${sourceFlags} --repair`,
        `usage-etl totals --reach quarter${sourceFlags}`,
      )}`;
    return { title: "Differences", body };
  });
}

const here = (requested: Readonly<Record<string, string | undefined>>) => address("/differences", requested);

const SAYS = [
  { value: "", text: "anybody" },
  { value: "export", text: "the export" },
  { value: "total", text: "a total" },
  { value: "restatement", text: "a later response" },
];
const STATES = [
  { value: "left", text: "left, and restatements" },
  { value: "all", text: "final too" },
];
const COUNTED = [
  { value: "", text: "everything" },
  ...METERS.map((meter) => ({ value: meter, text: METER_NAME[meter] })),
];

function filterForm(requested: Query, sources: readonly string[]): Html {
  return html`<form class="row" method="get" action="/differences">
    ${sourceField(sources, requested.source)}
    ${choice("Who says another number", "says", SAYS, requested.says ?? "")}
    ${choice("State", "state", STATES, requested.state ?? "left")}
    ${choice("What is counted", "meter", COUNTED, requested.meter ?? "")}
    ${choice("Dimension", "group_by", [ALL, ...GROUPINGS.map((value) => ({ value, text: dimensionTitle(value) }))], requested.group_by ?? "")}
    <label>Workspace id <input name="workspace" value="${requested.workspace ?? ""}"></label>
    ${dayField("Days from", "from", requested.from)} ${lastDayField(requested.to)}
    <button>Show</button>
  </form>`;
}

function nothing(requested: Query): Html {
  const which =
    requested.state === "all"
      ? "No difference and no restatement"
      : "No difference that is left, and no restatement,";
  const days =
    requested.from === undefined && requested.to === undefined
      ? ""
      : ` of days from ${requested.from ?? "the data start"} to ${requested.to === undefined ? "today" : addDays(requested.to, -1)}`;
  return html`<p>${which} is recorded${days}${requested.before !== undefined && ", before this place in the list"}.
    The compared days are in the <a href="${address("/coverage", { source: requested.source, from: requested.from, to: requested.to })}">coverage</a>.</p>`;
}

const SIGNS: Readonly<Record<DifferenceState, readonly [glyph: string, colour: string]>> = {
  open: ["≠", "failed"],
  platform_disagrees: ["≠", "failed"],
  repaired: ["✓", "ok"],
  withdrawn: ["✓", "ok"],
  closed: ["✓", "ok"],
  not_configured: ["–", "empty"],
  hours_dropped: ["–", "empty"],
  restated: ["↻", "provisional"],
};

const HEADS = ["Counted by", "Stored", "The other number", "State"] as const;

function list(rows: readonly ListedDifference[], source: string): Html {
  const events = Map.groupBy(rows, (row) =>
    JSON.stringify([
      row.says,
      row.kind,
      row.stride,
      row.from,
      row.to,
      row.workspaceId,
      row.meter,
      row.measure,
    ]),
  );
  const [counted, ...others] = HEADS;
  return table({
    kind: "events",
    label: "Differences",
    caption: "Differences, the newest first. Lines of one event show the same traces, so they never add up.",
    heads: [counted, numberHead(others[0]), numberHead(others[1]), others[2]],
    rows: [...events.values()].flatMap((event) => [
      html`<tr class="event"><th scope="rowgroup" colspan="${HEADS.length}"><div>${eventTitle(event)}</div></th></tr>`,
      ...event.map((row) => difference(row, source)),
    ]),
  });
}

function eventTitle(event: readonly ListedDifference[]): Html {
  const [first] = event as [ListedDifference, ...ListedDifference[]];
  const { workspaceId, workspaceName, at } = first;
  const whole = event.find(({ groupBy }) => groupBy === "workspace") ?? first;
  return html`${rangeText(intervalOf(first))}, <span title="${workspaceId}">${name(workspaceName ?? workspaceId)}</span>: ${ofUsage(first)}${inWords(whole)}
    <small>found ${instant(at)}</small>`;
}

function inWords({ kind, storedAmount, otherAmount, exportSays }: ListedDifference): Html {
  if (storedAmount !== null && otherAmount !== null) {
    if (kind === "traces_differ")
      return html`the export says ${count(otherAmount)}, and ${count(storedAmount)} are stored`;
    if (kind === "restated")
      return html`a final figure changed from ${count(otherAmount)} to ${count(storedAmount)}`;
  }
  return html`${DIFFERENCE_KINDS[kind]}${exportSays !== null && html` (${name(exportSays)})`}`;
}

const OTHER = { export: "export", total: "total", restatement: "before" } as const;

function difference(row: ListedDifference, source: string): Html {
  const { says, stride, from, to, groupBy, workspaceId, dimensionId, state } = row;
  const [glyph, colour] = SIGNS[state];
  const cell = address("/cell", {
    source,
    workspace: workspaceId,
    group_by: groupBy,
    stride: stride === "hour" ? "hour" : "day",
    from: from.slice(0, 10),
    to: dayOf(ceilToGrid(Date.parse(to), DAY_MS)),
  });
  const { word, about } = DIFFERENCE_STATES[state];
  const by = `${capital(dimensionTitle(groupBy, row.meter))} by ${stride}`;
  return html`<tr><th scope="row">${row.meter === "traces" ? html`<a href="${cell}">${by}</a>` : by}
      <span class="quiet" title="${dimensionId}">${name(row.dimensionName ?? dimensionId)}</span></th>
    <td class="number">${count(row.storedAmount, "nothing is stored")}</td>
    <td class="number">${count(row.otherAmount, "nothing")} <span class="quiet">${OTHER[says]}</span></td>
    <td><span class="status ${colour}" title="${about}"><span aria-hidden="true">${glyph}</span> ${word}</span></td></tr>`;
}

function ofUsage({ meter, measure }: ListedDifference): string {
  if (meter === "traces") return "";
  return `${METER[meter].measures.length > 1 ? COUNTED_WORDS[measure as Counted] : METER_NAME[meter]}, `;
}
