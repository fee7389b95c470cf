import type { Command } from "commander";
import type { SandboxTemplate } from "../../../platform/agents/control-plane.ts";
import { printableLine } from "../../../printable.ts";
import { table } from "../../report/output.ts";
import { openControlPlane, type SourceOption, withSource } from "../../session/platform-access.ts";
import { inSession, type Session } from "../../session/session.ts";

export function addTemplateCommands(platform: Command): void {
  const template = platform.command("template").description("show and rename sandbox templates");
  withSource(template.command("get <name>"))
    .description("show one template")
    .action(
      inSession(async (session: Session, options: SourceOption, name: string) => {
        const found = await openControlPlane(session, options).template(name, session);
        session.output.data(found, describeTemplate);
      }),
    );
  withSource(template.command("rename <name> <new-name>"))
    .description("rename a template; the platform allows no other change")
    .action(
      inSession(async (session: Session, options: SourceOption, name: string, to: string) => {
        const renamed = await openControlPlane(session, options).renameTemplate({ name, to }, session);
        session.output.data(renamed, describeTemplate);
      }),
    );
}

function describeTemplate(template: SandboxTemplate): string {
  const rules = (template.proxyConfig?.rules as unknown[] | undefined)?.length ?? 0;
  const limits = Object.entries(template.resources)
    .filter(([, value]) => value !== null)
    .map(([what, value]) => `${what} ${printableLine(value)}`);
  return table(
    ["name", "image", "limits", "volumes", "proxy rules", "id"],
    [[template.name, template.image, limits.join(", "), template.volumeMounts.length, rules, template.id]],
  );
}
