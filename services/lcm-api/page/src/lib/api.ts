// The API as the page calls it. The types are made from the gateway's own OpenAPI document.
import createClient from 'openapi-fetch';
import type { components, paths } from '../../made/api';

export type Schemas = components['schemas'];

/** A request that was refused, or that got no answer (`status` 0). */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The parts of the request that are wrong: by JSON Pointer, or by names with dots between them. */
    readonly places: { name: string; reason: string }[] = [],
    readonly code = '',
  ) {
    super(message);
  }

  /** Whether what the request changes is not as it was read. */
  get isOutdated(): boolean {
    return this.status === 412;
  }

  /** Whether it is not known if the gateway has taken the request: no answer, or that of a proxy, which has no code of ours. */
  get isUnanswered(): boolean {
    return this.status === 0 || (!this.code && [502, 503, 504].includes(this.status));
  }
}

// `kubevnfm_access.sessions`: without it a refusal would make the browser ask for a password itself.
export const PAGE_HEADERS = { 'Kubevnfm-Page': '1' };
/** Of SOL's APIs, which must be named; the one of instances, unless a request says another. */
const VERSION = '2.0.0';
/** A gateway that is stopped, or a network that is cut, may give no answer and no error. A login at a VIM takes its time. */
const LONGEST_WAIT_MS = 180_000;

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

/** A value as it was read. With its entity tag (RFC 9110), a change is refused if it was changed elsewhere meanwhile. */
export interface Tagged<T> {
  value: T;
  tag: string;
}

/** Returns the body of an answer. Raises Refused. */
export async function body<T>(asked: Promise<Outcome<T>>): Promise<T> {
  return (await tagged(asked)).value;
}

/** Returns the body of an answer with its entity tag; "" without one. Raises Refused. */
export async function tagged<T>(asked: Promise<Outcome<T>>): Promise<Tagged<T>> {
  let outcome: Outcome<T>;
  try {
    outcome = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused(0, 'The gateway does not answer.');
  }
  if (!outcome.response.ok) throw refusal(outcome.response.status, outcome.error);
  return { value: outcome.data as T, tag: outcome.response.headers.get('ETag') ?? '' };
}

interface Problem {
  type?: unknown;
  detail?: unknown;
  invalidParams?: { name: string; reason: string }[];
  errors?: { pointer: string; message: string }[];
  TackerError?: { type?: unknown; message?: unknown };
}

/** Returns the error of an answer, whose body is ProblemDetails; a lost login leads to the login. */
export function refusal(status: number, found: unknown): Refused {
  if (status === 401) lost();
  const problem = (found ?? {}) as Problem;
  const detail = problem.detail ?? problem.TackerError?.message;
  const code = problem.type ?? problem.TackerError?.type;
  const pointed = (problem.errors ?? []).map((each) => ({ name: each.pointer, reason: each.message }));
  return new Refused(
    status,
    typeof detail === 'string' ? detail : `The gateway answered ${status}.`,
    [...(problem.invalidParams ?? []), ...pointed],
    typeof code === 'string' ? code : '',
  );
}

interface How {
  type?: string;
  /** "": the API has none. */
  version?: string | undefined;
  /** What must not have changed since it was read; "": whatever it is. */
  tag?: string;
}

interface Answer {
  body: unknown;
  location: string;
  tag: string;
}

/** Sends a request to an address of this gateway, and returns what it answers. Raises Refused. */
export async function send(method: string, href: string, content?: unknown, how: How = {}): Promise<Answer> {
  // The API itself names some addresses: of these the path alone counts, at this gateway.
  const { pathname, search } = new URL(href, location.origin);
  const { type = 'application/json', version = VERSION, tag = '' } = how;
  const headers: Record<string, string> = { ...PAGE_HEADERS, ...(version ? { Version: version } : {}), ...(tag ? { 'If-Match': tag } : {}) };
  const sent: RequestInit = { method, headers, signal: AbortSignal.timeout(LONGEST_WAIT_MS) };
  if (content !== undefined && content !== null) {
    sent.body = typeof content === 'string' ? content : JSON.stringify(content);
    headers['Content-Type'] = type;
  }
  let response: Response;
  try {
    response = await fetch(pathname + search, sent);
  } catch {
    throw new Refused(0, 'The gateway does not answer.');
  }
  const found: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw refusal(response.status, found);
  return { body: found, location: response.headers.get('Location') ?? '', tag: response.headers.get('ETag') ?? '' };
}

const OUTDATED = 'It was changed elsewhere after it was shown here, so nothing was done. Look at what it is now.';

/** Returns the text of an error for a person. */
export function reason(error: unknown): string {
  if (error instanceof Refused && error.isOutdated) return OUTDATED;
  return error instanceof Error ? error.message : String(error);
}
