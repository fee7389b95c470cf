/** A small writer of PDF: text in Helvetica on pages of A4. The file is ASCII, so its offsets count characters. */

export interface PdfText {
  readonly text: string;
  /** Points from the left edge to the beginning of the text, or to its end if it is aligned right. */
  readonly x: number;
  /** Points from the lower edge to the baseline. */
  readonly y: number;
  readonly size?: number;
  readonly alignsRight?: boolean;
}

export const PAGE = { width: 595, height: 842 } as const;
const SIZE = 9;

export function pdfOf(pages: readonly (readonly PdfText[])[]): string {
  const first = 4;
  const kids = pages.map((_, n) => `${first + 2 * n} 0 R`).join(" ");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} /MediaBox [0 0 ${PAGE.width} ${PAGE.height}] >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ...pages.flatMap((texts, n) => {
      const content = texts.map(shown).join("\n");
      return [
        `<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents ${first + 2 * n + 1} 0 R >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ];
    }),
  ];
  let file = "%PDF-1.7\n";
  const offsets = objects.map((object, n) => {
    const offset = file.length;
    file += `${n + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(offset).padStart(10, "0")} 00000 n \n`;
  });
  const size = objects.length + 1;
  return `${file}xref\n0 ${size}\n0000000000 65535 f \n${offsets.join("")}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`;
}

function shown({ text, x, y, size = SIZE, alignsRight = false }: PdfText): string {
  const left = alignsRight ? x - widthOf(text) * size : x;
  return `BT /F1 ${size} Tf ${left.toFixed(2)} ${y} Td (${[...text].map(encoded).join("")}) Tj ET`;
}

/** Widths of Helvetica for what is aligned right: numbers, and heads, which need not be exact. */
function widthOf(text: string): number {
  return [...text].reduce(
    (sum, one) => sum + (/[.,:'’ ]/.test(one) ? 0.278 : one === "-" ? 0.333 : 0.556),
    0,
  );
}

/** WinAnsiEncoding: Latin-1, and a dash and the euro at places of their own. */
function encoded(character: string): string {
  const code = { "–": 0x96, "€": 0x80 }[character] ?? character.codePointAt(0) ?? 0;
  if (/[()\\]/.test(character)) return `\\${character}`;
  if (code >= 0x20 && code < 0x7f) return character;
  return code > 0xff || code < 0x80 ? "?" : `\\${code.toString(8)}`;
}
