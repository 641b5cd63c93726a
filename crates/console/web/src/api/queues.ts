// The Queue service, through the session: `/api/forward/queue/…`.

import { child, children, escape, parse, textAt } from "../lib/xml.ts";
import { call, getJson } from "./http.ts";

export interface QueueInfo {
  name: string;
  approximate_messages?: number | null;
}

export interface Message {
  id: string;
  inserted: string;
  expires: string;
  dequeued: number;
  text: string;
  receipt?: string;
}

const at = (name: string): string => `/api/forward/queue/${encodeURIComponent(name)}`;
/** What Azure Functions calls the queue of messages that failed too often. */
export const POISON = "-poison";

export async function listQueues(): Promise<QueueInfo[]> {
  const found: QueueInfo[] = [];
  let next = "";
  do {
    const page = await getJson<{ queues: QueueInfo[]; next?: string }>(`/api/queues${next && `?next=${encodeURIComponent(next)}`}`);
    found.push(...page.queues);
    next = page.next ?? "";
  } while (next);
  return found;
}

export const createQueue = async (name: string): Promise<void> => void (await call("PUT", at(name)));
export const deleteQueue = async (name: string): Promise<void> => void (await call("DELETE", at(name)));
export const clearQueue = async (name: string): Promise<void> => void (await call("DELETE", `${at(name)}/messages`));

/** How many messages it holds, about. */
export async function countMessages(name: string): Promise<number> {
  const answer = await call("GET", `${at(name)}?comp=metadata`);
  return Number(answer.headers.get("x-ms-approximate-messages-count") ?? 0);
}

function messages(text: string): Message[] {
  return children(parse(text), "QueueMessage").map((element) => ({
    id: textAt(element, "MessageId"),
    inserted: textAt(element, "InsertionTime"),
    expires: textAt(element, "ExpirationTime"),
    dequeued: Number(textAt(element, "DequeueCount")),
    text: textAt(element, "MessageText"),
    ...(child(element, "PopReceipt") && { receipt: textAt(element, "PopReceipt") }),
  }));
}

export async function peek(name: string): Promise<Message[]> {
  return messages(await (await call("GET", `${at(name)}/messages?peekonly=true&numofmessages=32`)).text());
}

export interface Put {
  text: string;
  /** Seconds, or -1 for ever. */
  ttl?: number;
  /** Seconds until it is visible. */
  delay?: number;
}

export async function put(name: string, { text, ttl, delay }: Put): Promise<void> {
  const options = [ttl !== undefined && `messagettl=${ttl}`, delay && `visibilitytimeout=${delay}`].filter(Boolean).join("&");
  const body = `<?xml version="1.0" encoding="utf-8"?><QueueMessage><MessageText>${escape(text)}</MessageText></QueueMessage>`;
  await call("POST", `${at(name)}/messages${options && `?${options}`}`, { body, headers: { "content-type": "application/xml" } });
}

const remove = (name: string, { id, receipt = "" }: Message): Promise<Response> =>
  call("DELETE", `${at(name)}/messages/${encodeURIComponent(id)}?popreceipt=${encodeURIComponent(receipt)}`);

/** Moves the visible messages to another queue, as many as there are now: those that fail again at once come back here. */
export async function moveAll(from: string, to: string): Promise<number> {
  const most = await countMessages(from);
  let total = 0;
  while (total < most) {
    const wanted = Math.min(32, most - total);
    const taken = messages(await (await call("GET", `${at(from)}/messages?numofmessages=${wanted}&visibilitytimeout=60`)).text());
    if (!taken.length) break;
    for (const message of taken) {
      // First there, then not here: if this stops in between, a message is there twice, but never lost.
      await put(to, { text: message.text });
      await remove(from, message);
      total += 1;
    }
  }
  return total;
}
