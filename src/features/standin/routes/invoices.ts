import { Refusal } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import type { Route } from "../http/route.ts";

/** The platform has invoices on a page and in mails alone, so this path is our own. */
export function invoices({ invoices }: World): Route[] {
  return [
    {
      method: "GET",
      path: "/__standin/invoices/:month",
      needs: "nothing",
      isOwn: true,
      handle({ params: { month = "" } }) {
        if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(month))
          throw new Refusal(404, { detail: "Give a month such as 2026-10" });
        return { status: 200, type: "application/pdf", body: invoices.issue(month) };
      },
    },
  ];
}
