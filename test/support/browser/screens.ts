import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { now } from "../clock.ts";
import { HOSTILE } from "../hostile.ts";
import { iso, storyOf } from "../story.ts";

/** Screens in each of their forms, of the database of story.ts. */

export const story = storyOf(now());
const month = iso(story.month.start).slice(0, 7);
const range = (of: { start: number; end: number }) => `from=${iso(of.start)}&to=${iso(of.end)}`;
const yesterday = { start: story.today - DAY_MS, end: story.today };
const { workspaces, projects, emails, keys, person } = HOSTILE;
const [first] = workspaces;

/** Name, path, what it says, and names from outside that it shows. `WORKSPACE` stands for the id of the first workspace. */
const ROWS: readonly [name: string, path: string, says: RegExp, names?: readonly string[]][] = [
  ["the overview", "/", /Proved/],
  ["coverage by month", "/coverage?open=WORKSPACE", /Hide 4 dimensions/, workspaces],
  ["coverage by day", `/coverage?stride=day&${range(story.month)}`, /Gaps/, workspaces],
  ["coverage by hour", `/coverage?stride=hour&${range(yesterday)}`, /by hour/, workspaces],
  [
    "coverage of days by hour, of one workspace",
    `/coverage?stride=hour&from=${iso(story.today - 7 * DAY_MS)}&to=${iso(story.today)}&workspace=WORKSPACE&gaps=1`,
    /by day/,
    [first],
  ],
  [
    "a loaded cell",
    `/cell?source=default&workspace=WORKSPACE&stride=day&group_by=project&${range(story.restated)}`,
    /restatements/,
    [first],
  ],
  [
    "a failed cell",
    `/cell?source=default&workspace=WORKSPACE&stride=day&group_by=project&${range(story.failed)}`,
    /request_refused/,
    [first],
  ],
  [
    "a cell of an hour",
    `/cell?source=default&workspace=WORKSPACE&stride=hour&from=${iso(yesterday.start)}T05:00&to=${iso(yesterday.start)}T06:00`,
    /05:00/,
    [first],
  ],
  ["loads", "/backfills", /waiting|running/i],
  ["a load", "/backfills/1", /load/i, workspaces],
  ["a new load", `/backfills/new?stride=day&${range(story.gap)}`, /requests/i, workspaces],
  ["usage by workspace", `/usage?by=workspace&${range(story.month)}`, /traces/i, workspaces],
  ["usage by project", `/usage?by=project&${range(story.month)}`, /traces/i, projects],
  ["usage by key", `/usage?by=api_key&${range(story.month)}`, /traces/i, keys],
  ["usage by user", `/usage?by=user&${range(story.month)}`, /traces/i, emails],
  ["usage by hour", `/usage?by=project&per=hour&${range(yesterday)}`, /traces per hour/i],
  ["teams", `/owners?month=${month}`, /Cost by team/, [person]],
  ["what nobody owns", `/owners?month=${month}&owner=(unallocated)`, /Everything has a team|Suggested rule/],
  ["alerts", "/alerts", /Alert routes/],
  ["differences", "/differences", /export/i, [first]],
  ["bills", "/months", /Bills by month/],
  ["invoices", "/invoices", /No invoice is stored/],
  ["the form of an invoice", "/invoices/new", /Only what the file does not say/],
  ["a closed month", `/months/${month}`, /closed/i, [first]],
  ["the timeline", "/timeline", /Month closed/, [`${person}, on a page`]],
];

export const SCREENS = ROWS.map(([name, path, says, names]) => ({ name, path, says, names }));
