import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { flesch } from "flesch";
import { syllable } from "syllable";

/** `npm run reading-ease`: the Flesch reading ease of the documents that a new user needs. The aim is at least 55 for each. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DOCUMENTS = [
  "README.md",
  ...["install", "operate", "costs", "owners", "errors"].map((name) => `docs/${name}.md`),
];

const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });
const WORDS = new Intl.Segmenter("en", { granularity: "word" });

for (const name of DOCUMENTS) {
  const count = { sentence: 0, word: 0, syllable: 0 };
  for (const sentence of proseOf(readFileSync(`${ROOT}${name}`, "utf8")).flatMap((part) =>
    segments(SENTENCES, part),
  )) {
    const words = segments(WORDS, sentence);
    if (words.length === 0) continue;
    count.sentence += 1;
    count.word += words.length;
    count.syllable += words.reduce((sum, word) => sum + syllable(word), 0);
  }
  const sentenceLength = (count.word / count.sentence).toFixed(1);
  process.stdout.write(`${name}: ${flesch(count).toFixed(1)}, ${sentenceLength} words a sentence\n`);
}

function segments(segmenter: Intl.Segmenter, text: string): string[] {
  return [...segmenter.segment(text)]
    .filter(({ isWordLike }) => isWordLike !== false)
    .map(({ segment }) => segment);
}

/**
 * The paragraphs, items, headings and table rows of a Markdown text, without blocks of code, addresses and marks. A row counts
 * as one sentence or more, and names in code count with all their syllables, so the result is rather too low than too high.
 */
function proseOf(markdown: string): string[] {
  return markdown
    .replaceAll(/^```.*?^```$/gms, "")
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll(/^\|[-| :]+\|$/gm, "")
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/^ *(?:#+|[-*]|\d+\.) /gm, "\n")
    .replaceAll(/^\|(.*)\|$/gm, (_, row: string) => `\n${row.replaceAll("|", ", ")}\n`)
    .replaceAll(/[`_]/g, " ")
    .replaceAll("**", "")
    .split(/\n\s*\n/)
    .map((part) => part.replaceAll(/\s+/g, " "));
}
