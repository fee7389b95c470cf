import { strFromU8, unzipSync } from "fflate";

const DAY_MS = 86_400_000;
const EPOCH_MS = Date.UTC(1899, 11, 30);

export interface SheetCell {
  readonly type: "text" | "number" | "date";
  readonly value: string;
  readonly format: string | undefined;
}

export interface Sheet {
  readonly name: string;
  readonly rows: readonly (readonly (SheetCell | undefined)[])[];
}

export function readWorkbook(file: Uint8Array): Sheet[] {
  const files = Object.fromEntries(
    Object.entries(unzipSync(file)).map(([path, content]) => [path, strFromU8(content)]),
  );
  const of = (path: string) => files[path] ?? "";
  if (Object.values(files).some((xml) => /<f[ >]/.test(xml))) throw new Error("the workbook holds a formula");
  const texts = elements(of("xl/sharedStrings.xml"), "si").map(({ inner }) =>
    textOf(elements(inner, "t")[0]?.inner ?? ""),
  );
  const styles = of("xl/styles.xml");
  const formats = new Map(
    elements(styles, "numFmt").map(({ attributes }) => [
      attributes.numFmtId,
      textOf(attributes.formatCode ?? ""),
    ]),
  );
  const cellFormats = elements(elements(styles, "cellXfs")[0]?.inner ?? "", "xf").map(({ attributes }) =>
    formats.get(attributes.numFmtId),
  );
  const cellOf = ({ attributes, inner }: Element): SheetCell | undefined => {
    const value = elements(inner, "v")[0]?.inner;
    if (value === undefined) return undefined;
    const format = cellFormats[Number(attributes.s ?? 0)];
    if (attributes.t === "s") {
      const text = texts[Number(value)];
      if (text === undefined) throw new Error(`there is no text ${value}`);
      return { type: "text", value: text, format };
    }
    if (attributes.t !== undefined) throw new Error(`a cell of the type ${attributes.t}`);
    if (format?.includes("yy") !== true) return { type: "number", value, format };
    // Excel rounds to a millisecond too.
    const at = new Date(EPOCH_MS + Math.round(Number(value) * DAY_MS));
    return { type: "date", value: at.toISOString(), format };
  };
  return elements(of("xl/workbook.xml"), "sheet").map(({ attributes }, n) => {
    const xml = of(`xl/worksheets/sheet${n + 1}.xml`);
    const rows = elements(xml, "row").map(({ inner }) => {
      const row: (SheetCell | undefined)[] = [];
      for (const cell of elements(inner, "c")) row[columnOf(cell.attributes.r ?? "")] = cellOf(cell);
      return Array.from(row);
    });
    return { name: textOf(attributes.name ?? ""), rows };
  });
}

interface Element {
  readonly attributes: Readonly<Record<string, string>>;
  readonly inner: string;
}

function elements(xml: string, name: string): Element[] {
  const found = xml.matchAll(new RegExp(`<${name}(?: ([^>]*?))?(?:/>|>([\\s\\S]*?)</${name}>)`, "g"));
  return [...found].map(([, given = "", inner = ""]) => ({
    attributes: Object.fromEntries(
      [...given.matchAll(/([\w:]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]),
    ),
    inner,
  }));
}

function columnOf(address: string): number {
  const letters = address.replace(/\d/g, "");
  return [...letters].reduce((column, letter) => column * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function textOf(xml: string): string {
  return xml
    .replace(/\r\n?/g, "\n")
    .replace(/&(\w+);/g, (whole, entity: string) => ENTITIES[entity] ?? whole)
    .replace(/_x([\dA-Fa-f]{4})_/g, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)));
}
