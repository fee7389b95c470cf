/** One command of the tour that `npm run docs:cli` runs and shows. */
export interface Step {
  readonly run: string;
  /** What is typed, each once its text is on the terminal. `\u0003` is Ctrl-C. `{name}` is a value that is known. */
  readonly type?: readonly (readonly [shows: string, text: string])[];
  /** Lines that are shown of it; the rest is left out. Default: all. */
  readonly lines?: number;
  /** A value of its output for later commands: its name, and a pattern whose first group it is. */
  readonly keep?: readonly [name: string, pattern: RegExp];
  /** Exit code. Default 0. */
  readonly code?: number;
}

const CTRL_C = "\u0003";
const OCTOBER = "--from 2026-10-01 --to 2026-11-01";

/**
 * Every command once, in the order in which a person meets them: each runs on what the ones before have left. A command that
 * this release does not have is left out.
 */
export const TOUR: Readonly<Record<string, readonly Step[]>> = {
  "Set up": [
    {
      run: "init --set USAGE_DATA_START=2026-10-01",
      type: [
        ["? Billing host", "{platform}\r"],
        ["? API key", "{key}\r"],
        ["? Postgres", "{postgres}\r"],
        ["? Redis", "{redis}\r"],
      ],
    },
    { run: "version" },
    { run: "migrate" },
    { run: "doctor" },
    { run: "config", lines: 24 },
    { run: "workspace list" },
    { run: "source list" },
  ],
  Load: [
    { run: `plan ${OCTOBER}` },
    { run: "sync --inline" },
    { run: "backfill --from 2026-10-01 --to 2026-10-08 --reprocess all --inline" },
    { run: "backfill --from 2026-10-01 --to 2026-10-08 --reprocess all --detach" },
    { run: "backfill list", keep: ["backfill", /(\d+) +(?:default +)?running/] },
    { run: "backfill pause {backfill}" },
    { run: "backfill resume {backfill}" },
    // None of its tasks has failed.
    { run: "backfill retry {backfill}", code: 2 },
    { run: "backfill cancel {backfill}" },
    { run: "backfill show {backfill}" },
    { run: "runs list" },
    { run: "runs show 1" },
  ],
  "Look and prove": [
    { run: "status" },
    { run: "coverage", lines: 24 },
    { run: `reconcile ${OCTOBER}` },
    { run: "totals" },
    { run: "close 2026-10 --without-costs" },
    { run: "bill 2026-11" },
    { run: "probe --project agent-server", type: [["[y/N]", "y\r"]] },
    { run: "data-start" },
  ],
  "Read and export": [
    { run: "export --view dim_workspace --columns workspace_id,workspace_name" },
    { run: "prices import {prices}" },
    { run: "prices list" },
    { run: "owners suggest" },
    { run: "owners plan {owners}" },
    { run: "owners apply {owners}" },
    { run: "owners export" },
    { run: "owners budgets" },
    { run: "bill 2026-11 --by owner" },
    { run: "files write --to {folder}/files" },
    { run: "files check --to {folder}/files" },
    { run: "files views duckdb --to {folder}/files", lines: 12 },
    { run: "mcp", type: [["An AI client starts", CTRL_C]] },
  ],
  Operate: [
    { run: "serve", lines: 6, type: [["serving as", CTRL_C]] },
    { run: "alerts list" },
    // Nobody has set one up.
    { run: "alerts test oncall", code: 2 },
    { run: "prune" },
    { run: "workspace add {workspace}" },
    // Both are still loaded, so they are refused.
    { run: "workspace forget {workspace} --dry-run", code: 2 },
    { run: "source forget default --dry-run", code: 2 },
    { run: "completion bash", lines: 6 },
  ],
  "The platform's other calls": [
    { run: "platform template get python" },
    { run: "platform template rename python python-3" },
    {
      run: "platform deployment create --body {body} --wait",
      keep: ["deployment", /^id +([0-9a-f-]{36})/m],
    },
    { run: "platform deployment get {deployment}" },
    { run: "platform deployment update {deployment} --body {update}" },
    { run: "platform deployment wait {deployment}" },
    { run: "platform run hello" },
    { run: "platform a2a send hello", keep: ["task", /^task +([0-9a-f-]{36})/m] },
    { run: "platform a2a stream hello" },
    { run: "platform a2a task {task}" },
    { run: "platform a2a card" },
  ],
  "Without an account": [
    { run: "standin --port 0", type: [["listens on", CTRL_C]] },
    // README.md shows most of it. Its stand-in bills on, so the figures differ from run to run.
    { run: "demo --once --data-dir {folder}/demo", lines: 2 },
  ],
};
