// The caller, and logging in and out. The page holds no credentials: it sends them once, and the gateway's cookie stands for them.
import { live } from './live.svelte';
import { body, client, onLogout, Refused, type Schemas } from './api';

export type Caller = Schemas['CallerView'];
type Role = 'reader' | 'operator' | 'admin';
const RANK: Record<string, number> = { reader: 0, operator: 1, admin: 2 };
const OUT = 'Your login has ended.';

class Session {
  caller = $state.raw<Caller | null>(null);
  ways = $state.raw<string[]>([]);
  isKnown = $state(false);
  note = $state('');

  constructor() {
    onLogout(() => {
      if (this.caller) this.note = OUT;
      this.#leave();
    });
  }

  async read(): Promise<void> {
    this.ways = (await body(client.GET('/kubevnfm/v1/login'))).ways;
    try {
      this.caller = await body(client.GET('/kubevnfm/v1/session'));
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error;
    }
    this.isKnown = true;
  }

  async begin(credentials: Record<string, string>): Promise<void> {
    const caller = await body(client.POST('/kubevnfm/v1/session', { headers: credentials }));
    this.note = '';
    this.caller = caller;
  }

  async end(): Promise<void> {
    await body(client.DELETE('/kubevnfm/v1/session'));
    this.#leave();
    this.note = 'You have logged out.';
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

/** Returns the header of HTTP Basic (RFC 7617), in UTF-8. */
export function basic(name: string, password: string): Record<string, string> {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}
