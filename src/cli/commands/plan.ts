import type { Command } from "commander";
import { WORKSPACES_PER_REQUEST } from "../../domain/planning/request.ts";
import { alignRange, planWindows } from "../../domain/planning/windows.ts";
import { instant, table } from "../report/output.ts";
import {
  groupingsOf,
  type RangeOptions,
  rangeOf,
  type SelectionOptions,
  withRange,
  withSelection,
} from "../session/options.ts";
import { inSession, type Session } from "../session/session.ts";

/** A table is for people; `--json` has all windows. */
const MOST_ROWS = 1000;

export function define(command: Command): void {
  withSelection(withRange(command)).action(inSession(run));
}

async function run(session: Session, options: RangeOptions & SelectionOptions): Promise<undefined> {
  const { config, output } = session;
  const dataStart = Date.parse(config.sources[0]?.dataStart ?? "2026-01-05");
  const range = alignRange(rangeOf(options), options.stride, dataStart);
  const windows = range === undefined ? [] : planWindows(range, options.stride);
  const ids = options.workspace ?? config.sources.flatMap((source) => source.workspaceIds);
  const workspaces = Math.max(1, ids.length);
  const requests = groupingsOf(options).map((groupBy) => ({
    groupBy,
    requests:
      windows.length *
      (groupBy === "workspace" ? Math.ceil(workspaces / WORKSPACES_PER_REQUEST) : workspaces),
  }));
  const shown = windows.map(({ stride, start, end }) => ({ stride, from: instant(start), to: instant(end) }));
  output.data({ windows: shown, workspaces, requests }, () => {
    const rows = shown.slice(0, MOST_ROWS).map(({ stride, from, to }) => [stride, from, to]);
    const left = shown.length - rows.length;
    const byDimension = requests.map((one) => `${one.groupBy} ${one.requests}`).join(", ");
    return [
      table(["stride", "from", "to"], rows),
      ...(left > 0 ? [`and ${left} more, which --json shows`] : []),
      `${windows.length} windows; requests for ${workspaces} workspace${workspaces > 1 ? "s" : ""}: ${byDimension}`,
    ].join("\n");
  });
}
