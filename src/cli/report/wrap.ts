import { asTyped } from "../../typed.ts";

/** Columns of text for people: a table of a terminal that nobody has widened. */
const COLUMNS = 80;

/** Text behind a label, its commands as they can be typed, wrapped between words; further lines begin below the text. A longer word is cut. */
export function wrapped(label: string, text: string, columns = COLUMNS): string {
  const room = columns - label.length;
  const lines: string[] = [];
  const words = asTyped(text)
    .split(" ")
    .flatMap((word) => word.match(new RegExp(`.{1,${room}}`, "gu")) ?? []);
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= room)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return label + lines.join(`\n${" ".repeat(label.length)}`);
}
