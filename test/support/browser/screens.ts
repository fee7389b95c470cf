import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { now } from "../clock.ts";
import { HOSTILE } from "../hostile.ts";
import { iso, storyOf } from "../story.ts";

/** A screen in one of its forms, of the database of story.ts. */
interface Screen {
  readonly name: string;
  /** `WORKSPACE` stands for the id of its first workspace. */
  readonly path: string;
  readonly says: RegExp;
  /** Names from outside that it shows. */
  readonly names?: readonly string[];
}

export const story = storyOf(now());
const month = iso(story.month.start).slice(0, 7);
const range = (of: { start: number; end: number }) => `from=${iso(of.start)}&to=${iso(of.end)}`;
const yesterday = { start: story.today - DAY_MS, end: story.today };
const { workspaces, projects, emails, keys, person } = HOSTILE;
const [first] = workspaces;

export const SCREENS: readonly Screen[] = [
  { name: "the overview", path: "/", says: /final and proved until/i },
  {
    name: "coverage by month",
    path: "/coverage?open=WORKSPACE",
    says: /Hide 4 dimensions/,
    names: workspaces,
  },
  {
    name: "coverage by day",
    path: `/coverage?stride=day&${range(story.month)}`,
    says: /Next gap/,
    names: workspaces,
  },
  {
    name: "coverage by hour",
    path: `/coverage?stride=hour&${range(yesterday)}`,
    says: /by hour/,
    names: workspaces,
  },
  {
    name: "coverage of days by hour, of one workspace",
    path: `/coverage?stride=hour&from=${iso(story.today - 7 * DAY_MS)}&to=${iso(story.today)}&workspace=WORKSPACE&gaps=1`,
    says: /by day/,
    names: [first],
  },
  {
    name: "a loaded cell",
    path: `/cell?source=default&workspace=WORKSPACE&stride=day&group_by=project&${range(story.restated)}`,
    says: /restatements of these days/,
    names: [first],
  },
  {
    name: "a failed cell",
    path: `/cell?source=default&workspace=WORKSPACE&stride=day&group_by=project&${range(story.failed)}`,
    says: /request_refused/,
    names: [first],
  },
  {
    name: "a cell of an hour",
    path: `/cell?source=default&workspace=WORKSPACE&stride=hour&from=${iso(yesterday.start)}T05:00&to=${iso(yesterday.start)}T06:00`,
    says: /05:00/,
    names: [first],
  },
  { name: "backfills", path: "/backfills", says: /waiting|running/i },
  { name: "a backfill", path: "/backfills/1", says: /backfill/i, names: workspaces },
  {
    name: "a new backfill",
    path: `/backfills/new?stride=day&${range(story.gap)}`,
    says: /windows|requests/i,
    names: workspaces,
  },
  {
    name: "usage by workspace",
    path: `/usage?by=workspace&${range(story.month)}`,
    says: /traces/i,
    names: workspaces,
  },
  {
    name: "usage by project",
    path: `/usage?by=project&${range(story.month)}`,
    says: /traces/i,
    names: projects,
  },
  { name: "usage by key", path: `/usage?by=api_key&${range(story.month)}`, says: /traces/i, names: keys },
  {
    name: "usage by user",
    path: `/usage?by=user&${range(story.month)}`,
    says: /traces/i,
    names: emails,
  },
  {
    name: "usage by hour",
    path: `/usage?by=project&per=hour&${range(yesterday)}`,
    says: /traces per hour/i,
  },
  { name: "owners", path: `/owners?month=${month}`, says: /Who pays for/, names: [person] },
  {
    name: "what nobody owns",
    path: `/owners?month=${month}&owner=(unallocated)`,
    says: /A rule that would give it to a team/,
  },
  { name: "alerts", path: "/alerts", says: /Open incidents/ },
  { name: "differences", path: "/differences", says: /export/i, names: [first] },
  { name: "months", path: "/months", says: new RegExp(month) },
  { name: "a closed month", path: `/months/${month}`, says: /closed/i, names: [first] },
  { name: "the timeline", path: "/timeline", says: /month closed/, names: [`${person}, on a page`] },
];
