import { describe, expect, it } from "vitest";
import { clientOf, rawServer, rejection, status } from "../http/raw-server.ts";

const MONTH = { start: Date.parse("2026-03-01"), end: Date.parse("2026-04-01") };
const ID = "0B2E6B5C-8A7E-4A5E-9C3A-3F6F3C0C1D2E";
const reading = (changed: object = {}) => ({
  customer_id: "c",
  billable_metric_id: "m",
  billable_metric_name: "LangSmith Traces (Base Charge)",
  start_timestamp: "2026-03-01T00:00:00Z",
  end_timestamp: "2026-04-01T00:00:00+00:00",
  value: 12,
  groups: { [ID]: 12 },
  ...changed,
});
const answering = async (body: unknown) => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const server = await rawServer(() => status("200 OK", text));
  return { server, client: clientOf(server.url) };
};

describe("The totals of the billing provider", () => {
  it("are read by metric and workspace; null is unknown and never zero, and unknown fields are ignored", async () => {
    const { server, client } = await answering([
      reading({ more: [{}] }),
      reading({
        billable_metric_id: "n",
        billable_metric_name: null,
        value: null,
        groups: { a: null, b: 0.5 },
      }),
      reading({ customer_id: undefined, billable_metric_id: "o", value: 0, groups: null }),
    ]);
    const read = await client.providerUsage(MONTH);
    expect(read[0]).toEqual({
      customerId: "c",
      metricId: "m",
      metricName: "LangSmith Traces (Base Charge)",
      ...MONTH,
      value: 12,
      workspaces: new Map([[ID.toLowerCase(), 12]]),
    });
    expect(read[1]).toMatchObject({
      metricName: null,
      value: null,
      workspaces: new Map([
        ["a", null],
        ["b", 0.5],
      ]),
    });
    expect(read[2]).toMatchObject({ customerId: null, value: 0, workspaces: new Map() });
    const target = new URL(server.requests[0]?.split(" ")[1] ?? "", "http://h");
    expect(target.pathname).toBe("/api/v1/orgs/current/billing/usage");
    expect([...target.searchParams]).toEqual([
      ["starting_on", "2026-03-01T00:00:00Z"],
      ["ending_before", "2026-04-01T00:00:00Z"],
      ["on_current_plan", "true"],
    ]);
  });

  it.each([
    ["a negative value", [reading({ value: -1 })], "0.value"],
    ["a value that is a text", [reading({ value: "12" })], "0.value"],
    ["a value beyond what can be counted", '[{"value":1e300}]', "0.start_timestamp"],
    ["no metric", [reading({ billable_metric_id: undefined })], "0.billable_metric_id"],
    ["no time", [reading({ start_timestamp: "soon" })], "0.start_timestamp"],
    ["an end before its start", [reading({ end_timestamp: "2026-02-01T00:00:00Z" })], "0.end_timestamp"],
    ["workspaces in a list", [reading({ groups: [1] })], "0.groups"],
    ["a negative amount of a workspace", [reading({ groups: { a: -1 } })], "0.groups"],
    ["a workspace twice", [reading({ groups: { [ID]: 1, [ID.toLowerCase()]: 1 } })], "0.groups"],
    ["the same total twice", [reading(), reading({ value: 13 })], "1"],
  ])("are refused by name with %s", async (_, body, location) => {
    const { client } = await answering(body);
    const error = await rejection(client.providerUsage(MONTH));
    expect(error).toMatchObject({ code: "response_invalid", retryable: false, locations: [location] });
  });

  it.each(["{}", '"x"', "[1]", "<html>", "null"])(
    "are refused as foreign if the response is %s",
    async (body) => {
      const { client } = await answering(body);
      expect(await rejection(client.providerUsage(MONTH))).toMatchObject({
        code: "response_invalid",
        locations: [],
      });
    },
  );
});
