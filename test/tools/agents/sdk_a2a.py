"""A conversation with a2a-sdk, 0.3 or 1.3: prints what the client returns, without ids and times."""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

try:
    from a2a.helpers import new_text_message
    from a2a.types import GetTaskRequest, Role, SendMessageRequest
    from google.protobuf.json_format import MessageToDict

    def message(text, context):
        return SendMessageRequest(message=new_text_message(text, context_id=context, role=Role.ROLE_USER))

    def query(task):
        return GetTaskRequest(id=task)

    plain = MessageToDict
except ImportError:
    from a2a.client.helpers import create_text_message_object
    from a2a.types import TaskQueryParams

    def message(text, context):
        one = create_text_message_object(content=text)
        one.context_id = context
        return one

    def query(task):
        return TaskQueryParams(id=task)

    def plain(event):
        if isinstance(event, tuple):
            return {"task": plain(event[0]), "update": event[1] and plain(event[1])}
        return event.model_dump(mode="json", by_alias=True, exclude_none=True)


URL, KEY = sys.argv[1:3]
CARD = ".well-known/agent-card.json?assistant_id=fe096781-5601-53d2-b2f6-0d3403f7e9ca"


def show(name, value):
    print(name, json.dumps(value, sort_keys=True), flush=True)


def said(value):
    """Each state and text of an event, in order."""
    if isinstance(value, dict):
        return [one for key in sorted(value) for one in ([value[key]] if key in ("state", "text", "final") else said(value[key]))]
    return [one for part in value for one in said(part)] if isinstance(value, list) else []


def context_of(value):
    if isinstance(value, dict):
        return value.get("contextId") or next((one for one in map(context_of, value.values()) if one), None)
    return None


async def main():
    async with httpx.AsyncClient(headers={"x-api-key": KEY}, timeout=30) as http:
        card = await A2ACardResolver(http, URL).get_agent_card(relative_card_path=CARD)
        show("card", [card.name, card.description, [skill.name for skill in card.skills]])
        for streaming in (True, False):
            # Server 0.4.21 refuses wildcards. A stream has its own header.
            if not streaming:
                http.headers["accept"] = "application/json"
            client = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)
            context = "4340c6dc-954e-4ef4-a1e8-f73cc182601" + str(int(streaming))
            for text in ("hello", "two", "fail", "question"):
                name = f"{text}, streaming {streaming}"
                try:
                    events = [plain(one) async for one in client.send_message(message(text, context))]
                    show(name, [said(one) for one in events])
                    show("context", [context_of(one) == context for one in events])
                except Exception as error:
                    show(name, type(error).__name__)
        try:
            show("unknown task", said(plain(await client.get_task(query("00000000-0000-4000-8000-000000000000")))))
        except Exception as error:
            show("unknown task", type(error).__name__)


asyncio.run(main())
