import { Secret } from "../../config/secret.ts";
import { openReceivers } from "./receivers.ts";

/** Of a message on a terminal. */
const LONGEST = 160;

interface DemoReceivers {
  /** The settings that the routes of owners.yaml name. */
  readonly settings: Readonly<Record<string, string>>;
  readonly secrets: ReadonlyMap<string, Secret>;
  close(): Promise<void>;
}

/** Receivers of the demo's routes, which say what they got. */
export async function openDemoReceivers(say: (line: string) => void): Promise<DemoReceivers> {
  const { webUrl, smtpPort, close } = await openReceivers(({ path, body }) => {
    const line = gist(path, body);
    say(`${path.replace("/", "")} got: ${line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line}`);
    return "well";
  });
  const settings = {
    USAGE_ROUTE_WEBHOOK: `${webUrl}/webhook`,
    USAGE_ROUTE_SLACK: `${webUrl}/slack`,
    USAGE_ROUTE_PAGERDUTY: `${webUrl.replace("//", "//demo-integration-key@")}/pagerduty`,
    USAGE_ROUTE_MAIL: `smtp://127.0.0.1:${smtpPort}`,
  };
  const secrets = new Map(Object.entries(settings).map(([name, value]) => [name, new Secret(value)]));
  return { settings, secrets, close };
}

/** The first line of what a person would read. */
function gist(path: string, body: string): string {
  if (path === "mail") return /^Subject: (.*(?:\n .*)*)/m.exec(body)?.[1]?.replaceAll("\n", "") ?? "";
  const { text = "", blocks, payload, event_action: action, dedup_key: key } = JSON.parse(body);
  const all: string = blocks?.[0]?.text.text ?? payload?.summary ?? (text || `${action} ${key}`);
  return all.split("\n")[0] ?? "";
}
