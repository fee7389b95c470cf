import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Panel } from "./dashboard.ts";

const TYPES = new URL("./types/", import.meta.resolve("@grafana/schema").replace(/dist\/.*$/, "dist/"));
const panelTypes = (type: string) => `raw/composable/${type}/panelcfg/x/types.gen.d.ts`;

/**
 * Grafana's own types of a dashboard, each enum as the union of its values: a literal of JSON is no member of an enum. Returns files
 * by name: `dashboard.ts`, and one for each type of panel that Grafana describes.
 */
function grafanaTypes(types: readonly string[]): Record<string, string> {
  const files = { common: "common/common.gen.d.ts", dashboard: "raw/dashboard/x/types.gen.d.ts" };
  const all = [...Object.entries(files), ...types.map((type) => [type, panelTypes(type)] as const)];
  return Object.fromEntries(
    all.map(([name, path]) => [
      `${name}.ts`,
      withoutEnums(readFileSync(fileURLToPath(new URL(path, TYPES)), "utf8")),
    ]),
  );
}

function withoutEnums(text: string): string {
  const members = new Map<string, string>();
  const unions = text.replaceAll(
    /export declare enum (\w+) \{(.*?)\n\}/gs,
    (_, name: string, body: string) => {
      const values = [...body.matchAll(/(\w+) = ("[^"]*"|-?\d+)/g)];
      for (const [, member, value] of values) members.set(`${name}.${member}`, value as string);
      return `export type ${name} = ${values.map(([, , value]) => value).join(" | ")};`;
    },
  );
  return unions
    .replaceAll(/\b(\w+\.\w+)\b/g, (found) => members.get(found) ?? found)
    .replaceAll("'@grafana/schema'", "'./common.ts'");
}

/**
 * A program that the compiler accepts if the panels have the form that Grafana describes: known keys, and values of the right
 * type. It does not describe the fields of a data source's query.
 */
export function programOf(panels: readonly Panel[]): Record<string, string> {
  const types = [...new Set(panels.map(({ type }) => type))].filter((type) => type !== "row");
  const lines = ['import type { Panel, RowPanel } from "./dashboard.ts";'];
  const files = grafanaTypes(types);
  for (const type of types) lines.push(`import type * as ${type} from "./${type}.ts";`);
  for (const panel of panels) {
    const { id, type, options, fieldConfig } = panel;
    const name = type === "row" ? "RowPanel" : "Partial<Panel>";
    lines.push(`export const panel${id}: ${name} = ${JSON.stringify(panel)};`);
    if (files[`${type}.ts`]?.includes("interface Options"))
      lines.push(`export const options${id}: Partial<${type}.Options> = ${JSON.stringify(options)};`);
    const { custom } = fieldConfig?.defaults ?? {};
    if (custom !== undefined)
      lines.push(`export const custom${id}: Partial<${type}.FieldConfig> = ${JSON.stringify(custom)};`);
  }
  return { ...files, "program.ts": lines.join("\n") };
}
