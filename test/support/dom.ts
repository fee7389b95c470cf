import { parseHTML } from "linkedom";

/** What is used of the DOM here: TypeScript's own library of it would add a browser's globals to all files. */
interface Node {
  readonly nodeType: number;
  readonly textContent: string | null;
}
interface Element extends Node {
  readonly tagName: string;
  readonly childNodes: Iterable<Node>;
  readonly nextElementSibling: Element | null;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
  closest(selector: string): Element | null;
  getAttribute(name: string): string | null;
  hasAttribute(name: string): boolean;
}
interface Document extends Element {
  readonly body: Element | null;
  readonly documentElement: Element;
}

export function readPage(html: string) {
  const { document }: { document: Document } = parseHTML(html);
  const main = document.querySelector("main") ?? document.body ?? document.documentElement;
  const all = (selector: string): Element[] => [...main.querySelectorAll(selector)];
  const within = (selector: string): Element[] => [...document.querySelectorAll(selector)];
  const named = (selector: string, name: string | RegExp): Element => {
    const found = all(selector).find((one) => matches(nameOf(one), name));
    if (found !== undefined) return found;
    const names = all(selector).map(nameOf).join(", ");
    throw new Error(`The page has no ${selector} ${name}. It has: ${names || "none"}.`);
  };
  const links = (name: string | RegExp = /^/) => all("a[href]").filter((one) => matches(nameOf(one), name));
  return {
    /** All that is read, but for what is drawn. */
    text: textOf(main),
    headings: all("h2, h3").map(textOf),
    notices: all(".notice").map(textOf),
    facts: Object.fromEntries(all("dt").map((dt) => [textOf(dt), textOf(dt.nextElementSibling)])),
    hasTable: (name: string | RegExp) => all("table").some((one) => matches(nameOf(one), name)),
    table: (name: string | RegExp): Record<string, string>[] => rowsOf(named("table", name)),
    caption: (name: string): string => textOf(named("table", name).querySelector("caption")),
    exact: (name: string): string[] =>
      [...named("table", name).querySelectorAll("tfoot tr:last-child .number[title]")].map((one) =>
        (one.getAttribute("title") ?? "").replaceAll(",", ""),
      ),
    link: (name: string | RegExp): string => named("a[href]", name).getAttribute("href") ?? "",
    links: (name?: string | RegExp): string[] => links(name).map((one) => one.getAttribute("href") ?? ""),
    /** Links by their titles, which say what a sign means. */
    titled: (title: RegExp): { title: string; to: string }[] =>
      all("a[title]")
        .map((one) => ({ title: one.getAttribute("title") ?? "", to: one.getAttribute("href") ?? "" }))
        .filter((one) => title.test(one.title)),
    buttons: all("button").map(textOf),
    form: (button: string | RegExp): Fields => fieldsOf(named("button", button).closest("form")),
    field: (label: string) => fieldIn(named("label", label)),
    bars: all("svg.chart .hit > title").map((one) => one.textContent ?? ""),
    /** Items of lists in the section with this heading. */
    items: (heading: string | RegExp): string[] =>
      [...(named("section:has(h2) h2", heading).closest("section")?.querySelectorAll("li") ?? [])].map(
        textOf,
      ),
    folded: all("details:not([open]) > summary > h2").map(textOf),
    screens: within("nav[aria-label=Pages] a").map((one) => one.getAttribute("href") ?? ""),
    current: within("nav[aria-label=Pages] a[aria-current=page]")[0]?.getAttribute("href") ?? undefined,
  };
}

export type Fields = Record<string, string | string[]>;

function matches(text: string, name: string | RegExp): boolean {
  return typeof name === "string" ? text === name : name.test(text);
}

function textOf(element: Element | null): string {
  if (element === null) return "";
  const read = (node: Node): string => {
    if (node.nodeType === 3) return node.textContent ?? "";
    if (node.nodeType !== 1) return "";
    const one = node as Element;
    if (one.getAttribute("aria-hidden") === "true" || /^(script|style|svg)$/i.test(one.tagName)) return "";
    return ` ${[...one.childNodes].map(read).join("")} `;
  };
  return [...element.childNodes]
    .map(read)
    .join("")
    .replace(/\s+/g, " ")
    .replace(/ (?=[.,:;)])/g, "")
    .trim();
}

function nameOf(element: Element): string {
  const region = element.tagName === "TABLE" ? element.closest("[role=region]") : element;
  const label = region?.getAttribute("aria-label");
  if (label) return label;
  const by = region?.getAttribute("aria-labelledby");
  if (by && element.tagName === "TABLE") return textOf(element.querySelector(`#${by}`));
  if (element.tagName === "LABEL")
    return textOf(element)
      .replace(textOf(element.querySelector("select")), "")
      .trim();
  return textOf(element.tagName === "TABLE" ? element.querySelector("caption") : element);
}

function rowsOf(table: Element): Record<string, string>[] {
  const heads = [...table.querySelectorAll("thead th")].map(textOf);
  return [...table.querySelectorAll("tbody tr, tfoot tr")].map((row) => {
    let column = 0;
    const cells = [...row.querySelectorAll("th, td")].map((cell): [string, string] => {
      const head = heads[column] ?? String(column);
      column += Number(cell.getAttribute("colspan") ?? 1);
      return [head, textOf(cell)];
    });
    return Object.fromEntries(cells);
  });
}

function fieldIn(label: Element) {
  const field = label.querySelector("input, select, textarea");
  const options = [...(field?.querySelectorAll("option") ?? [])];
  const chosen = options.find((one) => one.hasAttribute("selected"));
  return {
    name: field?.getAttribute("name") ?? "",
    value: chosen?.getAttribute("value") ?? field?.getAttribute("value") ?? "",
    options: options.map((one) => one.getAttribute("value") ?? ""),
  };
}

function fieldsOf(form: Element | null): Fields {
  const fields: Fields = {};
  for (const field of form?.querySelectorAll("input[name], select[name]") ?? []) {
    const type = field.getAttribute("type") ?? "text";
    if (/^(checkbox|radio)$/.test(type) && !field.hasAttribute("checked")) continue;
    const chosen = field.querySelector("option[selected]") ?? field.querySelector("option");
    const name = field.getAttribute("name") ?? "";
    const value = (chosen ?? field).getAttribute("value") ?? "";
    const before = fields[name];
    fields[name] = before === undefined ? value : [before, value].flat();
  }
  return fields;
}

/** The number that a text shows, such as `at least 1,234 so far`. */
export function numberIn(text = ""): number {
  return Number(
    (/[−-]?[\d,]+(\.\d+)?/.exec(text)?.[0] ?? "").replace("−", "-").replaceAll(",", "") || Number.NaN,
  );
}
