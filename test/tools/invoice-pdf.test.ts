import { PDFDocument, StandardFonts } from "pdf-lib";
import { expect, test } from "vitest";
import { readInvoices } from "../../src/features/invoice/read-file.ts";
import { PICTURE_LINES, PICTURE_TABLE, shortLines } from "../support/invoices.ts";

test("an invoice that pdf-lib wrote, with compressed objects and numbers aligned right, is read tier by tier", async () => {
  const document = await PDFDocument.create();
  const font = await document.embedFont(StandardFonts.TimesRoman);
  const page = document.addPage([612, 792]);
  for (const [n, cells] of PICTURE_TABLE.entries()) {
    for (const [column, text] of cells.entries()) {
      const right = [0, 390, 480, 570][column] ?? 0;
      const x =
        column === 0 || cells.length < 4 ? 40 + 120 * column : right - font.widthOfTextAtSize(text, 10);
      if (text !== "") page.drawText(text, { x, y: 740 - 18 * n, size: 10, font });
    }
  }
  const bytes = await document.save();
  const { form, readings } = await readInvoices(
    { name: "pdf-lib.pdf", bytes },
    { fields: {}, workspaces: [] },
  );
  expect([form, shortLines(readings[0]?.invoice ?? { lines: [] }), readings[0]?.differences]).toEqual([
    "pdf",
    PICTURE_LINES,
    [],
  ]);
});
