// The API as the page calls it. The types are made from the gateway's own OpenAPI document.
import createClient from 'openapi-fetch';
import type { components, paths } from '../../made/api';

export type Schemas = components['schemas'];

/** A request that was refused, or that got no answer. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// `kubevnfm_access.sessions`: without it a refusal would make the browser ask for a password itself.
export const PAGE_HEADERS = { 'Kubevnfm-Page': '1' };
const VERSION = '2.0.0';

let lost: () => void = () => {};

/** Calls `then` when the gateway does not know the caller any more. */
export function onLogout(then: () => void): void {
  lost = then;
}

export const client = createClient<paths>({ baseUrl: location.origin, headers: PAGE_HEADERS });

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the body of an answer. Raises Refused. */
export async function body<T>(asked: Promise<Outcome<T>>): Promise<T> {
  let outcome: Outcome<T>;
  try {
    outcome = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused(0, 'The gateway does not answer.');
  }
  if (!outcome.response.ok) throw refusal(outcome.response.status, outcome.error);
  return outcome.data as T;
}

/** Returns the error of an answer, whose body is ProblemDetails; a lost login leads to the login. */
export function refusal(status: number, problem: unknown): Refused {
  if (status === 401) lost();
  const detail = (problem as { detail?: unknown } | undefined)?.detail;
  return new Refused(status, typeof detail === 'string' ? detail : `The gateway answered ${status}.`);
}

/** Sends a task that the API itself named, to this gateway: of its address the path alone counts. */
export async function send(method: string, href: string, content?: unknown): Promise<void> {
  const path = new URL(href, location.origin).pathname;
  const sent: RequestInit = { method, headers: { ...PAGE_HEADERS, Version: VERSION } };
  if (content !== undefined && content !== null) {
    sent.body = JSON.stringify(content);
    sent.headers = { ...sent.headers, 'Content-Type': 'application/json' };
  }
  let response: Response;
  try {
    response = await fetch(path, sent);
  } catch {
    throw new Refused(0, 'The gateway does not answer.');
  }
  if (!response.ok) throw refusal(response.status, await response.json().catch(() => undefined));
}

/** Returns the text of an error for a person. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
