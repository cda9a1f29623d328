// Writes to the APIs that have their own rules for headers: subscriptions, and what VNFs share.
import { PAGE_HEADERS, Refused, refusal } from './api';

/** The versions of SOL's APIs, of which a request must name the one of its path; others have none. */
export const VERSIONS: Record<string, string> = { v1: '1.3.0', v2: '2.0.0', vnfpkgm: '1.0.0', 'vnfpkgm-v2': '2.4.0' };

/** Sends a request to this gateway: of the address that the API named, its path counts. Returns the body. Raises Refused. */
export async function write(method: string, href: string, content?: unknown, version?: string): Promise<unknown> {
  const headers: Record<string, string> = { ...PAGE_HEADERS };
  if (version) headers.Version = version;
  const sent: RequestInit = { method, headers };
  if (content !== undefined) {
    headers['Content-Type'] = 'application/json';
    sent.body = JSON.stringify(content);
  }
  let response: Response;
  try {
    response = await fetch(new URL(href, location.origin).pathname, sent);
  } catch {
    throw new Refused(0, 'The gateway does not answer.');
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw refusal(response.status, answer);
  return answer;
}
