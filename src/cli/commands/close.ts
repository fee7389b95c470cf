import type { Command } from "commander";
import type { AskedClose } from "../../domain/close/check-list.ts";
import { describeProviderMonth } from "../../domain/provider/month-sentence.ts";
import { type ClosedSource, closeSources, isAsAsked } from "../../pipeline/close/close.ts";
import { describeOpen } from "../report/open-days.ts";
import { EXIT, firstExit } from "../session/exit.ts";
import { commandActor } from "../session/operator.ts";
import { inSession, type Session } from "../session/session.ts";

interface CloseOptions {
  readonly acceptDisagreements?: boolean;
  readonly without?: readonly string[];
  readonly expect?: readonly string[];
}

export function define(command: Command): void {
  command
    .argument("<month>")
    .option(
      "--without <workspace...>",
      "leave out this workspace: its totals are not in the close",
      (id: string, before: string[] | undefined) => [...(before ?? []), id.toLowerCase()],
    )
    .option(
      "--accept-disagreements",
      "close although the platform contradicts itself on some days; they stay listed",
    )
    .option(
      "--expect <digest...>",
      "close only what has one of these digests, which close without it and the page of the month show",
    )
    .action(inSession(run));
}

async function run(session: Session, options: CloseOptions, text: string): Promise<number> {
  const { settleAfterMs, redisUrl, sources } = session.config;
  const { month, closed } = await closeSources(await session.migratedStore(), {
    ...{ month: text, slugs: sources.map(({ slug }) => slug), settleAfterMs, by: commandActor() },
    ...{ without: options.without ?? [], acceptDisagreements: options.acceptDisagreements ?? false },
    ...(options.expect === undefined ? {} : { expectedDigests: options.expect }),
  });
  const digests = closed.flatMap(({ result }) =>
    result.state === "open" && result.digest !== null ? [result.digest] : [],
  );
  session.output.data(
    closed.map(({ source, result, provider }) => ({ source, ...result, provider })),
    () => {
      const asked = { month, settleAfterMs, hasRedis: redisUrl !== undefined, digests };
      return closed
        .map((one) => {
          const said = describeClose(one, { ...asked, without: one.asked });
          return `${said}\n${one.source}, ${month.name}: ${describeProviderMonth(one.provider)}`;
        })
        .join("\n");
    },
  );
  return firstExit(closed.map((one) => (isAsAsked(one) ? EXIT.done : EXIT.mismatch)));
}

function describeClose(one: ClosedSource, asked: AskedClose): string {
  const { source, result } = one;
  const what = `${source}, ${asked.month.name}`;
  if (result.state === "open") return describeOpen(what, result.open, asked);
  const without = result.without.length === 0 ? "" : `, without ${result.without.join(", ")}`;
  if (result.state === "closed") {
    const accepted = result.accepted === 0 ? "" : `, ${result.accepted} disagreements accepted`;
    return `${what}: closed with ${result.traces.toLocaleString("en-US")} traces in ${result.totals} totals${accepted}${without}`;
  }
  const { adjusted, closedAt } = result;
  const line = `${what}: closed on ${closedAt}${without}; ${adjusted} totals were adjusted since (reporting.usage_month_close)`;
  return isAsAsked(one)
    ? line
    : `${line}\n${what}: a month closes once. Which workspaces are left out cannot be changed now.`;
}
