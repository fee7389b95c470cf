import { readFileSync } from "node:fs";

const DEPLOY = new URL("../../../docs/deploy/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, DEPLOY), "utf8");

interface Target {
  readonly rawSql?: string;
  readonly expr?: string;
  readonly format?: string;
}
interface Panel {
  readonly title: string;
  readonly fieldConfig: { readonly overrides: readonly { readonly matcher: { readonly options: string } }[] };
  readonly options: object;
  readonly targets?: readonly Target[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly target: Target }[] };
}

const dashboard = JSON.parse(read("monitoring/grafana/dashboards/usage.json")) as Dashboard;

const targets = dashboard.panels.flatMap((panel) =>
  (panel.targets ?? []).map((target) => ({ title: panel.title, panel, ...target })),
);

export const queries: readonly { title: string; rawSql: string; format: string; panel?: Panel }[] = [
  ...targets.flatMap(({ title, rawSql, format = "table", panel }) =>
    rawSql === undefined ? [] : [{ title, rawSql, format, panel }],
  ),
  ...dashboard.annotations.list.map(({ name, target }) => ({
    title: `annotation ${name}`,
    rawSql: target.rawSql as string,
    format: "annotation",
  })),
  ...dashboard.templating.list.map(({ name, query }) => ({
    title: `variable ${name}`,
    rawSql: query,
    format: "variable",
  })),
];

export interface Shown {
  readonly from: string;
  readonly to: string;
  readonly variables: Readonly<Record<string, string>>;
}

export function expand(text: string, { from, to, variables }: Shown): string {
  const expanded = text
    .replaceAll(/\$__timeFilter\(([^()]+)\)/g, `$1 BETWEEN '${from}' AND '${to}'`)
    .replaceAll("$__timeFrom()", `'${from}'`)
    .replaceAll("$__timeTo()", `'${to}'`)
    .replaceAll(/\$\{(\w+):sqlstring\}/g, (whole, name: string) => variables[name] ?? whole);
  const unknown = /\$[\w{]+/.exec(expanded)?.[0];
  if (unknown !== undefined) throw new Error(`${unknown} is neither a known macro nor a variable`);
  return expanded;
}
