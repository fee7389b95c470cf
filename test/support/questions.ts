import { readFileSync } from "node:fs";

const GUIDE = readFileSync(new URL("../../docs/bi.md", import.meta.url), "utf8");

/** The questions of docs/bi.md in SQL, by number. They are about October 2026. */
export const QUESTIONS: ReadonlyMap<number, string> = new Map(
  [...GUIDE.matchAll(/^\*\*(\d+)\. .*?```sql\n(.*?);\n```/gms)].map(([, number, text]) => [
    Number(number),
    text ?? "",
  ]),
);
