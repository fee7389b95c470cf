import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { readInvoices } from "../../src/features/invoice/read-file.ts";
import { startChromium } from "../support/browser/chromium.ts";
import { PICTURE_LINES, pictureHtml, shortLines } from "../support/invoices.ts";

test("an invoice that a browser printed is read tier by tier, with wrapped texts and over two pages", async () => {
  const server = await startChromium();
  const browser = await chromium.connect(server.wsEndpoint());
  try {
    const page = await browser.newPage();
    for (const height of ["297mm", "110mm"]) {
      await page.setContent(pictureHtml());
      const bytes = await page.pdf({
        width: "210mm",
        height,
        displayHeaderFooter: true,
        headerTemplate: "<span></span>",
        footerTemplate: PAGE_NUMBERS,
      });
      const { form, readings } = await readInvoices(
        { name: "printed.pdf", bytes },
        { fields: {}, workspaces: [] },
      );
      const [reading] = readings;
      expect([form, shortLines(reading?.invoice ?? { lines: [] }), reading?.differences]).toEqual([
        "pdf",
        PICTURE_LINES,
        [],
      ]);
      expect(reading?.invoice).toMatchObject({
        number: "INV-1",
        issuer: "LangChain, Inc.",
        account: "Acme",
        issuedOn: "2026-11-01",
        currency: "USD",
      });
    }
  } finally {
    await browser.close();
    await server.close();
  }
});

const PAGE_NUMBERS =
  '<span style="font-size: 8px; margin-left: 40px">Page <span class="pageNumber"></span> of <span class="totalPages"></span></span>';
