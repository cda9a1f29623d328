// The caller, and logging in and out. The page holds no credentials: it sends them once, and the gateway's cookie stands for them.
import { dropDrafts } from './stored';
import { live } from './live.svelte';
import { place } from './place.svelte';
import { body, client, onLogout, reason, Refused, type Schemas } from './api';

export type Caller = Schemas['CallerView'];
type Role = 'reader' | 'operator' | 'admin';
const RANK: Record<string, number> = { reader: 0, operator: 1, admin: 2 };
const OUT = 'Your login has ended.';
// What this tab must find again when the identity server leads back to it. It is no secret; the gateway has those.
const BEGUN = 'kubevnfm-login';
const NOTE = 'kubevnfm-note';

class Session {
  caller = $state.raw<Caller | null>(null);
  ways = $state.raw<string[]>([]);
  openIdHost = $state<string | undefined>();
  isKnown = $state(false);
  note = $state('');
  error = $state('');

  constructor() {
    onLogout(() => {
      if (this.caller) this.note = OUT;
      this.#leave();
    });
  }

  async read(): Promise<void> {
    const login = await body(client.GET('/kubevnfm/v1/login'));
    this.ways = login.ways;
    this.openIdHost = login.openIdHost ?? undefined;
    this.note = take(NOTE) ?? '';
    if (place.parts[0] === 'login') await this.#finish();
    if (!this.caller) {
      try {
        this.caller = await body(client.GET('/kubevnfm/v1/session'));
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 401) throw error;
      }
    }
    this.isKnown = true;
  }

  /** Goes to the identity server, which leads back to `/ui/login`. */
  async beginThere(): Promise<void> {
    const { address, state } = await body(client.POST('/kubevnfm/v1/login/openid'));
    sessionStorage.setItem(BEGUN, JSON.stringify({ state, place: place.parts[0] === 'login' ? '/' : place.path + location.search }));
    location.assign(address);
  }

  /** Logs in with the answer of the identity server, if this tab has asked for it, and goes on where it was. */
  async #finish(): Promise<void> {
    const { state, code, error, iss } = Object.fromEntries(place.query);
    const begun = JSON.parse(take(BEGUN) ?? '{}') as { state?: string; place?: string };
    // The code is for one use: it stays neither in the history nor in an address that someone copies.
    place.replace(begun.place ?? '/');
    if (!state) return;
    if (state !== begun.state) {
      this.error = 'This login was not begun in this tab: log in again.';
      return;
    }
    try {
      const answer = { state, code: code ?? null, error: error ?? null, iss: iss ?? null };
      this.caller = await body(client.POST('/kubevnfm/v1/login/openid/answer', { body: answer }));
    } catch (refused) {
      this.error = reason(refused);
    }
  }

  async begin(credentials: Record<string, string>): Promise<void> {
    const caller = await body(client.POST('/kubevnfm/v1/session', { headers: credentials }));
    this.note = this.error = '';
    this.caller = caller;
  }

  async end(): Promise<void> {
    const further = await body(client.DELETE('/kubevnfm/v1/session'));
    dropDrafts();
    this.#leave();
    this.note = 'You have logged out.';
    if (further?.next) {
      sessionStorage.setItem(NOTE, this.note);
      location.assign(further.next);
    }
  }

  #leave(): void {
    live.end();
    this.caller = null;
  }

  may(role: Role): boolean {
    return this.caller?.roles.some((each) => RANK[each]! >= RANK[role]!) ?? false;
  }
}

export const session = new Session();

/** Returns what the tab has stored under a name, and removes it. */
function take(name: string): string | null {
  const found = sessionStorage.getItem(name);
  sessionStorage.removeItem(name);
  return found;
}

/** Returns the header of HTTP Basic (RFC 7617), in UTF-8. */
export function basic(name: string, password: string): Record<string, string> {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}
