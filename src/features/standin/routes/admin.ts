import { faultOptionsSchema } from "../engine/faults.ts";
import { checked } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { json, type Route } from "../http/route.ts";

export function admin({ faults }: World): Route[] {
  const own = { path: "/__standin/faults", needs: "nothing", isOwn: true } as const;
  return [
    {
      ...own,
      method: "POST",
      handle({ body }) {
        faults.set(checked(faultOptionsSchema, body));
        return json({ ok: true });
      },
    },
    {
      ...own,
      method: "DELETE",
      handle() {
        faults.clear();
        return json({ ok: true });
      },
    },
  ];
}
