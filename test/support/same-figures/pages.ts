import { parseHTML } from "linkedom";
import { steady } from "./program.ts";

const MOST_ALIKE = 3;

export async function findPages(base: string): Promise<string[]> {
  const paths = ["/"];
  const alike = new Map<string, number>();
  for (const path of paths) {
    const { document } = await readPage(base, path);
    for (const link of document.querySelectorAll("a[href]")) {
      const target = new URL(link.getAttribute("href") ?? "", new URL(path, base));
      const next = `${target.pathname}${target.search}`;
      const { pathname, searchParams } = target;
      const kind = [pathname, searchParams.get("source"), ...new Set([...searchParams.keys()].sort())].join(
        " ",
      );
      const count = alike.get(kind) ?? 0;
      if (target.origin !== new URL(base).origin || paths.includes(next) || count >= MOST_ALIKE) continue;
      alike.set(kind, count + 1);
      paths.push(next);
    }
  }
  return paths;
}

/**
 * The figures of a page: a line for each row of a table, and for each number outside of tables. Words are left out, so a label may
 * change.
 */
export async function readFigures(base: string, path: string): Promise<string[]> {
  const { status, document } = await readPage(base, path);
  return [`status ${status}`, ...figuresOf(document)];
}

async function readPage(base: string, path: string) {
  const response = await fetch(new URL(path, base), { headers: { accept: "text/html" } });
  const text = await response.text();
  const isPage = (response.headers.get("content-type") ?? "").includes("text/html");
  return { status: response.status, document: parseHTML(isPage ? text : "<html></html>").document };
}

const NUMBERS = /(?<![\w.,:-])[-+−]?\d[\d,.\u202f\u00a0]*\d?\s?%?(?![\w:])/g;

type Document = ReturnType<typeof parseHTML>["document"];

function figuresOf(document: Document): string[] {
  for (const unread of document.querySelectorAll("script, style, nav, template")) unread.remove();
  const lines: string[] = [];
  for (const table of document.querySelectorAll("main table")) {
    const heads = [...table.querySelectorAll("thead th")].map(textOf);
    for (const row of table.querySelectorAll("tr")) {
      const cells = [...row.querySelectorAll("th, td")].map(textOf);
      const [head] = cells;
      const numbers = cells.flatMap((cell, i) =>
        i === 0 || heads[i] === "Fetch" ? [] : (cell.match(NUMBERS) ?? []),
      );
      if (numbers.length > 0) lines.push(`row ${head}: ${numbers.map(trim).join(" | ")}`);
    }
    table.remove();
  }
  const rest = textOf(document.querySelector("main")).match(NUMBERS) ?? [];
  return [...lines.sort(), ...rest.map((number) => `text ${trim(number)}`).sort()];
}

interface Readable {
  readonly nodeType: number;
  readonly textContent: string | null;
  readonly childNodes: Iterable<Readable>;
}

function textOf(element: Readable | null): string {
  const pieces: string[] = [];
  const walk = (node: Readable): void => {
    if (node.nodeType === 3) pieces.push(node.textContent ?? "");
    for (const child of node.childNodes) walk(child);
  };
  if (element !== null) walk(element);
  return steady(pieces.join(" ").replaceAll(/\s+/g, " ").trim());
}

const trim = (number: string) => number.replaceAll(/[\s\u202f\u00a0]/g, "").replace(/[.,]$/, "");
